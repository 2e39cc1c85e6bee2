#!/bin/bash
# docs/coming-from/apr.md: the program on pools of APR and the one on phases print the same, cleanups in the same order.
. "$TSLAB_SOURCE_DIR/tests/coming/kit.bash"
after apr-after.c
# shellcheck disable=SC2046  # words
! have_header apr_pools.h libapr1-dev $(pkg-config --cflags apr-1 2>/dev/null) || before apr-before.c $(pkg-config --cflags --libs apr-1)
