#!/bin/bash
# Each program of tests/cpp does what it says under g++ and clang++, as C++17, 20 and 23, with the static library; what it compiles
# gives no warning. Each header of tslab.hpp compiles alone, also without exceptions and RTTI, and what must not compile does not.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
strict="-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wold-style-cast -Werror -I$TSLAB_SOURCE_DIR/include"
library=$TSLAB_BUILD_DIR/libtemporal_slab.a

compilers=""
for compiler in g++ clang++-14; do
    if command -v $compiler >/dev/null; then compilers="$compilers $compiler"; else echo "skipped: $compiler is not installed"; fi
done
[ -n "$compilers" ] || exit 77

run() { # COMPILER STANDARD FILE
    local name
    name=$(basename "$3" .cpp)-$1-$2
    # shellcheck disable=SC2086  # words
    $1 -std=c++$2 $strict "$3" "$library" -pthread -o "$name" || { complain "$1 as C++$2 does not take $3"; return; }
    "./$name" >"$name.out" 2>&1 || complain "$name: $(tail -n 5 "$name.out")"
}
refused() { # COMPILER WORD LINE: the line does not compile, and WORD is among what the compiler says
    printf '#include <tslab.hpp>\nvoid f(tslab::domain& d, tslab::scope& s) { static_cast<void>(d), static_cast<void>(s); %s }\n' "$3" >refused.cpp
    # shellcheck disable=SC2086
    $1 -std=c++17 $strict -fsyntax-only refused.cpp 2>err && complain "$1 takes: $3"
    has err "$2"
}
alone() { # COMPILER STANDARD HEADER OPTION...
    # shellcheck disable=SC2086
    printf '#include <%s>\n#include <%s>\n' $3 $3 | $1 -std=c++$2 $strict ${4:-} ${5:-} -x c++ -fsyntax-only - || complain "$*"
}
for compiler in $compilers; do
    for standard in 17 20 2b; do
        for file in "$TSLAB_SOURCE_DIR"/tests/cpp/*.cpp; do
            [[ $compiler-$standard = g++-20 || $standard-$file = 17-*/tasks.cpp ]] || run $compiler $standard "$file" # compiled by the build; empty
        done
        alone $compiler $standard tslab.hpp -fno-exceptions -fno-rtti
    done
    for header in phases objects memory task; do alone $compiler 20 temporal_slab/$header.hpp; done
    refused $compiler noexcept 'd.on_end([] {});'
    refused $compiler 'runs no destructor' 'tslab::make<std::shared_ptr<int>>(d);'
    refused $compiler 'freed singly' 'tslab::make_unique<int>(tslab::bulk(d));'
    refused $compiler 'a destructor runs once' 'tslab::make_handle<std::shared_ptr<int>>(d);'
    refused $compiler deleted 'tslab::domain e = d;'
    refused $compiler deleted 'tslab::scope t = std::move(s);'
    refused $compiler 'virtual destructor' 'struct b { virtual void v() {} }; tslab::make_unique<b>(d);'
done
finish
