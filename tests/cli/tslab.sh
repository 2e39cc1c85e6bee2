#!/bin/bash
# The tests of tslab/, among them its command line against the library's own programs.
set -u
go=$("$TSLAB_SOURCE_DIR/scripts/find-go.sh" 2>&1) || { echo "skipped: $go"; exit 77; }
cd "$TSLAB_SOURCE_DIR/tslab" || exit 1
export CGO_ENABLED=0 GOTOOLCHAIN=local GOFLAGS=-buildvcs=false
unset NO_COLOR TSLAB_OPTIONS
if ! "$go" mod download >"$OLDPWD/download.log" 2>&1; then
    echo "skipped: the Go modules of tslab cannot be fetched: $(tail -n 1 "$OLDPWD/download.log")"
    exit 77
fi
"$TSLAB_BUILD_DIR/stats_dump" --help | grep -q -e '--pid' ||
    echo "left out: the test with a real process, because this stats_dump shows none of its statistics"
TSLAB_STATS_DUMP=$TSLAB_BUILD_DIR/stats_dump "$go" test -vet=off -count=1 ./...
