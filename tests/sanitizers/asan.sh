#!/bin/bash
# AddressSanitizer reports a use of an object after its end, however it was made and ended, with the stacks of all three;
# one byte beyond it and before it; and takes nothing for a leak that an object holds. First with the library as it is
# built, then with one that is built with the sanitizer, too.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
. "$TSLAB_SOURCE_DIR/tests/sanitizers/uses.bash"
flags="-fsanitize=address -fno-omit-frame-pointer"
# shellcheck disable=SC2086  # flags are words
echo 'int main(void) { return 0; }' >empty.c && cc $flags empty.c -o empty 2>errors && ./empty 2>>errors ||
    skip "no AddressSanitizer here: $(tail -n 1 errors)"

# The stacks of a library without frame pointers are found by its unwind tables.
export ASAN_OPTIONS=exitcode=9:detect_leaks=0:fast_unwind_on_malloc=0
run_uses() { "$program" "$@" >said 2>&1; }
use_after="ERROR: AddressSanitizer: heap-use-after-free"
alive="ERROR: AddressSanitizer: heap-buffer-overflow"

all() { # PAIR...
    local words make end
    for words in "$@"; do
        make=${words%:*} end=${words#*:}
        quiet "$make" "$end" none
        report "$make" "$end" ended "$use_after" "in object_is_used" "in object_is_made" "in $(ends_in "$end")"
    done
    for make in malloc calloc handle copy grown shrunk large ring; do
        report $make end beyond "$alive" "in object_is_made" "0 bytes (to the right of|after) (100|3000000)-byte region"
        report $make end before "$alive" "in object_is_made" "1 bytes (to the left of|before) (100|3000000)-byte region"
    done
    for words in $options; do
        make=${words#*:} end=${make#*:} make=${make%:*}
        TSLAB_OPTIONS=${words%%:*} report "$make" "$end" ended "$use_after" "in object_is_made" "in $(ends_in "$end")"
    done
}

# shellcheck disable=SC2086
compile_test sanitizers/uses.c uses $flags
program=./uses
# shellcheck disable=SC2086  # words
all $pairs
# Where the program says so, objects stay in their slots.
TSLAB_OPTIONS=by_malloc=2 run_uses malloc sized none || grep -q "slab_usable_size(a, p) == size" said ||
    complain "by_malloc=2: $(head -n 20 said)"

# Leaks: reported at the end of the process, where the system lets the sanitizer look at it.
export ASAN_OPTIONS=exitcode=9:detect_leaks=1
echo 'int main(void) { void* volatile p = __builtin_malloc(8); p = 0; return p != 0; }' >leak.c
# shellcheck disable=SC2086
cc $flags leak.c -o leak || fail "leak.c does not compile"
status=0
./leak >said 2>&1 || status=$?
if [ $status -eq 9 ] && grep -q "detected memory leaks" said; then
    quiet malloc end none
    quiet ring free none
    quiet holds - none
    report holds - lost "ERROR: LeakSanitizer: detected memory leaks" "in holds" "24 byte\(s\) leaked in 1 allocation"
else
    echo "skipped: LeakSanitizer cannot look at processes here: $(grep -v '^$' said | head -n 1)"
fi

# A library with the sanitizer has frame pointers, so stacks need no tables.
if ! scale_reaches 1; then
    echo "the library is not compiled with the sanitizer below scale 1"
    finish
fi
export ASAN_OPTIONS=exitcode=9:detect_leaks=0
# shellcheck disable=SC2086
(cd "$TSLAB_SOURCE_DIR" && cc $flags -std=gnu11 -g $cheap -pthread -DTSI_NO_USDT -Iinclude -Isrc src/*/*.c tests/sanitizers/uses.c -lm -o "$OLDPWD/uses_all") ||
    fail "the library does not compile with $flags"
program=./uses_all
# shellcheck disable=SC2086  # words
all $pairs
finish
