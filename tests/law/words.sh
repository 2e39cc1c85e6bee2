#!/bin/bash
# Thresholds and sentences of the diagnosis are those of src/stats/words.def: what is generated for tslab is up to date,
# nobody says one of its sentences by himself, and docs have its thresholds.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
cd "$TSLAB_SOURCE_DIR" || exit 1
words=src/stats/words.def

diff -u tslab/internal/doctor/words.go <(scripts/words.sh print) >&2 ||
    complain "tslab/internal/doctor/words.go is out of date: scripts/words.sh writes it"

# What stands between two conversions of a sentence, if it is long enough to be known by it.
pieces=$(grep -E '^(SAY|ADVICE|VERDICT|CAUSE)\(' $words | sed -E 's/^[A-Z]+\([A-Za-z_]+, "(.*)"\)$/\1/; s/%(llu|u|s|\.[0-9]f|%)/\n/g' |
    grep -E '.{24,}' | sed -E 's/^[ ,.;:)]+|[ ,.;:(]+$//g')
[ "$(wc -l <<<"$pieces")" -gt 60 ] || complain "$words has a form that this test does not read"
again=$(grep -rnF -f <(echo "$pieces") src daemon tslab tools --include='*.[ch]' --include='*.go' --include='*.js' --include='*.html' |
    grep -vE '^tslab/(internal/doctor/words|.*_test)\.go:')
[ -z "$again" ] || complain "says what words.def says: $again"

limit() { sed -nE "s/^(LIMIT|RATE)\($1, ([0-9.]+), .*/\2/p" $words; }
has docs/which-number.md "^| lock acquisitions that had to wait | < $(limit LOCK_GOOD) % | $(limit LOCK_GOOD)-$(limit LOCK_NORMAL) % | $(limit LOCK_NORMAL)-$(limit LOCK_WATCH) % | > $(limit LOCK_WATCH) % |\$"
has docs/which-number.md "^| retries per operation | < $(limit RETRY_GOOD) | < $(limit RETRY_NORMAL) | < $(limit RETRY_WATCH) | $(limit RETRY_WATCH) and more |\$"
has docs/which-number.md "not $(limit LEAK_SECONDS)\$"
has docs/tslab.md " with some of $(limit LEAK_SECONDS) s or more\.\$"
finish
