#!/bin/bash
# Libraries that a program opens while it runs, under the preloaded malloc: C++ in a program of C, with all operators; one
# that asks for RTLD_DEEPBIND, which has one heap with the program, or, where that is wanted, what it asks for; and a
# program that replaces two operators of C++, in which all others end.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
need c++ "no compiler of C++"
clean
from=$TSLAB_SOURCE_DIR/tests/preload/cxx
preload=$TSLAB_BUILD_DIR/libtemporal_slab_preload.so

c++ -std=c++17 -O1 -g -fPIC -shared -pthread "$from/library.cc" -o library.so || fail "library.cc does not compile"
c++ -std=c++17 -O1 -g -fPIC -shared -pthread -static-libstdc++ "$from/library.cc" -o alone.so || fail "library.cc does not link"
cc -std=gnu11 -O1 -g -fPIC -shared "$from/deep.c" -o deep.so || fail "deep.c does not compile"
# The program's `which` is to be found by a library.
cc -std=gnu11 -O1 -g -rdynamic "$from/opens.c" -ldl -o opens || fail "opens.c does not compile"
c++ -std=c++17 -O1 -g -fsized-deallocation "$from/replaces.cc" -o replaces || fail "replaces.cc does not compile"

preloaded() { env LD_PRELOAD="$preload" "$@"; }
tested=(preloaded)
for program in ./opens; do
    expect 0 $program now ./library.so ./library.so ./alone.so ./library.so
    has out '^done$'
    empty err
    # A name without a folder is looked for where the caller says, which libc knows by who calls.
    expect 0 env LD_LIBRARY_PATH=. $program now library.so
    has out '^done$'
    expect 0 $program deep ./deep.so ./library.so
    has out '^which 1$'
    has out '^done$'
    empty err
done
# Left alone, the library has its own names. (What it makes is libc's then, and freed as such.)
cat >keeps.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
int which = 1;
int main(void) {
    void* (*made_here)(void);
    void* library = dlopen("./deep.so", RTLD_NOW | RTLD_DEEPBIND);
    if (library == NULL) return 1;
    *(void**)&made_here = dlsym(library, "made_here");
    free(made_here());
    return 0;
}
END
cc -std=gnu11 -O1 -rdynamic keeps.c -ldl -o keeps || fail "keeps.c does not compile"
expect 0 ./keeps
has out '^which 1$'
expect 0 env TSLAB_PRELOAD_DEEPBIND=keep ./keeps
has out '^which 2$'
expect 0 env TSLAB_PRELOAD_DEEPBIND= ./keeps
has out '^which 1$'

expect 0 ./replaces
has out '^done$'
empty err

# A search path of the caller's own: the library is found only if libc's dlopen sees the program, not the preload.
mkdir -p hidden && cp library.so hidden/found_by_path.so
cc -std=gnu11 -O1 -rdynamic "$from/opens.c" -ldl -Wl,-rpath,"$PWD/hidden" -o by_path || fail "opens.c does not link"
expect 0 ./by_path now found_by_path.so
has out '^done$'
finish
