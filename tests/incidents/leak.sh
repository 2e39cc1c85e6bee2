#!/bin/bash
# A server of which one route leaks: that route is named, and no other; without the leak nobody is, and the script says so.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
need curl "curl is not installed"
clean
script=$TSLAB_SOURCE_DIR/scripts/incidents/leak.sh
"$script" >said 2>&1 || complain "the leak is not named: status $?"
for line in 'Which label holds the memory?' '/doctor' 'ACTION: "POST /orders" leaks' 'DIAGNOSIS: the route POST /orders'; do
    grep -q -F -- "$line" said || complain "it does not say: $line"
done
TSLAB=none PATIENCE=1 "$script" --no-fault >healthy 2>&1
[ $? -eq 1 ] || complain "a leak is named where there is none"
grep -q 'is not named as the culprit' healthy && grep -q 'tslab is not there' healthy || complain "and not said"
"$script" --fault >usage 2>&1
[ $? -eq 2 ] && grep -q '^usage: leak.sh' usage || complain "a wrong flag"
[ $failures -eq 0 ] || cat said healthy usage
finish
