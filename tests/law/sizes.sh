#!/bin/bash
# No function of the library, the daemon or what they share has more than 70 lines. Names the files of src/ that have
# grown past one comfortable read, which is a notice only.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
cd "$TSLAB_SOURCE_DIR" || exit 1
find src -name '*.[ch]' -exec awk 'END { if (NR > 540) print "notice: " FILENAME " has " NR " lines" }' {} \;
# As the formatter leaves them: a definition begins in the first column and ends at the first "}" there.
long=$(find src common daemon -name '*.[ch]' -exec awk '
    FNR == 1 { at = 0 }
    /^[A-Za-z_].*\) \{$/ || (at == 0 && /^ .*\) \{$/ && before ~ /^[A-Za-z_].*[(,]$/) { at = FNR; name = $0; seen++ }
    { before = /^ / ? before : $0 }
    /^}/ { if (at != 0 && FNR - at + 1 > 70) print FILENAME ": " FNR - at + 1 " lines: " name; at = 0 }
    END { print "seen", seen }' {} +)
grep -v '^seen' <<<"$long" && complain "functions of more than 70 lines"
n=$(awk '/^seen/ { n += $2 } END { print n }' <<<"$long")
[ "${n:-0}" -gt 1000 ] || complain "only ${n:-0} functions seen"
echo "$n functions"
finish
