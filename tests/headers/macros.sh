#!/bin/bash
# macros.c does what it says as C11 and C++17, under gcc and clang, with the static library; and both compilers warn of a result of
# slab_realloc that is thrown away, and of a format that does not fit.
set -eu
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
strict="-O2 -Wall -Wextra -Wpedantic -Werror -I$TSLAB_SOURCE_DIR/include"
source=$TSLAB_SOURCE_DIR/tests/headers/macros.c
library=$TSLAB_BUILD_DIR/libtemporal_slab.a
sanitize=$(sed -n 's/^TSLAB_SANITIZE:[A-Z]*=//p' "$TSLAB_BUILD_DIR/CMakeCache.txt")
[ -z "$sanitize" ] || skip "the library needs a sanitizer of its compiler"
for compiler in gcc clang-14; do
    $compiler $strict -std=c11 "$source" "$library" -pthread -o as_c
    ./as_c
    ${compiler/gcc/g++} $strict -std=c++17 -x c++ "$source" -x none "$library" -pthread -lstdc++ -o as_cxx
    ./as_cxx
    for wrong in IGNORES BAD_FORMAT; do
        if $compiler $strict -std=c11 -D$wrong -c "$source" -o /dev/null 2>err; then
            echo "$compiler: no warning of $wrong" >&2
            exit 1
        fi
    done
done
