#!/bin/bash
# The start of a program costs at most 40 system calls more under the preloaded library than without it, those of the
# loader for one library more included; counted by strace.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
clean
preload=$TSLAB_BUILD_DIR/libtemporal_slab_preload.so
need strace "strace is not installed"
strace -o none true 2>/dev/null || skip "strace may not trace here"
cat >nothing.c <<'END'
int main(void) { return 0; }
END
cc -O1 nothing.c -o nothing || fail "nothing.c does not compile"
calls() { # FILE WORD...
    strace -f -o "$1" "${@:2}" || fail "${*:2} ends with $?"
    wc -l <"$1"
}
without=$(calls plain ./nothing) with=$(calls under -E LD_PRELOAD="$preload" ./nothing)
echo "$without system calls without the library, $with with it"
[ $((with - without)) -le 40 ] || complain "$((with - without)) system calls more: $(tail -n 60 under)"
finish
