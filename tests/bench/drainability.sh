#!/bin/bash
# tslab_drainability: wrong words refused, a short run whose counts are known, files, an interrupt.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
program=$TSLAB_BUILD_DIR/tslab_drainability

tested=("$program")
wrong() { # PATTERN ARGUMENT...
    local pattern=$1
    shift
    expect 2 "$@"
    [ ! -s out ] || complain "tslab_drainability $*: output in spite of wrong usage"
    has err "$pattern"
}
need python3

wrong 'is not a flag' --quik
wrong 'is not a flag' stray
wrong 'needs a value' --json
wrong 'needs a value' --quick --seed
wrong '--only takes routing|.*; did you mean routing?' --only rooting
wrong 'from 0 to 4294967295' --seed -1
wrong 'from 0 to 4294967295' --seed 4294967296
wrong "not '7x'" --seed 7x
wrong 'in steps of 1000' --requests 10500
wrong 'from 10000 to' --requests 0
expect 0 --help
for flag in --quick --only --requests --seed --json --csv --help; do has out "$flag"; done
expect 1 --quick --json no/such/folder/file
has err 'cannot write'

# Every count, by default choices; without a terminal nothing is said but the results.
expect 0 --quick --json quick.json --csv quick.csv
[ ! -s err ] || complain "standard error has text: $(head -c 300 err)"
has out '^defects: 0'
python3 "$TSLAB_SOURCE_DIR/tests/bench/drainability.py" quick.json quick.csv || complain "counts of the short run"

# Other choices give other numbers, the same ones the same.
expect 0 --quick --only sweep --seed 7 --json seven.json
expect 0 --quick --only sweep --seed 7 --json again.json
[ "$(grep -v '"command"' seven.json)" = "$(grep -v '"command"' again.json)" ] || complain "the same seed, other numbers"
! cmp -s <(grep '"dsr"' seven.json) <(grep '"dsr"' quick.json) || complain "another seed, the same numbers"

# An interrupt keeps what is done. The file is there when the signal is waited for.
rm -f interrupted.json
"$program" --only routing --json interrupted.json >out 2>err &
pid=$!
eventually 120 [ -e interrupted.json ]
kill -INT $pid
wait $pid
status=$?
[ $status -eq 130 ] || complain "interrupted: exit $status: $(head -c 300 err)"
has out INTERRUPTED
python3 -c '
import json
r = json.load(open("interrupted.json"))
assert r["complete"] is False and r["defects"] == 0 and r["failures"] == 0, r
assert not any(arm["finished"] for arm in r["routing"]), r["routing"]
' || complain "the file of an interrupted run"

finish
