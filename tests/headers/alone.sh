#!/bin/bash
# Each public header compiles alone, twice over, as C11 and C++17, under gcc and clang, without a warning.
set -eu
strict="-Wall -Wextra -Wpedantic -Werror -fsyntax-only -I."
cd "$TSLAB_SOURCE_DIR/include"

# compile_alone HEADER COMPILER OPTION...
compile_alone() {
    local header=$1
    shift
    echo "$header: $*"
    printf '#include <%s>\n#include <%s>\n' "$header" "$header" | "$@" $strict -
}

for header in *.h temporal_slab/phase.h; do
    for compiler in gcc clang-14; do
        compile_alone "$header" $compiler -std=c11 -x c
        compile_alone "$header" ${compiler/gcc/g++} -std=c++17 -x c++
    done
done
