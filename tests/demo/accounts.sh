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
python3 - <<'END' || complain "the verdict is not that of the runs"
import json, re, statistics
runs = json.load(open("figures.json"))["runs"]
of = {b: [r for r in runs if r["backend"] == b] for b in ("glibc", "tslab")}
assert [len(v) for v in of.values()] == [2, 2]
text = open("out").read()
assert "median of 2 pairs of runs" in text
for head, key in (("Speed", lambda r: r["requests_per_second"]), ("Memory", lambda r: r["rss"]["end"]), ("Kernel", lambda r: r["page_faults"])):
    ratios = sorted(key(t) / key(g) for g, t in zip(of["glibc"], of["tslab"]))
    word, *said = re.search(r"^  %s: +(\S+) +([0-9.]+) of .* \(([0-9.]+) to ([0-9.]+)\); " % head, text, re.M).groups()
    near = [abs(float(s) - r) < 0.0051 for s, r in zip(said, (statistics.median(ratios), *ratios))]
    assert all(near), (head, said, ratios)
    middle = statistics.median(ratios)
    low, high = {"Speed": ("slower", "faster")}.get(head, ("less", "more"))
    assert abs(abs(middle - 1) - 0.05) < 1e-6 or word == (low if middle < 0.95 else high if middle > 1.05 else "level"), (head, word, middle)
assert re.search(r"^  page faults  .* %.2f$" % statistics.median(t["page_faults"] / g["page_faults"] for g, t in zip(of["glibc"], of["tslab"])), text, re.M)
END
python3 "$TSLAB_SOURCE_DIR/tests/demo/accounts.py" figures.json stats.json out 0 || complain "accounts"

finish
