"""The programs of bench/suite, with little work, on both allocators: exit status, JSON and its keys, CSV headers and rows to
the letter, damage that has to be found, ctrl-C, wrong arguments. What they measure is not looked at, but for what is exact."""
import json
import os
import signal
import subprocess
import sys
import time

SUITE = os.path.join(os.environ["TSLAB_BUILD_DIR"], "suite")
LATENCY = "allocator,threads,size_class,op,avg_ns,p50_ns,p95_ns,p99_ns,p999_ns"
FRAGMENTATION = "allocator,size_class,requested,rounded,wasted,efficiency_pct"
SCALING = "allocator,threads,throughput_ops_sec,avg_ns,p50_ns,p95_ns,p99_ns"
RSS = "allocator,cycle,rss_mib,slabs_allocated,slabs_recycled,slabs_overflowed"
COMMON = ["program", "allocator", "seed", "arguments", "process.rss_kb", "process.harness_kb", "verified", "complete"]

# Program: little work, header and rows of its CSV, keys of its JSON (a.b: b inside a; a[]: every entry of a list).
PROGRAMS = {
    "churn_fixed": (["--objects", "500", "--cycles", "20"], LATENCY, 2,
                    ["latency.alloc_p99_ns", "latency.alloc_p999_ns", "latency.free_p99_ns", "latency.histogram.alloc[].below_ns", "rss.steady_state_kb",
                     "rss.peak_kb", "rss.final_kb", "rss.growth_pct", "rss.peak_growth_pct"]),
    "steady_state_churn": (["--steady-state", "500", "--churn-size", "100", "--cycles", "7"], RSS, 7,
                           ["ns_per_op", "rss.growth_pct", "committed.growth_pct"]),
    "fragmentation_adversary": (["--min-size", "64", "--max-size", "768", "--count", "300", "--rounds", "9"], RSS, 9,
                                ["live_bytes", "rss.final_kb", "rss.growth_over_start_pct", "committed.over_live", "committed.fragmentation_pct"]),
    "epoch_reclamation_demo": (["--cycles", "3", "--objects", "2000"], RSS, 3,
                               ["cycles[].full_kb", "cycles[].closed_kb", "rss.growth_pct", "rss.given_back_pct"]),
    "phase_shift_retention": (["2", "--objects", "500"], RSS, 2, ["retention.retention_pct", "retention.peak_kb"]),
    "sustained_phase_shifts": (["100", "5", "20", "2", "1", "--phase-kb", "64"], RSS, 20,
                               ["first_cool_down.anon_kb", "last_cool_down.file_kb", "last_cool_down.shmem_kb",
                                "last_cool_down.committed_kb", "verdict.committed_drift_pct", "verdict.committed",
                                "verdict.anon_drift_pct", "verdict.anon"]),
    "request_bench": (["--requests", "120"], LATENCY, 8,
                      ["arms[].policy", "arms[].recycling", "arms[].mean_us", "arms[].p50_us", "arms[].p95_us",
                       "arms[].p99_us", "arms[].max_us", "arms[].histogram", "arms[].rss_peak_kb", "arms[].refusals"]),
    "locality_bench": (["--ops", "4000", "--working-set", "64"], LATENCY, 1, ["access.cycles_per_access", "ops_done"]),
    "benchmark_threads": (["--objects", "300", "--trials", "2"], SCALING, 5,
                          ["scaling[].threads", "scaling[].median_ops_per_second", "scaling[].cov_pct",
                           "scaling[].contention.lock_contention_pct", "scaling[].contention.cas_retries_per_op",
                           "scaling[].contention.lock_contention_cov_pct", "scaling[].contention.scan_switches", "scaling[].time.cpu_ns_per_op",
                           "scaling[].time.waiting_ns_per_op", "scaling[].time.waiting_pct",
                           "scaling[].latency.alloc_p99_ns", "scaling[].latency.both_p99_ns"]),
    "benchmark_accurate": (["--objects", "2000", "--ops", "2000"], LATENCY, 2,
                           ["rss.bytes_per_object", "latency.alloc_p50_ns", "latency.free_p999_ns",
                            "fragmentation[].efficiency_pct", "efficiency.all_sizes_pct"]),
    "applications": (["--starts", "2", "--state", "500", "--queries", "3", "--query-objects", "300", "--batches", "3", "--records", "500", "--frames", "3",
                      "--frame-objects", "100", "--laps", "50"], LATENCY, 3,
                     ["cold_start.start_us", "cold_start.memory_pct", "query.end_p50_us", "query.end_p99_us", "query.first_grown_kb",
                      "query.committed_after_kb", "batch.end_p50_us", "batch.make_p50_us", "frame.end_p50_us", "frame.memory_pct_of_frame",
                      "frame.scope_pct_of_frame"]),
    "soak": (["--seconds", "1", "--places", "500"], RSS, 1, ["operations", "allocated_mb", "rss.growth_pct"]),
}
failures = []


def fail(*words):
    failures.append(" ".join(str(w) for w in words))
    print("FAILED:", failures[-1], file=sys.stderr)


def run(*command, status=0):
    done = subprocess.run([os.path.join(SUITE, command[0]), *command[1:]], capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != status:
        fail(*command, f"exit {done.returncode} instead of {status}:", done.stderr[-300:])
    return done


def values(report, path):
    head, _, rest = path.partition(".")
    name = head.removesuffix("[]")
    if not isinstance(report, dict) or name not in report:
        return [KeyError(path)]
    inner = report[name] if head.endswith("[]") else [report[name]]
    if not inner:
        return [KeyError(path)]
    return [v for entry in inner for v in (values(entry, rest) if rest else [entry])]


def check_csv(name, path, header, rows, word):
    with open(path, encoding="ascii") as lines:
        text = lines.read().splitlines()
    if not text or text[0] != header:
        fail(name, "header is", text[:1], "instead of", header)
    if len(text) - 1 != rows:
        fail(name, "has", len(text) - 1, "rows instead of", rows)
    for line in text[1:]:
        cells = line.split(",")
        if len(cells) != header.count(",") + 1 or cells[0] != word:
            fail(name, "row", line)


def check_program(name, word):
    arguments, header, rows, keys = PROGRAMS[name]
    table = f"{name}.{word}.csv"
    done = run(name, *arguments, "--allocator", word, "--json", f"--csv={table}")
    check_csv(name, table, header, rows, word)
    try:
        report = json.loads(done.stdout)
    except ValueError as e:
        return fail(name, word, "JSON:", e)
    for key in COMMON + keys + (["refusals"] if word == "tslab" else []):
        bad = [v for v in values(report, key) if isinstance(v, KeyError)]
        if bad:
            fail(name, word, "lacks", key)
    if report.get("allocator") != word or report.get("complete") is not True or report.get("program") != name:
        fail(name, word, "says", report.get("program"), report.get("allocator"), report.get("complete"))
    if word == "tslab" and report.get("refusals") != 0:
        fail(name, "refusals", report.get("refusals"))
    return report


def check_damage(name, word):
    done = run(name, *PROGRAMS[name][0], "--allocator", word, "--inject-corruption", status=1)
    if "damaged" not in done.stderr:
        fail(name, word, "does not name the damage:", done.stderr)


def check_arguments(name):
    for wrong, hint in ((["--alocator", "tslab"], "did you mean --allocator?"), (["--seed", "soon"], "takes a whole number"),
                        (["--seed"], "needs a value"), (["--allocator", "jemalloc"], "takes tslab|malloc"),
                        (["--quick=1"], "takes no value"), (["--json", "--csv"], "only one of --json and --csv"),
                        (["--nothing-that-anyone-would-mean"], f"see {name} --help")):
        done = run(name, *wrong, status=2)
        if hint not in done.stderr or done.stdout:
            fail(name, *wrong, "says", done.stderr, done.stdout[:100])
    if name == "churn_fixed":
        for wrong in ("15", "1048577", "64k", "-1", "99999999999999999999999"):
            if "--size takes a whole number from 16 to 1048576" not in run(name, "--size", wrong, status=2).stderr:
                fail(name, "--size", wrong)
    text = run(name, "--help").stdout
    for flag in ("--allocator", "--seed", "--json", "--csv", "--quick", "--help", "--version"):
        if flag not in text:
            fail(name, "--help lacks", flag)


def check_histograms(name, word, latency):
    """Every call is in one bucket, and a percentile is below as many calls as it says."""
    for kind in ("alloc", "free"):
        buckets = [(b["below_ns"], b["count"]) for b in latency["histogram"][kind]]
        bounds, total = [b for b, _ in buckets], latency[kind + "_count"]
        if sum(n for _, n in buckets) != total or bounds != sorted(set(bounds)) or any(n <= 0 for _, n in buckets):
            fail(name, word, kind, "histogram", buckets, "of", total)
        for point, percent in (("p50", 50), ("p99", 99), ("p999", 99.9)):
            reached, below = 0, latency["%s_%s_ns" % (kind, point)]
            for bound, count in buckets:
                reached += count
                if reached > int(total * percent / 100.0):
                    if not bound * 0.87 - 1 <= below <= bound + 0.01:
                        fail(name, word, kind, point, below, "is not in the bucket below", bound)
                    break


def check_exact(reports):
    """What does not depend on time or the machine."""
    for word in ("tslab", "malloc"):
        report = reports["benchmark_accurate", word]
        rows = report["fragmentation"]
        if len(rows) != 25 or any(r["rounded"] < r["requested"] or r["wasted"] != r["rounded"] - r["requested"] for r in rows):
            fail("benchmark_accurate", word, "table of sizes", rows)
        arms = reports["request_bench", word]["arms"]
        if {(a["policy"], a["recycling"]) for a in arms} != {
                (p, r) for p in ("never", "per-request", "batch-100", "batch-1000") for r in ("continuous", "deferred")}:
            fail("request_bench", word, "arms")
        if any(a["requests"] != 120 or sum(b["count"] for b in a["histogram"]) != 120 for a in arms):
            fail("request_bench", word, "requests or histogram")
        closed = {(a["policy"], a["recycling"]): a["phases_closed"] for a in arms}
        if closed["never", "continuous"] != 0 or closed["batch-100", "deferred"] != 1:
            fail("request_bench", word, "closes", closed)
        held = {a["recycling"]: a["rss_after_kb"] - a["rss_before_kb"] for a in arms if a["policy"] == "never"}
        if held["deferred"] < 120 * 45:  # 120 requests of about 52 KB that nobody may reuse
            fail("request_bench", word, "deferred memory was used again", held)
    parts = reports["applications", "tslab"].get("domain", {})
    if sorted(parts) != ["create_ns", "destroy_ns", "enter_ns", "exit_ns", "sum_ns", "whole_ns"] or "domain" in reports["applications", "malloc"]:
        fail("applications: the parts of a domain's cost", parts)
    if reports["applications", "tslab"]["query"]["committed_after_kb"] != 0:
        fail("applications: memory of a query is not back", reports["applications", "tslab"]["query"])
    if "retention_pct" not in reports["phase_shift_retention", "tslab"].get("malloc", {}):
        fail("phase_shift_retention does not compare with malloc")
    for name in ("churn_fixed", "benchmark_accurate"):
        for word in ("tslab", "malloc"):
            check_histograms(name, word, reports[name, word]["latency"])
    eight = {r["requested"]: r["rounded"] for r in reports["benchmark_accurate", "tslab"]["fragmentation"]}
    if any(eight[n] != n for n in (64, 96, 128, 192, 256, 384, 512, 768)) or eight[72] != 80:
        fail("benchmark_accurate: the eight classes", eight)


def check_verdicts():
    few = json.loads(run("sustained_phase_shifts", "4", "2", "0", "0", "1", "--phase-kb", "8", "--json").stdout)["verdict"]
    if few["committed"] != "too few cool-downs" or few["committed_drift_most_pct"] != 1 or few["anon_drift_most_pct"] != 5:
        fail("sustained_phase_shifts with two cool-downs:", few)
    # Pinned objects that outlive every cool-down pile up: that must not be called flat.
    piling = json.loads(run("sustained_phase_shifts", "60", "3", "50", "0", "1", "--phase-kb", "64", "--pin-cycles", "1000",
                            "--json").stdout)["verdict"]
    if piling["committed"] != "drifts" or piling["anon"] != "drifts":
        fail("sustained_phase_shifts with what piles up:", piling)


def check_shared():
    """Options reach the allocator: in shared mode the locks are taken, and sampling tells of what it timed."""
    for options, wanted in (("shared=1", None), ("sampling_period=64", "sampling")):
        environment = {**os.environ, "TSLAB_OPTIONS": options}
        done = subprocess.run([os.path.join(SUITE, "benchmark_threads"), "--objects", "3000", "--trials", "2", "--json"], env=environment,
                              capture_output=True, text=True, check=False)
        last = json.loads(done.stdout)["scaling"][-1]
        if wanted and (last.get(wanted, {}).get("allocations", 0) == 0 or last[wanted]["cpu_ns"] is None):
            fail("benchmark_threads with", options, last)
        if not wanted and ("sampling" in last or last["contention"]["locks_per_op"] <= 0):
            fail("benchmark_threads with", options, last)
        if min(last["time"]["cpu_ns_per_op"], last["time"]["waiting_ns_per_op"]) < 0 or not 0 <= last["time"]["waiting_pct"] <= 100:
            fail("benchmark_threads: processor and waiting", last["time"])


def check_http():
    for word in ("tslab", "malloc"):
        done = run("request_bench", "--http", "--requests", "60", "--policy", "per-request", "--allocator", word, "--json")
        arms = json.loads(done.stdout)["arms"]
        if [a["requests"] for a in arms] != [60, 60]:
            fail("request_bench --http", word, arms)


def check_interrupt():
    with subprocess.Popen([os.path.join(SUITE, "soak"), "--seconds", "600", "--places", "100", "--json", "--csv=soak.csv"],
                          stdout=subprocess.PIPE, text=True) as child:
        for _ in range(3600):  # until it works
            time.sleep(0.05)
            if os.path.exists("soak.csv") and os.path.getsize("soak.csv") > len(RSS) + 1:
                break
        child.send_signal(signal.SIGINT)
        text = child.communicate(timeout=300)[0]
    report = json.loads(text)
    if child.returncode != 130 or report["complete"] is not False or report["operations"] == 0:
        fail("soak, interrupted: exit", child.returncode, report.get("complete"))


def check_out_of_memory():
    for name in ("epoch_reclamation_demo", "request_bench"):
        environment = {**os.environ, "TSLAB_OPTIONS": "max_bytes=1m"}
        done = subprocess.run([os.path.join(SUITE, name), "--quick"], env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 3 or "out of memory" not in done.stderr:
            fail(name, "without memory: exit", done.returncode, done.stderr[-200:])


def check_outputs():
    run("epoch_reclamation_demo", "--cycles", "1", "--objects", "10", "--json", "/dev/full", status=1)
    run("epoch_reclamation_demo", "--cycles", "1", "--json", "/nowhere/at/all", status=1)
    text = run("epoch_reclamation_demo", "--cycles", "1", "--objects", "10").stdout
    if "given_back_pct" not in text or "{" in text:
        fail("text output:", text[:200])
    run("churn_fixed", "--objects", "50", "--cycles", "2", "--json", "words.json", "--csv", "words.csv")
    with open("words.json", encoding="utf-8") as f:
        json.load(f)
    run("benchmark_accurate", "--objects", "100", "--ops", "100", "--fragmentation-csv", "sizes.csv")
    check_csv("benchmark_accurate", "sizes.csv", FRAGMENTATION, 25, "tslab")
    for word, name in (("temporal_slab", "tslab"), ("system_malloc", "malloc")):
        done = run("churn_fixed", "--objects", "50", "--cycles", "2", "--allocator", word, "--json")
        if json.loads(done.stdout)["allocator"] != name:
            fail("--allocator", word)


for leftover in os.listdir("."):
    os.remove(leftover)
found = {(name, word): check_program(name, word) for name in PROGRAMS for word in ("tslab", "malloc")}
for program in PROGRAMS:
    check_arguments(program)
    check_damage(program, "tslab")
    check_damage(program, "malloc")
if not failures:
    check_exact(found)
check_verdicts()
check_shared()
check_http()
check_interrupt()
check_out_of_memory()
check_outputs()
sys.exit(1 if failures else 0)
