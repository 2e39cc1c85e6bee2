#!/bin/bash
# No build system at all: one compiler command over the C files.
set -eu
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
cd "$TSLAB_SOURCE_DIR"
cc $cheap -pthread -std=gnu11 -Iinclude -Isrc src/*/*.c tests/install/consumer/consumer.c -o "$OLDPWD/plain"
"$OLDPWD/plain"
