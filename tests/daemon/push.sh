#!/bin/bash
# scripts/push-metrics.sh: what it pushes where, and what it says when that fails. See push.py.
set -eu
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
for program in python3 curl; do
    need $program
done
clean
exec python3 "$TSLAB_SOURCE_DIR/tests/daemon/push.py"
