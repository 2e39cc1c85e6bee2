#!/bin/bash
# Each patch in adoption/ changes fewer than thirty lines, brings hardly anything of others along, and is told on
# docs/adoption.md as it is: how many lines, which files. The script fetches no archive without a hash.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
cd "$TSLAB_SOURCE_DIR" || exit 1
page=docs/adoption.md script=scripts/adoption.sh results=docs/results/adoption.md

patches=0
for patch in adoption/*.patch; do
    patches=$((patches + 1)) name=$(basename "$patch" .patch)
    changed=$(grep -E '^[+-]' "$patch" | grep -vcE '^(\+\+\+|---) ')
    context=$(grep -c '^ ' "$patch")
    [ "$changed" -lt 30 ] || complain "$patch changes $changed lines: under 30 is the rule"
    [ "$context" -le 50 ] || complain "$patch has $context lines of the program: diff -U1 has few"
    grep -qF "[$name.patch](../$patch), $changed lines" "$page" || complain "$page does not say that $name.patch has $changed lines"
    grep -qF "$patch changes $changed lines, counting" "$results" || complain "$results is of another $name.patch: run $script"
    for file in $(sed -nE 's|^\+\+\+ b/([^\t ]+).*|\1|p' "$patch"); do
        grep -qF "\`$file\`" "$page" || complain "$page does not name $file, which $patch changes"
    done
    grep -qE "^fetch pool/[^ ]*/${name}_[^ ]*\.orig\.tar\.[a-z]+ [0-9a-f]{64}\$" "$script" || complain "$script has no archive and hash for $name"
done
[ "$patches" -eq 2 ] || complain "there are $patches patches in adoption/ and not two"
[ "$(grep -c '^fetch ' "$script")" -eq "$patches" ] || complain "$script fetches more than what is patched"
for patch in adoption/leaks/*.patch; do # of what is adopted, and what they do stands where the gate is told of
    [ -f "adoption/${patch##*/}" ] || complain "$patch is for no program that is adopted"
    [ "$(grep -E '^[+-]' "$patch" | grep -vcE '^(\+\+\+|---) ')" -lt 5 ] || complain "$patch changes more than a leak needs"
    grep -qF "(../$patch)" docs/gate.md || complain "docs/gate.md does not name $patch"
done
bash -n "$script" || complain "$script cannot be read"

# Each ratio that the page sets in italics is one of the results, within a tenth: they are measured anew.
for ratio in $(grep -oE '\*[0-9]+\.[0-9]{2}\*' "$page" | tr -d '*'); do
    awk -F ' *[|] *' -v r="$ratio" '$5 + 0 >= r * 0.9 && $5 + 0 <= r * 1.1 { found = 1 } END { exit !found }' "$results" ||
        complain "$page says $ratio, which $results does not have"
done
finish
