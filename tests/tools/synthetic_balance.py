"""synthetic_bench: for each pattern, policy, kind of phase and allocator the counts balance, and the statistics document
is valid and says the same. The program checks itself and exits with 1; here its results are checked again.
"""

import os

from synthetic_kit import SOURCE, check, finish, load, result

PATTERNS = ("burst", "steady", "leak", "hotspot", "kernel", "contention")
EPOCHS = ("per_req", "batch:7", "manual")
FREES = ("within_req", "lag:5", "leak:2", "leak:50")

try:
    from jsonschema import Draft202012Validator

    VALID = Draft202012Validator(load(os.path.join(SOURCE, "share", "stats.schema.json")))
except ImportError:
    VALID = None
    print("not validated against the schema: no jsonschema (Debian package python3-jsonschema)")


def balanced(name, r, requests):
    o = r["objects"]
    check(r["balanced"] is True and r["requests"] == requests, name, r["balanced"], r["requests"])
    check(o["allocated"] == o["freed"] + o["leaked"] + o["live"], name, o)
    check(o["allocated"] >= requests * r["settings"]["objs_min"] > 0 and o["failed"] == 0, name, o)
    check((o["leaked"] > 0) == r["settings"]["free_policy"].startswith("leak"), name, "leaked", o)
    for key in ("allocated", "freed", "leaked"):
        check(sum(x[key] for x in r["routes"]) == o[key], name, "routes", key, r["routes"])


def document(name, r, d):
    """What the library's document and the program's members say of the same run."""
    o = r["objects"]
    for key in ("allocated", "freed", "leaked"):
        check(d["benchmark_objects_" + key] == o[key], name, "benchmark_objects_" + key)
    check(d["benchmark_requests_completed"] == r["requests"], name, "benchmark_requests_completed")
    if r["allocator"] == "malloc":
        return
    check(d["live_objects"] == o["leaked"] + o["live"], name, "live_objects", d["live_objects"], o)
    check(sum(x["objects_allocated"] for x in d["labels"]) == o["allocated"], name, "labels")
    for error in VALID.iter_errors(d) if VALID else ():
        check(False, name, list(error.absolute_path), error.message[:200])
        break


def run(*arguments, requests=120):
    name = " ".join(arguments)
    r, err = result("--stats-file=stats.json", "--req_rate=0", "--requests=%d" % requests, *arguments)
    check(err == "", name, err[:300])
    if not r:
        return
    balanced(name, r, requests)
    document(name, r, load("stats.json") or {})


for pattern in PATTERNS:
    for allocator in ("tslab", "malloc"):
        run("--pattern", pattern, "--allocator", allocator)
for epoch in EPOCHS:
    for free in FREES:
        for phases in ("ring", "domain"):
            for threads in ("1", "3"):
                run("--epoch_policy", epoch, "--free_policy", free, "--phases", phases, "--threads", threads)
        run("--allocator=malloc", "--epoch_policy", epoch, "--free_policy", free)

# Requests of several threads in phases that end under them, and more phases with leaks than there are ids.
for free in ("lag:2", "leak:1"):
    run("--pattern=contention", "--epoch_policy=per_req", "--phases=ring", "--free_policy", free, requests=4000)

# Allocations that are refused are counted, and so by both sides.
r, _ = result("--req_rate=0", "--requests=200", "--free_policy=lag:100", environment={"TSLAB_OPTIONS": "max_bytes=256k"})
if r:
    check(r["objects"]["failed"] > 0 and r["balanced"], "max_bytes", r["objects"])
    check(r["objects"]["allocated"] == r["objects"]["freed"] + r["objects"]["live"], "max_bytes", r["objects"])
finish()
