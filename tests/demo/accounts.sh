#!/bin/bash
# A short run of the demo: the allocator's accounts by label are the server's own figures, and the doctor names nobody.
set -u
. "$TSLAB_SOURCE_DIR/tests/demo/kit.bash"

expect 0 --requests 1500 --rounds 2 --threads 3 --sessions 50 --json stats.json --figures figures.json
whole out
fits out
has out 'POST /session'
has out '^  reference data  *1 '
has out 'Statistics of temporal-slab as JSON: stats.json '
has out '^  1. Leaks: nothing leaks: no ended phase holds an object'
lacks out 'ACTION: "' # of a label; what the machine does to the threads is another matter
lacks out '^Leak:'
lacks out 'leaks .* objects'
python3 "$TSLAB_SOURCE_DIR/tests/demo/accounts.py" figures.json stats.json out 0 || fail "accounts"

[ $failures -eq 0 ]
