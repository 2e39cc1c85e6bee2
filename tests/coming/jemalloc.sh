#!/bin/bash
# docs/coming-from/jemalloc.md: the program on an arena of jemalloc and the one on a phase print the same.
. "$TSLAB_SOURCE_DIR/tests/coming/kit.bash"
after jemalloc-after.c
! have_header jemalloc/jemalloc.h libjemalloc-dev || before jemalloc-before.c -ljemalloc
