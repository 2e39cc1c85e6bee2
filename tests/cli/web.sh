#!/bin/bash
# The page of any process in Chromium: what it shows, its history, a process that stops, dies and begins anew. See web.py.
set -u
. "$TSLAB_SOURCE_DIR/tests/cli/kit.bash"
need_go
need python3
for program in synthetic_bench tslabd; do [ -x "$TSLAB_BUILD_DIR/$program" ] || skip "no $program was built"; done
command -v chromium || command -v chromium-headless-shell || command -v google-chrome ||
    skip "no chromium (make deps FOR=browser)"
unset TSLAB_OPTIONS NO_COLOR
clean
build_tslab "$PWD/tslab"
PYTHONPATH=$TSLAB_SOURCE_DIR/tests/daemon exec python3 "$TSLAB_SOURCE_DIR/tests/cli/web.py" "$PWD/tslab"
