#!/bin/bash
# Each adapter compiles alone, twice over, as C11 and as C++, under gcc and clang, without a warning, and so does a program in which
# all of them meet. A header whose library is not installed is left out, and that is said.
set -eu
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
strict="-Wall -Wextra -Wpedantic -Werror -fsyntax-only -I$TSLAB_SOURCE_DIR/include -DPCRE2_CODE_UNIT_WIDTH=8"
declare -A module=([lua]=lua5.4 [cjson]=libcjson [sqlite3]=sqlite3 [libxml2]=libxml-2.0 [nghttp2]=libnghttp2 [pcre2]=libpcre2-8)

compile() { # SOURCE COMPILER OPTION...
    local source=$1
    shift
    echo "$source: $*"
    "$@" $strict "$source"
}
every_way() { # SOURCE OPTION...
    local source=$1
    shift
    for compiler in gcc clang-14; do
        compile "$source" $compiler -std=c11 -x c "$@"
        for standard in c++11 c++17; do
            compile "$source" ${compiler/gcc/g++} -std=$standard -x c++ "$@"
        done
    done
}

missing="" flags=""
echo "#include <epoch_domain.h>" >all.h
for header in "$TSLAB_SOURCE_DIR"/include/temporal_slab/*.h; do
    name=$(basename "$header" .h)
    [ "$name" != phase ] || continue # of none; beside all others it stands in alone.sh
    [ -n "${module[$name]:-}" ] || { echo "adapters.sh: of which library is $name.h?" >&2; exit 1; }
    if ! pkg-config --exists "${module[$name]}"; then
        missing="$missing $name"
        continue
    fi
    printf '#include <temporal_slab/%s.h>\n' "$name" "$name" >"$name.h"
    # shellcheck disable=SC2046  # flags are words
    every_way "$name.h" $(pkg-config --cflags "${module[$name]}")
    flags="$flags $(pkg-config --cflags "${module[$name]}")"
    cat "$name.h" >>all.h
done
# shellcheck disable=SC2086  # flags are words
every_way all.h $flags
[ -z "$missing" ] || skip "no development files of$missing"
