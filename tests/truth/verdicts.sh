#!/bin/bash
# The same verdict inside a process and outside of it, whatever it holds: what slab_doctor says, what its JSON says of labels and
# what a reader of its segment says are what the program has counted by hand.
set -eu
exec python3 "$TSLAB_SOURCE_DIR/tests/truth/verdicts.py" "$TSLAB_BUILD_DIR"
