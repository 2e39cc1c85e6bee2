#!/bin/bash
# A compiler for 32 bits is refused as the project is configured, with a sentence that says why, and nothing is left to build; the
# same compiler for 64 bits is taken. No 32-bit C library is needed: CMake measures a pointer in an object file.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
need cmake
echo 'char pointer[sizeof(void *) == 4 ? 1 : -1];' >narrow.c
cc -m32 -c narrow.c -o narrow.o 2>/dev/null || skip "cc -m32 does not compile"

configure() { # FOLDER FLAG
    cmake -S "$TSLAB_SOURCE_DIR" -B "$1" -DCMAKE_C_COMPILER=cc -DCMAKE_C_FLAGS="$2" -DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY >"$1.log" 2>&1
}
if configure 32 -m32; then fail "cmake takes a compiler for 32 bits"; fi
tr -s '\n ' ' ' <32.log >32.line # CMake breaks lines
grep -q 'needs a 64-bit target.*makes programs of 32 bits' 32.line || { cat 32.log; fail "the refusal does not say why"; }
[ ! -e 32/build.ninja ] && [ ! -e 32/Makefile ] || fail "there is something to build after the refusal"
configure 64 -m64 || { cat 64.log; fail "cmake refuses the same compiler for 64 bits"; }
finish
