#!/bin/bash
# Pages that the kernel keeps: lazily freed ones and refused calls are told apart; with neither nothing is accused.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
clean
script=$TSLAB_SOURCE_DIR/scripts/incidents/kernel-keeps-pages.sh
"$script" >said 2>&1 || complain "the kernel is not named: status $?"
for line in 'LazyFree' 'RSS did not fall: purge_policy is MADV_FREE' 'DIAGNOSIS: the kernel keeps pages'; do
    grep -q -F -- "$line" said || complain "it does not say: $line"
done
if ! sed -n 's/^left out: /skipped: /p' said | grep .; then
    grep -q 'DIAGNOSIS: the kernel refuses' said || complain "the refusal is not named"
fi
TSLAB=none "$script" --no-fault >healthy 2>&1
[ $? -eq 1 ] || complain "the kernel is accused although it takes the pages"
grep -q 'is not named as the culprit' healthy && ! grep -q 'RSS did not fall' healthy || complain "and not said"
[ $failures -eq 0 ] || cat said healthy
finish
