#!/bin/bash
# docs/coming-from/papers.md: a program in the names of the founding papers compiles with the compatibility header, in C and C++, and prints
# what the one in our names does; without the header it does not compile, and with it what changed its meaning does not, and
# says where to read.
. "$TSLAB_SOURCE_DIR/tests/coming/kit.bash"
include=$TSLAB_SOURCE_DIR/include library=$TSLAB_BUILD_DIR/libtemporal_slab.a
after papers-after.c
before papers-before.c -I"$include" "$library" -pthread
# shellcheck disable=SC2086  # words
g++ -std=c++17 $strict -I"$include" -x c++ "$code/papers-before.c" -x none "$library" -pthread -o as_cxx
./as_cxx | cmp - before.out || fail "as C++ it prints something else"

sed 's/#include <slab_papers_compat.h>/#include <epoch_domain.h>\n#include <slab_stats.h>/' "$code/papers-before.c" >bare.c
! gcc -std=gnu11 -Werror -fsyntax-only -I"$include" bare.c 2>errors || fail "the old names are there without the header"
for name in now_ns read_rss_bytes_linux EpochStats SizeClassStats slab_stats_size_class epoch_domain_enter epoch_domain_create; do
    grep -q "$name" errors || fail "$name is there without the header"
done

# call EXPRESSION COMPILER...: compiles a call
call() {
    local expression=$1
    shift
    printf '#include <slab_papers_compat.h>\nvoid f(SlabAllocator* a);\nvoid f(SlabAllocator* a) { (void)a; (void)%s; }\n' "$expression" |
        "$@" -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I"$include" - 2>errors
}
for compiler in "gcc -std=c11 -x c" "g++ -std=c++17 -x c++" "clang-14 -std=c11 -x c"; do
    command -v "${compiler%% *}" >/dev/null || continue # headers/alone needs all of them
    for expression in 'epoch_domain_create(a)' 'tls_print_stats()'; do
        # shellcheck disable=SC2086  # words
        ! call "$expression" $compiler || fail "$compiler: $expression compiles"
        grep -q 'docs/coming-from/papers.md' errors || fail "$compiler does not say where to read of $expression: $(cat errors)"
    done
    for expression in '(epoch_domain_create)(a)' 'epoch_domain_create(a, "x")' 'epoch_domain_wrap(a, epoch_current(a), false)'; do
        # shellcheck disable=SC2086  # words
        call "$expression" $compiler || fail "$compiler: $(cat errors)"
    done
done
