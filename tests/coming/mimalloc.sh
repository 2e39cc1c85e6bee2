#!/bin/bash
# docs/coming-from/mimalloc.md: the program on heaps of mimalloc and the one on phases print the same.
. "$TSLAB_SOURCE_DIR/tests/coming/kit.bash"
after mimalloc-after.c
! have_header mimalloc.h libmimalloc-dev || before mimalloc-before.c -lmimalloc
