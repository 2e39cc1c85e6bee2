#!/bin/bash
# The screen of tslab in a real terminal, killed in every way that can be survived: see terminal.py.
set -u
. "$TSLAB_SOURCE_DIR/tests/cli/kit.bash"
need_go
unset TSLAB_OPTIONS NO_COLOR
build_tslab "$PWD/tslab"
"$TSLAB_BUILD_DIR/stats_dump" --no-text >stats.json || fail "stats_dump"
python3 "$TSLAB_SOURCE_DIR/tests/cli/terminal.py" "$PWD/tslab" stats.json "$TSLAB_BUILD_DIR/stats_dump"
