#!/bin/bash
# The same verdict inside and outside: see verdicts.py.
set -u
. "$TSLAB_SOURCE_DIR/tests/cli/kit.bash"
need_go
unset TSLAB_OPTIONS NO_COLOR
need python3
clean ./*.json ./*.yml
build_tslab "$PWD/tslab"
PYTHONPATH=$TSLAB_SOURCE_DIR/tests/daemon exec python3 "$TSLAB_SOURCE_DIR/tests/cli/verdicts.py" "$PWD/tslab" "$@"
