#!/bin/bash
# A service on a processor that it shares with busy programs: the library says that it is the scheduler.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
clean
TSLAB=none "$TSLAB_SOURCE_DIR/scripts/incidents/tail-spike.sh" >said 2>&1
status=$?
for line in '$ kill ' '   Verdict: scheduler' 'DIAGNOSIS: the scheduler, not the allocator' 'tslab is not there'; do
    grep -q -F -- "$line" said || { echo "FAILED: it does not say: $line" >&2; status=1; }
done
[ $status -eq 0 ] || cat said
exit $status
