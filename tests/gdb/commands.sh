#!/bin/bash
# The gdb commands of share/gdb show what the library's own statistics say: of a running process, of a core file of it, of
# one allocator or all; and come to an end where lists are damaged.
set -eu
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
source=$TSLAB_SOURCE_DIR
need gdb "gdb is not installed (Debian package gdb)"
[ "$(gdb -nx -batch -ex 'python print(6 * 7)' 2>&1)" = 42 ] || skip "this gdb has no Python"
grep -q '^TSLAB_DEBUG_INFO:BOOL=ON' "$TSLAB_BUILD_DIR/CMakeCache.txt" || skip "built without TSLAB_DEBUG_INFO"

compile_test gdb/held.c held -g0

# look OUT ARGUMENT... : runs gdb, output to OUT, errors to OUT.errors. Its exit code is that of the last command.
look() {
    local out=$1 code=0
    shift
    timeout 300 gdb -nx -batch -iex 'set debuginfod enabled off' -iex 'set print thread-events off' -ex 'set confirm off' "$@" >"$out" 2>"$out.errors" || code=$?
    [ $code -lt 100 ] || fail "gdb ended with $code: $(cat "$out.errors")"
    ! grep -q Traceback "$out.errors" || fail "gdb: $(cat "$out.errors")"
}
rm -f core
look live -ex "source $source/share/gdb/temporal_slab.py" -ex run -ex 'tslab phases' -ex 'tslab labels' -ex 'generate-core-file core' -ex kill ./held
grep -q '^phase ' live || skip "gdb cannot run programs here: $(cat live.errors)"
[ -s core ] || fail "no core file: $(tail -n 3 live live.errors)"
look dead -ex "source $source/share/gdb/temporal_slab.py" -ex 'tslab phases' -ex 'tslab labels' ./held core

python3 - live dead <<'END' || fail "gdb and the library do not agree"
import re, sys

phases, labels = {}, {}
for line in open("live"):
    line = line.rstrip("\n")
    if m := re.match(r"phase (0x[0-9a-f]+) (\d+) (\d+) (.+) (active|ended) (\d+) (\d+) (\d+)$", line):
        phases[m[1], int(m[3])] = (int(m[2]), "" if m[4] == "-" else m[4], m[5], int(m[6]), int(m[7]), int(m[8]))
    if m := re.match(r"label (0x[0-9a-f]+) (.+?)((?: \d+){8})$", line):
        labels[m[1], m[2]] = [int(n) for n in m[3].split()]
bad = 0
if len(phases) < 8 or len(labels) < 7:
    sys.exit("the program told of %d phases and %d labels only" % (len(phases), len(labels)))
for name in sys.argv[1:]:
    owner, seen, told = None, set(), set()
    for line in open(name):
        line = line.rstrip("\n")
        if m := re.match(r"allocator (0x[0-9a-f]+): 16 ring ids, current (\d+)$", line):
            owner = m[1]
        m = re.match(r"  (\S+) +(\d+)  (.*?) *  (active|advanced|draining|released) +(-|(?:>= )?\d+\.\d s) +(\d+) +(\d+) +(\d+)( +~)?$", line)
        if m:
            key = owner, int(m[2])
            seen.add(key)
            row = (int(m[1], 0), m[3].strip(), "active" if m[4] == "active" else "ended", int(m[6]), int(m[7]), int(m[8]))
            if key not in phases and row[3:] == (0, 0, 0):
                continue  # the current ring id, not used yet
            if row != phases.get(key) or m[9]:
                bad = print("%s: era %s: library %s, gdb %s" % (name, key, phases.get(key), row), file=sys.stderr) or 1
            if m[5] != "-" and m[5].startswith(">=") != (name == "dead"):
                bad = print("%s: age '%s'" % (name, m[5]), file=sys.stderr) or 1
        elif m := re.match(r"  (\S.*?)((?: +\d+){8})$", line):
            row = [int(n) for n in m[2].split()]
            told.add((owner, m[1]))
            if row != labels.get((owner, m[1])):
                bad = print("%s: label %s: library %s, gdb %s" % (name, m[1], labels.get((owner, m[1])), row), file=sys.stderr) or 1
    if missing := (phases.keys() - seen) | (labels.keys() - told):
        bad = print("%s: gdb does not show %s" % (name, missing), file=sys.stderr) or 1
    print("%s: %d phases and %d labels" % (name, len(seen), len(told)))
sys.exit(bad)
END

# docs/debugging.md shows a part of this, with its numbers: they are the same each time where pages have 4 KiB.
sed -n '/^allocator/,$p' live >said
page() { python3 "$source/tests/cli/shown.py" "${exactly[@]}" "$source/docs/debugging.md" "tslab phases" "$@"; }
exactly=()
[ "$(getconf PAGESIZE)" != 4096 ] || exactly=(--exactly)
page said || fail "docs/debugging.md"
others=(s/draining/closing/ '/rounds/d')
[ ${#exactly[@]} -eq 0 ] || others+=(s/696320/696321/ s/275/276/)
for other in "${others[@]}"; do
    sed "$other" said >changed
    ! page changed 2>/dev/null || fail "not told: $other"
done

# One allocator, by address; none at another.
second=$(awk '$1 == "phase" && /of the second/ { print $2; exit }' live)
look one -ex "source $source/share/gdb/temporal_slab.py" -ex "tslab phases $second" ./held core
[ "$(grep -c '^allocator' one)" = 1 ] && grep -q "^allocator $second" one || fail "tslab phases $second: $(cat one)"
look none -ex "source $source/share/gdb/temporal_slab.py" -ex 'tslab phases 0x1000' ./held core
grep -q '^no allocator at 0x1000' none.errors || fail "tslab phases 0x1000: $(cat none.errors)"
look early -ex "source $source/share/gdb/temporal_slab.py" -ex 'tslab phases' ./held
grep -qE '^no allocator$|cannot be read' early.errors || fail "before the start: $(cat early early.errors)"
look strange -ex "source $source/share/gdb/temporal_slab.py" -ex 'tslab phases' "$(command -v cat)"
grep -q 'no temporal-slab with debug information' strange.errors || fail "another program: $(cat strange.errors)"

rm -f core

# Damaged lists: every phase is there, those are marked, the others are right.
look torn -ex "source $source/share/gdb/temporal_slab.py" -ex 'run torn' -ex 'tslab phases' -ex kill ./held
for label in 'two threads' request rounds; do
    grep -qE "^  .* $label .* ~\$" torn || fail "no mark at '$label': $(cat torn torn.errors)"
done
grep -qE '^  .* of the second .* [0-9]+$' torn || fail "what is whole is not shown: $(cat torn)"
grep -q 'the list of heaps was being changed' torn || fail "no remark: $(cat torn)"
