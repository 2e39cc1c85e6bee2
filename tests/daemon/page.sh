#!/bin/bash
# The page in Chromium, against a daemon under each pattern: what it shows, asks and forbids, keys, schemes, widths. See page.py.
set -eu
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
command -v chromium || command -v chromium-headless-shell || command -v google-chrome || {
    echo "skipped: no chromium (scripts/install-deps.sh browser)"
    exit 77
}
rm -rf ./*
exec python3 "$TSLAB_SOURCE_DIR/tests/daemon/page.py" "$@"
