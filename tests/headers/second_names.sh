#!/bin/bash
# second_names.c does what it says at each level of optimisation of gcc and clang, with the static library.
set -eu
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
library=$TSLAB_BUILD_DIR/libtemporal_slab.a
sanitize=$(sed -n 's/^TSLAB_SANITIZE:[A-Z]*=//p' "$TSLAB_BUILD_DIR/CMakeCache.txt")
[ -z "$sanitize" ] || skip "the library needs a sanitizer of its compiler"
for compiler in gcc clang-14; do
    for level in -O1 -O2 -O3; do
        $compiler $level -std=c11 -Wall -Wextra -Werror -I"$TSLAB_SOURCE_DIR/include" \
            "$TSLAB_SOURCE_DIR/tests/headers/second_names.c" "$library" -pthread -o program
        ./program || fail "$compiler $level"
    done
done
