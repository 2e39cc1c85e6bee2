"""Results as tslab_bench and bench/suite/run.py write them, made up for the tests of plot_bench.py, and calls of the tool."""

import json
import os
import statistics
import subprocess
import sys

SOURCE = os.environ["TSLAB_SOURCE_DIR"]
SCRIPT = os.path.join(SOURCE, "tools", "plot_bench.py")
GROUPS = {"glibc": "general", "mimalloc": "general", "jemalloc": "general", "scudo": "checked", "apr": "phase", "arena": "limit", "tslab": "ours", "tslab-handle": "ours"}
_failures = 0

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(SOURCE, "tools"))


def check(ok, *what):
    global _failures
    if not ok:
        _failures += 1
        print("FAILED:", *what, file=sys.stderr)
    return ok


def finish():
    sys.exit(1 if _failures else 0)


def call(*arguments, wanted=0, env=None, one_line=False):
    """(standard output, standard error) of a run that must end with that status, and never in a traceback."""
    run = subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, timeout=600, check=False,
                         env={**os.environ, **(env or {})})
    check(run.returncode == wanted, arguments, "exit", run.returncode, "not", wanted, run.stderr[-600:])
    check("Traceback" not in run.stderr, arguments, run.stderr[-600:])
    check(not one_line or (run.stderr.count("\n") == 1 and len(run.stderr) < 400), arguments, "says", run.stderr)
    return run.stdout, run.stderr


def write(name, value):
    with open(name, "w", encoding="utf-8") as to:
        to.write(value if isinstance(value, str) else json.dumps(value))
    return name


def read(name):
    with open(name, encoding="utf-8") as text:
        return text.read()


# ---- tslab_bench ----


def cost_ratio(more, own, other):
    if own is None or other is None or own <= 0 or other <= 0:
        return None
    return other / own if more else own / other


def result(backend, values, all_values, more, state, reason):
    peers = [v for b, v in all_values.items() if GROUPS[b] in ("general", "phase")]

    def ratio(others):
        found = [cost_ratio(more, v, o) for v, o in zip(values, others)]
        found = [f for f in found if f is not None]
        return statistics.median(found) if found else None

    best = [(max if more else min)((p[i] for p in peers if i < len(p) and p[i] is not None), default=None) for i in range(len(values))]
    there = [v for v in values if v is not None]
    middle = statistics.median(there) if there else None
    return {"backend": backend, "state": state, "reason": reason, "failures": 0, "median": middle, "min": min(there, default=None),
            "max": max(there, default=None), "spread": (max(there) - min(there)) / middle if there and middle else None,
            "ratio_glibc": ratio(all_values.get("glibc", [])), "ratio_best": ratio(best), "ratio_limit": ratio(all_values.get("arena", [])),
            "instructions": None, "values": values}


def metric(row, name, unit, values, more=False, plain=False, drawn=False, backends=tuple(GROUPS)):
    """values: {backend: [one for each repetition]}; who has none cannot."""
    medians = {b: statistics.median([v for v in vs if v is not None]) for b, vs in values.items() if any(v is not None for v in vs)}
    pick = max if more else min
    peers = [b for b in medians if GROUPS[b] in ("general", "phase")]
    rivals = [b for b in medians if GROUPS[b] not in ("limit", "checked")]
    return {"row": row, "what": "what %s is" % row, "metric": name, "unit": unit, "better": "higher" if more else "lower", "plain": plain, "drawn": drawn,
            "best_peer": pick(peers, key=medians.get) if peers else None, "winner": pick(rivals, key=medians.get) if rivals else None,
            "results": [result(b, values.get(b, []), values, more, "ok" if b in values else "cannot", None if b in values else "it has no such thing")
                        for b in backends]}


def around(**medians):
    """Three repetitions about a median."""
    return {b.replace("_", "-"): [m, m * 0.9, m * 1.2] for b, m in medians.items()}


def rows():
    found = [metric("pair", "alloc + free", "ns", around(glibc=20, mimalloc=10, jemalloc=12, scudo=8, tslab=9, tslab_handle=11)),
             metric("batch", "alloc + free", "ns", around(glibc=60, mimalloc=30, tslab=30.3)),
             metric("drift", "drift", "%", {"glibc": [4, 4, 4], "mimalloc": [2, 1, 3], "tslab": [0, 0, 0]}),
             metric("churn_left", "resident / live", "x", around(glibc=6, apr=1000, arena=990, tslab=18)),
             metric("churn_left", "live", "MiB", around(glibc=3, tslab=3), plain=True),
             metric("request_bulk", "1 thread", "us", around(glibc=6, apr=2, arena=1, tslab=1.5)),
             metric("phase10", "in bulk", "ns", {"glibc": [100, 100, 100], "scudo": [200, 210, 220], "tslab": [50, 90, 60]}, drawn=True),
             metric("handed_on", "a phase", "us", around(glibc=3, tslab=1)),
             metric("domain", "with a label", "ns", around(tslab=60, tslab_handle=70))]
    for kind in ("alloc", "free"):
        for i, percent in enumerate(("p50", "p99", "p99.9", "p99.99")):
            found.append(metric("batch_tail", "%s %s" % (kind, percent), "ns", around(glibc=20 * 10**i, mimalloc=0 if i == 0 else 30 * 8**i, tslab=25 * 3**i)))
    for n in (1, 2, 4):
        found.append(metric("threads", "%d thread%s" % (n, "s"[:n > 1]), "Mops/s", around(glibc=40 + n, mimalloc=200 + n, tslab=100 * n), more=True))
    for n in ("1,000", "10,000", "100,000"):
        found.append(metric("live", n + " live", "ns", around(glibc=10 * len(n), tslab=8 * len(n))))
        found.append(metric("close_cost", n + " slabs", "us", around(tslab=len(n) ** 4)))
    return found


def bench(metrics=None, **head):
    backends = [{"name": b, "group": g, "version": "1.%d" % i, "available": True, "reason": None, "library": None, "malloc_from": "libc.so.6"}
                for i, (b, g) in enumerate(GROUPS.items())]
    return {"program": "tslab_bench", "format": 2, "date": "2026-01-31T12:00:00Z", "form": "full", "part": 1, "complete": True, "cpu": "Some CPU",
            "cpus": 2, "memory_mb": 8000, "kernel": "Linux 6.1", "compiler": "gcc 12", "commit": "abc1234", "command": "tslab_bench --json /some/where/b.json",
            "repetitions": 3, "seconds": 100, "seeds": [1, 77, 1], "backends": backends, "rows": rows() if metrics is None else metrics, **head}


# ---- the demo ----


def demo_run(backend, rate, p99_ns):
    return {"backend": backend, "requests_per_second": rate, "latency_ns": {"p50": p99_ns / 4, "p99": p99_ns}, "page_faults": 1000, "rss": {"peak": 8 << 20, "end": 4 << 20}}


def demo(*runs):
    return {"runs": [demo_run(*r) for r in runs]}


# ---- the suite ----


def buckets(*pairs):
    return [{"below_ns": b, "count": n} for b, n in pairs]


def report(program, allocator):
    scale = 1 if allocator == "tslab" else 2
    latency = {"alloc_p99_ns": 50 * scale, "histogram": {kind: buckets((1, 900), (16, 90 * scale), (1024, 9), (65536, 1)) for kind in ("alloc", "free")}}
    if program == "churn_fixed":
        return {"latency": latency, "rss": {"growth_pct": 0.5 * scale}}
    if program == "request_bench":
        return {"arms": [{"policy": p, "recycling": r, "mean_us": 50 * scale, "refusals": 0, "histogram": buckets((16384, 100), (65536, 50 * scale), (10**6, 2))}
                         for p in ("never", "batch-100") for r in ("continuous", "deferred")]}
    if program == "benchmark_threads":
        return {"scaling": [{"threads": n, "median_ops_per_second": 1e7 * n / scale, "latency": {"both_p99_ns": 40 * scale}} for n in (1, 2, 4)]}
    if program == "epoch_reclamation_demo":
        return {"cycles": [{"cycle": c, "start_kb": 2000, "full_kb": 8000, "freed_kb": 8000 // scale, "closed_kb": 3000} for c in range(3)]}
    return {"rss": {"final_less_before_over_live": 3.0 * scale, "growth_pct": 0}, "committed": {"over_live": 2.5}}


PROGRAMS = ("churn_fixed", "request_bench", "benchmark_threads", "epoch_reclamation_demo", "fragmentation_adversary", "soak")


def suite(folder, programs=PROGRAMS, change=None, **head):
    """An output directory; change(run) may spoil a run."""
    os.makedirs(os.path.join(folder, "csv"), exist_ok=True)
    allocators = ("tslab", "glibc", "jemalloc")
    lines = []
    for repetition in range(2):
        for program in programs:
            for a in allocators:
                run = {"program": program, "allocator": a, "allocator_version": "1", "repetition": repetition, "preload": None, "command": [program],
                       "load_average": 0.5, "seconds": 1, "status": 0, "report": report(program, a), "error": None}
                if change:
                    change(run)
                lines.append(json.dumps(run))
                if program == "soak":
                    write("%s/csv/soak.%s.%d.csv" % (folder, a, repetition), "allocator,cycle,rss_mib,slabs_allocated,slabs_recycled,slabs_overflowed\n"
                          + "".join("%s,%d,%.3f,,,\n" % (a, c, 40 + c + repetition) for c in range(4)))
    write(folder + "/results.jsonl", "\n".join(lines) + "\n")
    write(folder + "/run.json", {
        "program": "suite", "format": 2, "date": "2026-01-31T12:00:00Z", "form": "quick", "complete": True, "cpu": "Some CPU", "cpus": 2, "memory_mb": 8000,
        "kernel": "Linux 6.1", "system": "Some System", "compiler": "gcc 12", "commit": "def5678 2026-01-31T11:00:00+00:00",
        "command": "run.py --out /some/where/out", "repetitions": 2, "seed": 1,
        "programs": list(programs), "allocators": [{"name": a, "version": "1.0", "preload": None} for a in allocators],
        "missing": {"scudo": "/no/such/libscudo.so does not exist"}, **head})
    return folder
