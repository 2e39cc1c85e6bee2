#!/bin/bash
# synthetic_bench: flags and wrong words, balance of counts for each pattern and policy, files and signals.
set -eu
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
need python3
# The interpreter of the distribution has its jsonschema; another one in front may have none.
python=python3
"$python" -c 'import jsonschema' 2>/dev/null || [ ! -x /usr/bin/python3 ] || python=/usr/bin/python3
failed=0
for test in flags balance files; do
    "$python" "$TSLAB_SOURCE_DIR/tests/tools/synthetic_$test.py" || { echo "synthetic_$test.py failed" >&2; failed=1; }
done
exit $failed
