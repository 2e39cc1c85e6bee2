#!/bin/bash
# The library and a program that uses most of it, compiled for MemorySanitizer: it must not report, also not of the profile's
# walk over other functions' frames.
set -eu
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
flags="-fsanitize=memory -fno-omit-frame-pointer -std=gnu11 -g $cheap -pthread -DTSI_NO_USDT"
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
# shellcheck disable=SC2086  # flags are words
(cd "$TSLAB_SOURCE_DIR" && $clang $flags -Iinclude -Isrc src/*/*.c tests/sanitizers/calls.c -o "$OLDPWD/calls")
./calls || fail "$clang: exit code $?"
