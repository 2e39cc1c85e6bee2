#!/bin/bash
# The tests of tslab/, among them its output against the library's own: its doctor's, and its reports in every form.
set -u
. "$TSLAB_SOURCE_DIR/tests/cli/kit.bash"
scratch=$PWD
need_go
compile_test reports/print.c print
./print || exit 1

cd "$source/tslab" || exit 1
unset NO_COLOR TSLAB_OPTIONS
"$TSLAB_BUILD_DIR/stats_dump" --help | grep -q -e '--pid' ||
    echo "skipped: the test with a real process, because this stats_dump shows none of its statistics"
TSLAB_REPORTS=$scratch TSLAB_STATS_DUMP=$TSLAB_BUILD_DIR/stats_dump "$go" test -v -vet=off -count=1 ./... >"$scratch/log" 2>&1
status=$?
# Only a run with -v tells which tests are skipped, and why: in the line before.
awk '/^ *--- SKIP: / { print "skipped: " $3 ": " reason } { reason = $0; sub(/^ *[a-z_]+\.go:[0-9]+: (skipped: )?/, "", reason) }' "$scratch/log"
grep -E '^(ok|FAIL|panic)' "$scratch/log"
[ $status -eq 0 ] || grep -vE '^ *(=== |--- (PASS|SKIP))' "$scratch/log"
exit $status
