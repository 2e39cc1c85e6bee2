#!/bin/bash
# docs/coming-from/malloc.md: the program on malloc and the one on phases print the same.
. "$TSLAB_SOURCE_DIR/tests/coming/kit.bash"
after malloc-after.c
before malloc-before.c
