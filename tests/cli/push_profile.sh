#!/bin/bash
# scripts/push-profile.sh and /processes/PID/profile of `tslab web`: what a Pyroscope server is sent, and what one that scrapes
# gets, is a profile of pprof with its labels and functions. See push_profile.py.
set -u
. "$TSLAB_SOURCE_DIR/tests/cli/kit.bash"
need_go
need python3
need curl
unset TSLAB_OPTIONS NO_COLOR http_proxy HTTP_PROXY all_proxy ALL_PROXY
build_tslab "$PWD/tslab"
compile_test profile/phases.c holder -fno-omit-frame-pointer
exec python3 "$TSLAB_SOURCE_DIR/tests/cli/push_profile.py" "$PWD/tslab" "$PWD/holder" "$TSLAB_SOURCE_DIR/scripts/push-profile.sh"
