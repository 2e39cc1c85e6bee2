#!/bin/bash
# bench/scaling.py: both tables, the figures kept, a peer that does not load, wrong words, no build.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
need python3
clean
tested=("$TSLAB_SOURCE_DIR/bench/scaling.py" --build "$TSLAB_BUILD_DIR")

expect 0 --smoke --threads 4 --reps 2 --peers nowhere.tsv --json kept.json
has err 'missing: all general peers: no list at nowhere.tsv'
has out '^objects: million operations per second'
has out '^requests: thousand requests per second'
has out '^| allocator | 1 thread | 2 threads | 4 threads |$'
has out '^| tslab .* | [0-9.]* | [0-9.]* ([0-9.]*x) | [0-9.]* ([0-9.]*x) |$'
python3 - <<'CHECK' || complain "kept figures: $(head -c 600 kept.json)"
import json
kept = json.load(open("kept.json"))
assert kept["complete"] and kept["failures"] == [] and kept["cpus"] and kept["commit"], kept
rows = {(r["program"], r["allocator"], r["threads"]): r["values"] for r in kept["rows"]}
assert set(rows) == {(p, a, n) for p in ("objects", "requests") for a in ("tslab", "glibc") for n in (1, 2, 4)}, rows
assert all(len(v) == 2 and min(v) > 0 for v in rows.values()), rows
table = [line.split("|")[2:5] for line in open("out") if line.startswith("| tslab ")]
shown = [float(cell.split()[0]) for cell in table[0]]
for n, value in zip((1, 2, 4), shown):
    assert abs(value - sum(rows["objects", "tslab", n]) / 2) < 0.06, (shown, rows)
CHECK

printf 'broken\t1\tgeneral\t%s\t\nsecure\t1\tchecked\t%s\t\n' "$PWD/peers.tsv" "$PWD/peers.tsv" >peers.tsv
expect 1 --smoke --threads 1 --reps 1 --peers peers.tsv
has err 'failed: benchmark_threads --threads 1 broken: the library was not preloaded'
has out '^| broken 1 | - |$'
lacks out secure

expect 2 --threads 0
expect 2 --threads 65
expect 2 --reps none
expect 2 --allocators tlsab --peers nowhere.tsv
has err "there is no allocator 'tlsab'; did you mean tslab?"
tested=("$TSLAB_SOURCE_DIR/bench/scaling.py" --build .)
expect 2
has err 'no programs in .: make scaling builds them'
finish
