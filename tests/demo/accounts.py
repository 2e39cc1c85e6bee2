"""Holds the demo's own figures against its allocator's statistics: accounts.py FIGURES STATISTICS REPORT LEAKED

Of the last run on temporal-slab. Per route the receipts of its phases must add up to the account of its label, to the
object and the byte; the table by label must show it. LEAKED: how many objects are to have been left behind.
"""

import json
import re
import sys

SAME = {
    "phases": ("phases_opened", "phases_ended"),
    "objects": ("objects_allocated",),
    "bytes": ("bytes_allocated",),
    "objects_freed": ("objects_freed",),
    "bytes_freed": ("bytes_freed",),
    "objects_released": ("objects_released",),
    "bytes_released": ("bytes_released",),
    "objects_escaped": ("objects_escaped", "live_objects"),
    "bytes_escaped": ("bytes_escaped", "live_bytes"),
    "leaked": ("objects_escaped", "phases_draining"),
}
SHOWN = {
    "phases": "phases_opened", "objects": "objects_allocated", "bytes": "bytes_allocated",
    "objects_escaped": "objects_escaped", "live_objects": "live_objects", "committed_bytes": "committed_bytes",
    "peak_bytes": "peak_bytes", "slow_path_hits": "slow_path_hits", "samples": "alloc_samples",
    "sampled_cpu_ns": "alloc_cpu_ns_sum", "sampled_wait_ns": "alloc_wait_ns_sum",
}


def main():
    with open(sys.argv[1], encoding="utf-8") as text:
        figures = json.load(text)
    with open(sys.argv[2], encoding="utf-8") as text:
        statistics = json.load(text)
    with open(sys.argv[3], encoding="utf-8") as text:
        rows = re.search(r"^By label(.*?)^Phases", text.read(), re.S | re.M).group(1).split("\n")
    table = {row[2:23].rstrip(): row[23:] for row in rows}
    run = [r for r in figures["runs"] if r["backend"] == "tslab"][-1]
    labels = {row["label"]: row for row in statistics["labels"]}
    problems = []

    def same(what, left, right):
        if left != right:
            problems.append("%s: %r and %r" % (what, left, right))

    for route in run["routes"]:
        for own, keys in SAME.items():
            for key in keys:
                same("%s, %s and %s" % (route["label"], own, key), route[own], labels[route["label"]][key])
        same("%s, requests and phases" % route["label"], route["requests"], route["phases"])
    for row in run["labels"]:
        for own, key in SHOWN.items():
            same("%s, told %s" % (row["label"], own), row[own], labels[row["label"]][key])
        if row["objects"] != 0:
            words = table.get(row["label"], "no such row, and nothing of it").split()
            numbers = [words[i].replace(",", "") for i in (0, 1, 6, 9) if i < len(words)]
            same("%s in the table" % row["label"], numbers,
                 [str(row[key]) for key in ("phases", "objects", "objects_escaped", "samples")])
    sampling = statistics["slowpath_sampling"]
    same("samples", sum(row["alloc_samples"] for row in labels.values()), sampling["samples"])
    same("their time", sum(row["alloc_wall_ns_sum"] for row in labels.values()), sampling["wall_ns_sum"])
    same("requests", sum(route["requests"] for route in run["routes"]), figures["requests"])
    same("figures that differ", run["accounts_differing"], 0)
    same("receipts compared", run["accounts_compared"], figures["requests"])
    same("leaked", sum(route["leaked"] for route in run["routes"]), int(sys.argv[4]))
    if sampling["samples"] == 0:
        problems.append("nothing was sampled")
    for text in problems[:20]:
        print(text, file=sys.stderr)
    print("%d routes, %d labels, %d problems" % (len(run["routes"]), len(labels), len(problems)))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
