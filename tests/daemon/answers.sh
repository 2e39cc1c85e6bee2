#!/bin/bash
# tslabd: routes, hosts, formats, counters, flags. See answers.py.
set -eu
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
need python3
clean
exec python3 "$TSLAB_SOURCE_DIR/tests/daemon/answers.py"
