#!/bin/bash
# Each program in docs/coming-from shows the text of its file in docs/coming-from/code, and each file is shown: pages.py.
set -eu
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
need python3
exec python3 "$TSLAB_SOURCE_DIR/tests/coming/pages.py" "$TSLAB_SOURCE_DIR/docs/coming-from"
