#!/bin/bash
# The page in Chromium, against a daemon under each pattern: what it shows, asks and forbids, keys, schemes, widths. See page.py.
set -eu
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
need python3
command -v chromium || command -v chromium-headless-shell || command -v google-chrome ||
    skip "no chromium (make deps FOR=browser)"
clean
exec python3 "$TSLAB_SOURCE_DIR/tests/daemon/page.py" "$@"
