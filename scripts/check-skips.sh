#!/bin/bash
# Prints what a run of tests has skipped, whole tests and single cases of programs, and fails when tests/skips.list does
# not allow it.
# Usage: check-skips.sh PART LOG SAID [LIST]
#   PART: of run-tests.sh; LOG: LastTest.log of ctest, which has all that each test said; SAID: what ctest has printed
#
# Who skips prints a line of its own, "skipped: REASON", indented or not; ctest tells which tests skip as a whole, and
# tests/kit/check.h counts the cases that do. One that gives no reason is not allowed.
# Exit status: 0 every skip is allowed, 1 one is not, 2 a line of the list or the log cannot be read.
set -u
[ $# -ge 3 ] || {
    echo "usage: check-skips.sh PART LOG SAID [LIST]" >&2
    exit 2
}
part=$1 log=$2 said=$3 list=${4:-$(dirname "$0")/../tests/skips.list}

awk -v part="$part" '
    function whole(text, pattern) { return text ~ ("^(" pattern ")$") }
    function verdict(reason,    n) {
        for (n = 1; n <= rules; n++)
            if (whole(part, parts[n]) && whole(test, tests[n]) && whole(reason, reasons[n])) break
        print (n <= rules ? "skipped in " : "SKIPPED, NOT ALLOWED in ") test ": " reason
        skips++
        if (n > rules) bad++
    }
    function close_test() {
        if (test == "") return
        if (told < cases) verdict("no reason given by a case")
        silent[test] = told == 0
        test = ""
    }
    FILENAME == ARGV[1] {
        if (/^#/ || NF == 0) next
        if (NF < 3) { print FILENAME ": " $0 ": a line is PART TEST REASON" > "/dev/stderr"; exit broken = 2 }
        rules++
        parts[rules] = $1
        tests[rules] = $2
        reasons[rules] = $0
        sub(/^[^ ]+ +[^ ]+ +/, "", reasons[rules])
        next
    }
    FILENAME == ARGV[3] {
        close_test()
        if (/\*\*\*(Skipped|Not Run)/) {
            test = $0
            sub(/^.* Test +#[0-9]+: /, "", test)
            sub(/ .*/, "", test)
            if (!(test in silent) || silent[test]) verdict("no reason given")
            test = ""
        }
        next
    }
    /^[0-9]+\/[0-9]+ Testing: / { close_test(); test = $3; told = cases = 0; seen++; next }
    test != "" && /^ *skipped: / { sub(/^ *skipped: */, ""); told++; verdict($0); next }
    test != "" && /^[0-9]+ skipped$/ { cases += $1 }
    END {
        if (broken) exit broken
        close_test()
        if (!seen) { print "check-skips.sh: no test in the log" > "/dev/stderr"; exit 2 }
        if (skips) print skips " skips in " part ", " bad + 0 " of them not allowed by tests/skips.list"
        exit bad > 0
    }' "$list" "$log" "$said"
