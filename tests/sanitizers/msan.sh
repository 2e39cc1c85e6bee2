#!/bin/bash
# The library and a program that uses most of it, compiled for MemorySanitizer. It must not report, also not of the profile's
# walk over other functions' frames, whether objects are blocks of malloc, as they are by themselves, or in their slots. It must
# report a decision by an object that nobody has written to, or that has ended or was freed, with where that happened.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
. "$TSLAB_SOURCE_DIR/tests/sanitizers/uses.bash"
flags="-fsanitize=memory -fsanitize-memory-track-origins -fno-omit-frame-pointer -Wno-unknown-attributes -std=gnu11 -g $cheap -pthread -DTSI_NO_USDT"
echo 'int main(void) { return 0; }' >empty.c
clang=
for name in clang clang-19 clang-16 clang-14; do
    # shellcheck disable=SC2086  # flags are words
    if command -v $name >/dev/null && $name $flags empty.c -o empty 2>errors && ./empty; then
        clang=$name
        break
    fi
done
[ -n "$clang" ] || skip "no clang with MemorySanitizer: $(tail -n 1 errors 2>/dev/null || echo none is installed)"
mkdir -p objects
(
    cd objects || exit 1
    # shellcheck disable=SC2086  # flags are words
    $clang $flags -I"$TSLAB_SOURCE_DIR/include" -I"$TSLAB_SOURCE_DIR/src" -c "$TSLAB_SOURCE_DIR"/src/*/*.c
) || fail "the library does not compile with $flags"
for program in calls uses; do
    # shellcheck disable=SC2086  # flags are words
    $clang $flags -I"$TSLAB_SOURCE_DIR/include" "$TSLAB_SOURCE_DIR/tests/sanitizers/$program.c" objects/*.o -lm -o $program ||
        fail "$program.c does not compile with $flags"
done
unset TSLAB_OPTIONS
./calls || complain "$clang: exit code $?"
TSLAB_OPTIONS=by_malloc=2 ./calls || complain "$clang, objects in their slots: exit code $?"

export MSAN_OPTIONS=exitcode=9
run_uses() { ./uses "$@" >said 2>&1; }
wrong="WARNING: MemorySanitizer: use-of-uninitialized-value"
# shellcheck disable=SC2154  # of uses.bash
for make in $unset; do
    report "$make" end fresh "$wrong" "in object_is_used" "Uninitialized value was created by a heap allocation" "in object_is_made"
done
for make in $zeroed; do quiet "$make" end fresh; done
# There is no quarantine: the block may be an object again that is made behind the end, and unset as well. One of megabytes is
# unmapped, so its use faults.
for words in $pairs; do
    make=${words%:*} end=${words#*:}
    quiet "$make" "$end" none
    case $make in
    large*) report "$make" "$end" ended "MemorySanitizer: SEGV" "in object_is_used" ;;
    *) report "$make" "$end" ended "$wrong" "in object_is_used" "Uninitialized value was created by a heap (de)?allocation" "in $(ends_in "$end")" ;;
    esac
done
finish
