#!/bin/bash
# Each program in docs/coming-from shows the text of its file in docs/coming-from/code, and each file is shown: pages.py.
set -eu
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
exec python3 "$TSLAB_SOURCE_DIR/tests/coming/pages.py" "$TSLAB_SOURCE_DIR/docs/coming-from"
