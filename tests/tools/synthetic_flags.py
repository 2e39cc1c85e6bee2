"""synthetic_bench: each flag changes what is done, presets are what they say, wrong words are refused with a hint."""

from synthetic_kit import call, check, finish, result, stats

FAST = ("--req_rate=0", "--requests=200")  # unpaced: ends when it is done

PRESETS = {  # pattern: threads, rate, least and most objects, size, epoch policy, free policy
    "burst": (1, 2000, 80, 200, 128, "per_req", "within_req"),
    "steady": (1, 5000, 50, 50, 128, "batch:16", "lag:8"),
    "leak": (1, 2000, 80, 200, 128, "per_req", "leak:1"),
    "hotspot": (1, 4000, 120, 120, "mixed", "per_req", "within_req"),
    "kernel": (1, 2000, 300, 300, 256, "per_req", "within_req"),
    "contention": (8, 10000, 50, 50, 128, "batch:100", "within_req"),
}


def presets():
    for pattern, wanted in PRESETS.items():
        r, _ = result("--pattern", pattern, "--requests=20")
        s = r["settings"]
        names = ("threads", "req_rate", "objs_min", "objs_max", "size", "epoch_policy", "free_policy")
        check(tuple(s[n] for n in names) == wanted, pattern, s)
        check(s["duration_s"] == 60 and s["rss_sample_ms"] == 100 and s["seed"] == 1, pattern, s)
        check(r["pattern"] == pattern and r["allocator"] == "tslab" and r["requests"] == 20, pattern, r)
    check(len({tuple(x["route"] for x in result("--pattern", p, *FAST)[0]["routes"]) for p in PRESETS}) == len(PRESETS),
          "patterns share routes")
    hot, _ = result("--pattern=hotspot", *FAST)
    shares = [x["allocated"] for x in hot["routes"]]
    check(shares[0] > sum(shares[1:]) and min(shares) > 0, "hotspot", shares)


def order():
    """A flag overrides the preset on either side of the pattern; the last of a flag counts."""
    for arguments in (("--size=64", "--pattern=kernel"), ("--pattern=burst", "--pattern=kernel", "--size", "64")):
        s = result(*arguments, *FAST)[0]["settings"]
        check(s["size"] == 64 and s["objs_min"] == 300, arguments, s)
    check(result("--objs-min=10", *FAST)[0]["settings"]["objs_min"] == 10, "- for _")


def amounts():
    r, _ = result(*FAST, "--objs_min=7", "--objs_max=7")
    check(r["objects"]["allocated"] == 1400, "objs", r["objects"])
    spread = [result(*FAST, "--objs_min=3", "--objs_max=5", "--seed", str(n))[0]["objects"]["allocated"] for n in (1, 1, 2)]
    check(all(600 < n < 1000 for n in spread), "objs_min, objs_max", spread)
    check(spread[0] == spread[1] != spread[2], "seed", spread)
    r, _ = result("--requests=301", "--req_rate=0", "--threads=3", "--objs_min=10", "--objs_max=10", "--free_policy=lag:4")
    check(r["requests"] == 301 and r["objects"]["live"] == 3 * 4 * 10, "threads, lag", r["objects"])
    check(r["settings"]["phases"] == "domain", "threads with a phase for each request", r["settings"])
    same = [result(*FAST, "--allocator", a)[0] for a in ("tslab", "malloc")]
    check(same[0]["objects"] == same[1]["objects"], "the same work", same[0]["objects"], same[1]["objects"])
    check("library" in same[0] and "library" not in same[1] and same[1]["allocator"] == "malloc", "allocator")


def sizes():
    live = ("--free_policy=lag:20", "--epoch_policy=manual", "--objs_min=40", "--objs_max=40", *FAST)
    used = {}
    for size in ("500", "mixed", "300000"):
        rows = stats("--size", size, *live)["classes"]
        used[size] = {c["class_index"] for c in rows if c["live_bytes"] > 0}
    check(used["500"] == {6}, "size", used)
    check(used["mixed"] == {0, 1, 2, 3, 4, 5, 6, 7}, "mixed", used)
    check(used["300000"] == {54}, "large", used)


def pace():
    # However fast or slow the machine is, the second request of an hour does not come; and unpaced all come at once.
    r, _ = result("--req_rate=0.001", "--duration_s=0.5")
    check(r["requests"] == 1, "rate", r["requests"])
    r, _ = result("--req_rate=100", "--duration_s=0.5")
    check(r["since_due_ns"]["count"] == r["latency_ns"]["count"] == r["requests"], "latencies", r["latency_ns"])
    for t in (r["latency_ns"], r["since_due_ns"], r["close_ns"]):
        check(0 < t["p50"] <= t["p90"] <= t["p99"] <= t["p999"] <= t["max"], "percentiles", t)
    r, _ = result("--req_rate=0", "--requests=100", "--duration_s=100000")
    check(r["requests"] == 100, "unpaced", r["requests"])


def policies():
    wanted = {"per_req": 200, "batch:7": 28, "batch:200": 1, "batch:1000": 0, "manual": 0}
    for phases in ("ring", "domain"):
        for policy, ended in wanted.items():
            r, _ = result(*FAST, "--epoch_policy", policy, "--phases", phases)
            more = 1 if phases == "domain" and 200 % {"batch:7": 7, "batch:1000": 1000, "manual": 1000}.get(policy, 1) else 0
            check(r["phases"]["ended"] == ended + more, phases, policy, r["phases"])
        document = stats(*FAST, "--phases", phases, "--free_policy=lag:3")
        ids = [p["epoch_id"] for p in document["phases"] if p["live_objects"] > 0]
        check(len(ids) == 3 and all((n >= 1 << 31) == (phases == "domain") for n in ids), phases, ids)
    for pct in (0, 0.5, 3, 100):
        o = result(*FAST, "--free_policy", "leak:%g" % pct)[0]["objects"]
        due = o["allocated"] * pct / 100
        check(due - 0.2 * o["allocated"] ** 0.5 - 50 <= o["leaked"] <= due + 1e-6, "leak", pct, o)
    check(result(*FAST, "--free_policy=within_req", "--pattern=steady")[0]["objects"]["live"] == 0, "within_req")


def watching():
    few, _ = result("--duration_s=0.3", "--rss_sample_ms=0")
    many, _ = result("--duration_s=0.3", "--rss_sample_ms=10")
    check(few["rss"]["samples"] == 2 < many["rss"]["samples"], "rss_sample_ms", few["rss"], many["rss"])
    check(0 < few["rss"]["start"] <= few["rss"]["peak"] >= few["rss"]["end"] > 0, "rss", few["rss"])
    r, err = result("--duration_s=0.5", "--progress_s=0.1", "--stats-file=now.json", "--stats_s=0.1")
    check(err.count(" requests, ") >= 2, "progress_s", err)
    check(r["stats_file"]["written"] >= 3, "stats_s", r["stats_file"])
    r, err = result("--duration_s=0.2", "--stats-file=now.json")
    check(err == "" and r["stats_file"] == {"written": 1, "failed": 0}, "without", err, r["stats_file"])
    check("doctor: pid" in call(*FAST, "--doctor")[1], "doctor")
    out, err = call(*FAST)
    for word in ("elapsed ", "requests ", "allocated", "freed", "leaked", "per second", "latency ", "p99.9", "RSS ", "peak"):
        check(word in out, "standard output has no", word)


def leak_is_named():
    r, err = result("--pattern=leak", "--duration_s=1", "--leak_threshold_s=0", "--doctor")
    check((r["leak_named"] or {}).get("label") == "POST /orders", "leak_named", r["leak_named"])
    actions = [line for line in err.splitlines() if "ACTION" in line and " leaks " in line]
    check(actions and all('"POST /orders" leaks' in line for line in actions), "the doctor does not name the leak", err[:600])
    leaked = {x["route"] for x in r["routes"] if x["leaked"]}
    check(leaked == {"POST /orders"}, leaked)
    r, err = result("--pattern=leak", "--duration_s=0.6", "--leak_threshold_s=1000", "--doctor")
    check(r["leak_named"] is None and " leaks " not in err, "younger than the threshold", r["leak_named"])
    check('most of it under "POST /orders"' in err, "the doctor does not name the young leak", err[:600])
    r, _ = result("--pattern=burst", "--duration_s=0.6", "--free_policy=leak:0", "--leak_threshold_s=0")
    check(r["leak_named"] is None, "nothing leaks", r["leak_named"])


def help_and_version():
    out, err = call("--help")
    flags = ("allocator pattern duration_s requests threads req_rate objs_min objs_max size epoch_policy free_policy phases "
             "rss_sample_ms seed stats-file json doctor leak_threshold_s stats_s progress_s help version").split()
    for word in ["--" + f for f in flags] + list(PRESETS):
        check(word in out, "--help has no", word)
    check(err == "" and all(len(line) <= 120 for line in out.splitlines()), "--help", err)
    out, _ = call("--version")
    check(out.startswith("synthetic_bench ") and out.count(".") == 2, out)


WRONG = (  # what is said, arguments
    ("did you mean --pattern?", "--patern=leak"),
    ("did you mean --stats-file?", "--stat-file=x"),
    ("did you mean leak?", "--pattern=laek"),
    ("did you mean tslab?", "--allocator=tlsab"),
    ("did you mean within_req?", "--free_policy=within-req"),
    ("did you mean per_req?", "--epoch_policy=perreq"),
    ("did you mean domain?", "--phases=domains"),
    ("see synthetic_bench --help", "--something-else-entirely-and-longer-than-any-other-option-there-is"),
    ("see synthetic_bench --help", "stray"),
    ("needs a value", "--seed"),
    ("needs a value", "--json="),
    ("takes no value", "--doctor=yes"),
    ("--duration_s takes a number from 0", "--duration_s=-1"),
    ("--duration_s takes a number", "--duration_s=1e3"),
    ("--duration_s takes a number", "--duration_s=nan"),
    ("--duration_s takes a number", "--duration_s=1.2.3"),
    ("--threads takes a whole number from 1 to 256", "--threads=0"),
    ("--threads takes a whole number", "--threads=257"),
    ("--threads takes a whole number", "--threads=2.5"),
    ("--req_rate takes a number", "--req_rate=fast"),
    ("--size takes a whole number from 8", "--size=7"),
    ("--size takes a whole number", "--size=16777217"),
    ("--rss_sample_ms takes a whole number", "--rss_sample_ms=x"),
    ("--seed takes a whole number", "--seed=0x10"),
    ("like batch:16", "--epoch_policy=batch"),
    ("takes a whole number from 1", "--epoch_policy=batch:0"),
    ("takes no number", "--epoch_policy=manual:3"),
    ("like lag:8", "--free_policy=lag"),
    ("takes a whole number from 1 to 100000", "--free_policy=lag:100001"),
    ("like leak:1", "--free_policy=leak"),
    ("takes a number from 0 to 100,", "--free_policy=leak:101"),
    ("takes a number from 0 to 100,", "--free_policy=leak:"),
    ("is above --objs_max 200; pattern burst has 80 to 200", "--objs_min=300"),
    ("1 GB is the limit", "--free_policy=lag:100000", "--objs_max=100000"),
)


def wrong_words():
    for said, *arguments in WRONG:
        out, err = call(*arguments, wanted=2)
        check(said in err and err.startswith("synthetic_bench: ") and err.count("\n") == 1, arguments, "says", err)
        check(out == "", arguments, "prints", out[:100])


for test in (presets, order, amounts, sizes, pace, policies, watching, leak_is_named, help_and_version, wrong_words):
    test()
finish()
