#!/bin/bash
# docs/coming-from/pmr.md: containers on a monotonic buffer and on the resource over a phase hold the same.
. "$TSLAB_SOURCE_DIR/tests/coming/kit.bash"
after pmr-after.cpp
before pmr-before.cpp
