#!/bin/bash
# Valgrind's memcheck reports a use of an object after its end, with the stacks of its allocation and of its end; one
# byte beyond it and before it; a decision by what nobody has written to it; and takes nothing for a leak that an object
# holds. The library is the one that is built.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
. "$TSLAB_SOURCE_DIR/tests/sanitizers/uses.bash"
need valgrind "valgrind is not installed"
compile_test sanitizers/uses.c uses
run_uses() { # what the run of many has said, or, with options and at leaks, one of its own
    local of=many/$1:$2:$3
    [ -z "$more${TSLAB_OPTIONS:-}" ] && [ -e "$of" ] || { valgrind -q --error-exitcode=9 $more ./uses "$@" >said 2>&1; return; }
    sed '$d' "$of" >said
    [ "$(tail -n 1 "$of")" = "@ 0" ]
}
more=
unset TSLAB_OPTIONS

many=""
for words in $pairs; do many="$many ${words%:*} ${words#*:} ended"; done
for make in malloc handle large ring; do many="$many $make end beyond $make end before"; done
for make in $unset $zeroed; do many="$many $make end fresh"; done
for words in malloc:end handle:handle large_calloc:reset ring:advance malloc:fork; do many="$many ${words%:*} ${words#*:} none"; done
clean many
mkdir many
# shellcheck disable=SC2086  # words
valgrind -q --error-exitcode=9 ./uses $many >all 2>&1 || fail "the run of many: $(tail -n 20 all)"
awk '/^@ .*:/ { file = "many/" $2; n++; next } { print >file } /^@ / { close(file) } END { print n " uses in one run" }' all

for words in $pairs; do
    make=${words%:*} end=${words#*:}
    report "$make" "$end" ended "Invalid read of size 1" "free'd" "object_is_used" "object_is_made" "$(ends_in "$end")"
done
for make in malloc handle large ring; do
    report $make end beyond "Invalid read of size 1" "0 bytes after a block of size (100|3,000,000) alloc'd" object_is_made
    report $make end before "Invalid read of size 1" "1 bytes before a block of size (100|3,000,000) alloc'd" object_is_made
done
for make in $unset; do report "$make" end fresh "Conditional jump or move depends on uninitialised value" "object_is_used"; done
for make in $zeroed; do quiet "$make" end fresh; done
if scale_reaches 1; then # half a minute
    more=--track-origins=yes
    report malloc end fresh "Uninitialised value was created by a heap allocation" "object_is_made"
    more=
fi
# Below scale 1 with the first option alone: each costs a run of valgrind.
for words in $options; do
    scale_reaches 1 || [ "$words" = "${options%%[[:space:]]*}" ] || continue
    make=${words#*:} end=${make#*:} make=${make%:*}
    TSLAB_OPTIONS=${words%%:*} report "$make" "$end" ended "Invalid read of size 1" object_is_made "$(ends_in "$end")"
done
for words in malloc:end handle:handle large_calloc:reset ring:advance malloc:fork; do quiet "${words%:*}" "${words#*:}" none; done

more="--leak-check=full --show-leak-kinds=definite,indirect,possible --errors-for-leak-kinds=definite,indirect,possible"
quiet malloc end none
quiet holds - none
report holds - lost "24 bytes in 1 blocks are definitely lost" holds
finish
