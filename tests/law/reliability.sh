#!/bin/bash
# docs/reliability.md: each row has a promise, a command, what it said last and when; the tests, programs and make targets that
# commands name are there.
set -eu
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
cd "$TSLAB_SOURCE_DIR"

rows=$(sed -n '/^| promise |/,/^$/p' docs/reliability.md | tail -n +3 | sed 's/\\|/OR/g')
[ "$(grep -c . <<<"$rows")" -ge 10 ] || fail "docs/reliability.md has hardly any row"
while IFS='|' read -r _ promise command result date rest; do
    row=${promise:0:60}
    [ -n "${promise// /}" ] && [ -n "${command// /}" ] && [ -n "${result// /}" ] && [ -z "${rest// /}" ] || complain "$row: not four cells"
    [[ $date =~ ^\ (20[0-9]{2}-[0-9]{2}-[0-9]{2}|each\ commit|-)\ $ ]] || complain "$row: no date: $date"
    for target in $(grep -oE '`make [a-z-]+' <<<"$command" | cut -d' ' -f2); do
        grep -q "^$target:" Makefile || complain "$row: make has no target $target"
    done
    for test in $(grep -oE '[a-z]+/[a-z_]+' <<<"$(grep -oE "(-R |OR|')[^\`]*" <<<"$command")" | sort -u); do
        ls tests/"$test".* >/dev/null 2>&1 || [[ $test == build/* || $test == */ ]] || complain "$row: there is no test $test"
    done
    for path in $(grep -oE 'tests/[a-z_/]+\.py|scripts/[a-z-]+\.sh' <<<"$command"); do
        [ -e "$path" ] || complain "$row: there is no $path"
    done
done <<<"$rows"
finish
