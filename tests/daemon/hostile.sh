#!/bin/bash
# tslabd against slow, hostile and very many clients, and without descriptors. See hostile.py.
set -eu
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
need python3
clean
exec python3 "$TSLAB_SOURCE_DIR/tests/daemon/hostile.py"
