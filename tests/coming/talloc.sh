#!/bin/bash
# docs/coming-from/talloc.md: the program on talloc and the one on phases print the same.
. "$TSLAB_SOURCE_DIR/tests/coming/kit.bash"
after talloc-after.c
! have_header talloc.h libtalloc-dev || before talloc-before.c -ltalloc
