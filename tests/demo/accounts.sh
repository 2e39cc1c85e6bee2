#!/bin/bash
# A short run of the demo: the allocator's accounts by label are the server's own figures, and the doctor names nobody.
set -u
. "$TSLAB_SOURCE_DIR/tests/demo/kit.bash"

expect 0 --requests 1500 --rounds 2 --tables --threads 3 --sessions 50 --json stats.json --figures figures.json
whole out
fits out
has out 'POST /session'
has out '^  reference data  *1 '
has out 'Statistics of temporal-slab as JSON: stats.json '
has out '^  1. Leaks: none found: no ended phase holds an object'
lacks out 'ACTION: "' # of a label; what the machine does to the threads is another matter
lacks out '^Leak:'
lacks out 'leaks .* objects'
python3 - <<'END' || complain "the verdict is not that of the runs"
import json, re, statistics
runs = json.load(open("figures.json"))["runs"]
of = {b: [r for r in runs if r["backend"] == b] for b in ("glibc", "tslab")}
assert [len(v) for v in of.values()] == [2, 2]
text = open("out").read()
assert re.search(r"^  2 pairs of runs ", text, re.M)
figures = {"processor time": lambda r: r["cpu_seconds"], "page faults": lambda r: r["page_faults"],
           "resident after the last phase": lambda r: r["rss"]["end"], "resident at the peak": lambda r: r["rss"]["peak"],
           "requests per second": lambda r: r["requests_per_second"], "latency, p99": lambda r: r["latency_ns"]["p99"]}
for name, key in figures.items():
    ratios = sorted(key(t) / key(g) for g, t in zip(of["glibc"], of["tslab"]))
    *said, word = re.search(r"^  %s  .* ([0-9.]+)  \(([0-9.]+) to ([0-9.]+)\)   (\S.*)$" % name, text, re.M).groups()
    middle = statistics.median(ratios)
    assert all(abs(float(s) - r) < 0.0051 for s, r in zip(said, (middle, *ratios))), (name, said, ratios)
    if name in ("requests per second", "latency, p99"):
        assert word == "not judged", (name, word) # two pairs are too few
    elif abs(abs(middle * 100 % 1) - 0.5) > 1e-6: # between two shown ratios
        disagree = ratios[0] <= 1 <= ratios[-1]
        assert word == ("level" if abs(round(100 * middle) - 100) <= 10 else "not judged" if disagree else "better" if middle < 1 else "worse"), (name, word)
assert re.search(r"^  page faults  .* %.2f$" % statistics.median(t["page_faults"] / g["page_faults"] for g, t in zip(of["glibc"], of["tslab"])), text, re.M)
END
python3 "$TSLAB_SOURCE_DIR/tests/demo/accounts.py" figures.json stats.json out 0 || complain "accounts"

finish
