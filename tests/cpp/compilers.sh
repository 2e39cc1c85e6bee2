#!/bin/bash
# Each program of tests/cpp does what it says under g++ and clang++, as C++17, 20 and 23, with the static library; what it compiles
# gives no warning. Below scale 1 each compiler and each standard has its turn once, not all pairs. Each header of tslab.hpp
# compiles alone, also without exceptions and RTTI, and what must not compile does not.
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
# refused COMPILER: no line of these compiles, and its word is among what the compiler says. All of them are in one file, and
# what is said of one has its number.
refused() {
    local n=0 word line
    printf '#include <tslab.hpp>\n' >refused.cpp
    while IFS=: read -r word line; do
        printf 'void f%s(tslab::domain& d, tslab::scope& s) { static_cast<void>(d), static_cast<void>(s); %s }\n' $((n += 1)) "$line"
    done <<<"$not_taken" >>refused.cpp
    # shellcheck disable=SC2086
    $1 -std=c++17 $strict -w -fsyntax-only refused.cpp 2>err && complain "$1 takes all of refused.cpp"
    n=1
    while IFS=: read -r word line; do
        grep -q "refused.cpp:$((n += 1)):" err || complain "$1 takes: $line"
        has err "$word"
    done <<<"$not_taken"
}
not_taken='noexcept:d.on_end([] {});
runs no destructor:tslab::make<std::shared_ptr<int>>(d);
freed singly:tslab::make_unique<int>(tslab::bulk(d));
a destructor runs once:tslab::make_handle<std::shared_ptr<int>>(d);
deleted:tslab::domain e = d;
deleted:tslab::scope t = std::move(s);
virtual destructor:struct b { virtual void v() {} }; tslab::make_unique<b>(d);'
alone() { # COMPILER STANDARD HEADER OPTION...
    # shellcheck disable=SC2086
    printf '#include <%s>\n#include <%s>\n' $3 $3 | $1 -std=c++$2 $strict ${4:-} ${5:-} -x c++ -fsyntax-only - || complain "$*"
}
for compiler in $compilers; do
    case $compiler in g++) once=17 ;; *) once=2b ;; esac # the build has g++ with 20, AddressSanitizer's has clang++
    for standard in 17 20 2b; do
        for file in "$TSLAB_SOURCE_DIR"/tests/cpp/*.cpp; do
            [[ $compiler-$standard = g++-20 || $standard-$file = 17-*/tasks.cpp ]] && continue # compiled by the build; empty
            [ $standard = $once ] || scale_reaches 1 || continue
            run $compiler $standard "$file"
        done
        alone $compiler $standard tslab.hpp -fno-exceptions -fno-rtti
    done
    for header in phases objects memory task; do alone $compiler 20 temporal_slab/$header.hpp; done
    refused $compiler
done
finish
