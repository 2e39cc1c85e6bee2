"""What docs/results/tables/suite.md tells of the comparison suite: its metrics, who is ahead in them, and the figures of the founding papers.

A metric is compared by ratios of costs, taken repetition by repetition; one in per cent points (`points`) by its difference, because
growth is often 0. The best peer is the best of the general allocators; those that refuse doubled frees are shown and never the best.
"""

import statistics

from .read import LEVEL
from .suite import number

POINTS_LEVEL = 1.0  # per cent points that are level


class Metric:
    def __init__(self, run, path, title, unit, better="lower"):
        self.run, self.path, self.title, self.unit = run, path, title, unit
        self.more, self.plain = better == "higher", better == "plain"
        self.points = unit == "%"
        self.growth = path.endswith(("growth_pct", "drift_pct"))  # below 0 counts as 0: nobody wins by shrinking by chance

    def values(self, suite):
        """{allocator: {repetition: number}}"""
        found = {}
        for run in suite.runs:
            value = at(run.report, self.path) if run.program == self.run else None
            if value is not None:
                found.setdefault(run.allocator, {})[run.repetition] = max(value, 0.0) if self.growth and self.points else value
        return found


def lot(run, *rows):
    return [Metric(run, *row) for row in rows]


PER_REQUEST = "arms[per-request:continuous]."
METRICS = [
    *lot("churn_fixed", ("latency.alloc_p99_ns", "allocation p99", "ns"), ("latency.alloc_p999_ns", "allocation p99.9", "ns"),
         ("latency.alloc_p9999_ns", "allocation p99.99", "ns"), ("latency.free_p99_ns", "free p99", "ns"), ("latency.free_p999_ns", "free p99.9", "ns"),
         ("latency.free_p9999_ns", "free p99.99", "ns"), ("rss.final_kb", "resident at the end", "KiB"), ("rss.peak_growth_pct", "growth", "%")),
    *lot("steady_state_churn", ("ns_per_op", "an operation", "ns"), ("rss.final_kb", "resident at the end", "KiB"), ("rss.growth_pct", "growth", "%")),
    *lot("fragmentation_adversary", ("rss.growth_over_start_pct", "growth over the start", "% of it"),
         ("rss.final_less_before_over_live", "resident / live", "x"), ("rss.growth_pct", "growth after eight rounds", "%")),
    *lot("epoch_reclamation_demo", ("rss.last_closed_kb", "resident after the last close", "KiB"), ("rss.given_back_pct", "given back", "%", "higher"),
         ("rss.growth_pct", "growth", "%")),
    *lot("phase_shift_retention", ("retention.retention_pct", "kept after the cool-down", "%"), ("retention.peak_kb", "peak", "KiB")),
    *lot("sustained_phase_shifts", ("last_cool_down.anon_kb", "anonymous at the last cool-down", "KiB"), ("verdict.anon_drift_pct", "its drift", "%"),
         ("verdict.committed_drift_pct", "drift of what is committed", "%"), ("verdict.cool_downs", "cool-downs", "", "plain")),
    *lot("request_bench", (PER_REQUEST + "mean_us", "a request, mean", "us"), (PER_REQUEST + "p50_us", "p50", "us"), (PER_REQUEST + "p99_us", "p99", "us"),
         (PER_REQUEST + "rss_peak_kb", "peak", "KiB"), ("arms[never:continuous].mean_us", "never closed: mean", "us"),
         ("arms[never:continuous].rss_peak_kb", "never closed: peak", "KiB"), ("arms[never:deferred].mean_us", "never closed, deferred: mean", "us", "plain"),
         ("arms[never:deferred].rss_peak_kb", "never closed, deferred: peak", "KiB", "plain")),
    *lot("request_http", (PER_REQUEST + "requests_per_second", "requests a second", "1/s", "higher"), (PER_REQUEST + "mean_us", "mean", "us"),
         (PER_REQUEST + "p99_us", "p99", "us"), (PER_REQUEST + "rss_peak_kb", "peak", "KiB")),
    *lot("locality_bench", ("access.cycles_per_access", "an access", "cycles"), ("access.p50_cycles", "an access, p50", "cycles")),
    *lot("benchmark_threads", *((f"scaling[{n}].median_ops_per_second", f"{n} thread{'s' * (n > 1)}", "1/s", "higher") for n in (1, 2, 4, 8, 16)),
         *((f"scaling[{n}].latency.both_p99_ns", f"{n} threads: p99", "ns") for n in (8, 16)),
         *((f"scaling[{n}].time.cpu_ns_per_op", f"{n} thread{'s' * (n > 1)}: processor", "ns") for n in (1, 8, 16)),
         *((f"scaling[{n}].time.waiting_ns_per_op", f"{n} thread{'s' * (n > 1)}: waiting", "ns", "plain") for n in (1, 8, 16))),
    *lot("benchmark_accurate", ("rss.bytes_per_object", "resident for 128 bytes", "B"), ("latency.alloc_p99_ns", "allocation p99", "ns"),
         ("latency.alloc_p999_ns", "allocation p99.9", "ns"), ("latency.free_p99_ns", "free p99", "ns"), ("efficiency.all_sizes_pct", "efficiency of the sizes", "%", "higher")),
    *lot("applications", ("cold_start.start_us", "cold start", "us"), ("cold_start.memory_pct", "memory's share of a cold start", "%"),
         ("query.end_p50_us", "end of a query, p50", "us"), ("query.end_p99_us", "end of a query, p99", "us"),
         ("query.first_grown_kb", "left of the first query", "KiB"), ("batch.end_p50_us", "end of a batch, p50", "us"),
         ("batch.end_p99_us", "end of a batch, p99", "us"), ("batch.make_p50_us", "making a batch", "us"),
         ("frame.memory_pct_of_frame", "memory's share of a frame", "% of it"), ("frame.end_p50_us", "end of a frame", "us")),
    *lot("soak", ("operations", "operations", "", "higher"), ("rss.growth_pct", "growth", "%")),
]
OURS_ALONE = [
    *lot("applications", *(("domain.%s_ns" % part, part, "ns", "plain") for part in ("create", "enter", "exit", "destroy", "sum", "whole")),
         ("query.committed_after_kb", "committed after a query", "KiB", "plain"), ("frame.scope_pct_of_frame", "begin and end of an empty frame", "% of it", "plain")),
    *(m for run in ("benchmark_threads", "threads_shared") for m in lot(
        run, *((f"scaling[16].contention.{key}", title, unit, "plain") for key, title, unit in (
            ("lock_contention_pct", "16 threads: contended locks", "%"), ("lock_contention_cov_pct", "their CoV", "%"),
            ("cas_retries_per_op", "repeated exchanges an operation", ""), ("locks_per_op", "locks an operation", ""),
            ("scan_checks", "looks at the search order", ""), ("scan_switches", "changes of the search order", ""))))),
    *lot("threads_shared", ("scaling[16].median_ops_per_second", "16 threads", "1/s", "plain")),
    *lot("threads_sampled", *((f"scaling[{n}].sampling.{key}", f"{n} thread{'s' * (n > 1)}: {title}", "ns", "plain") for n in (1, 8, 16)
                              for key, title in (("cpu_ns", "processor of an allocation"), ("waiting_ns", "waiting of an allocation"), ("lock_wait_ns", "a lock")))),
]


def names_of(entry):
    return ":".join(str(entry[key]) for key in ("policy", "recycling", "threads") if key in entry)


def step(report, part):
    name, _, key = part.partition("[")
    report = report.get(name) if isinstance(report, dict) else None
    if key:
        report = next((e for e in report if isinstance(e, dict) and names_of(e) == key[:-1]), None) if isinstance(report, list) else None
    return report


def at(report, path):
    """The number at that path, or None; entries of lists by what tells them apart: scaling[8].time.cpu_ns_per_op"""
    for part in path.split("."):
        report = step(report, part)
    return number(report)


class Compared:
    """One metric in one run of the suite."""

    def __init__(self, metric, suite):
        self.metric, by = metric, metric.values(suite)
        self.by = by
        self.medians = {a: statistics.median(v.values()) for a, v in by.items()}
        self.peers = [a for a in by if a != "tslab" and suite.kinds.get(a) == "general"]
        pick = max if metric.more else min
        self.best = pick(self.peers, key=lambda a: self.medians[a], default=None)
        self.to_glibc = self.to(lambda k: by["glibc"].get(k) if "glibc" in by else None)
        self.to_best = self.to(lambda k: pick((by[a][k] for a in self.peers if k in by[a]), default=None))

    def to(self, other):
        """Costs relative to the other's in the same repetition (in per cent points: the differences), or None where one has none."""
        found = []
        for k, own in self.by.get("tslab", {}).items():
            theirs = other(k)
            if theirs is None or (not self.metric.points and min(own, theirs) <= 0):
                continue
            if self.metric.points:
                found.append(theirs - own if self.metric.more else own - theirs)
            else:
                found.append(theirs / own if self.metric.more else own / theirs)
        return found

    def verdict(self, against="best"):
        ratios = self.to_best if against == "best" else self.to_glibc
        other = self.best if against == "best" else "glibc"
        if self.metric.plain or "tslab" not in self.medians or other not in self.medians:
            return None
        if not ratios:  # one of them is not above zero: there is no quotient
            own, theirs = self.medians["tslab"], self.medians[other]
            return "level" if own == theirs else "won" if (own < theirs) != self.metric.more else "behind"
        middle = statistics.median(ratios) - (0 if self.metric.points else 1)
        most = POINTS_LEVEL if self.metric.points else LEVEL
        return "won" if middle < -most else "level" if middle <= most else "behind"


def compare(suite, metrics=METRICS):
    found = [Compared(m, suite) for m in metrics]
    return [c for c in found if c.medians]


# ---- figures of the founding papers: what was published, the same here; {0} and so on are the values ----

def request(key):
    return PER_REQUEST + key


FIGURES = [
    ("p99.9 of an allocation 340 to 371 ns, 13 times better than glibc", "churn_fixed", "{0} ns, glibc {1}",
     [("latency.alloc_p999_ns", "tslab"), ("latency.alloc_p999_ns", "glibc")]),
    ("p99.99 of an allocation 2.5 to 3.2 us, 2.5 times better than glibc", "churn_fixed", "{0} ns, glibc {1}",
     [("latency.alloc_p9999_ns", "tslab"), ("latency.alloc_p9999_ns", "glibc")]),
    ("0 % growth over 20 phases of 50,000 objects", "epoch_reclamation_demo", "{0} %, glibc {1}", [("rss.growth_pct", "tslab"), ("rss.growth_pct", "glibc")]),
    ("resident 37 % over malloc's", "steady_state_churn", "{0} KiB, glibc {1}", [("rss.final_kb", "tslab"), ("rss.final_kb", "glibc")]),
    ("efficiency of the size classes 88.9 %", "benchmark_accurate", "{0} %", [("efficiency.all_sizes_pct", "tslab")]),
    ("mixed sizes: growth 1,027 %, glibc 1,109", "fragmentation_adversary", "{0} %, glibc {1}, {2} times the live bytes against {3}",
     [("rss.growth_over_start_pct", "tslab"), ("rss.growth_over_start_pct", "glibc"), ("rss.final_less_before_over_live", "tslab"),
      ("rss.final_less_before_over_live", "glibc")]),
    ("contention at 16 threads: 14.8 % of the locks, 0.0119 retries an operation, with CoV", "threads_shared",
     "{0} % of {1} locks an operation, CoV {2} %, {3} retries, with the option shared; otherwise threads own their slabs, see below",
     [("scaling[16].contention.lock_contention_pct", "tslab"), ("scaling[16].contention.locks_per_op", "tslab"),
      ("scaling[16].contention.lock_contention_cov_pct", "tslab"), ("scaling[16].contention.cas_retries_per_op", "tslab")]),
    ("adaptive scan: 5.8 times fewer retries", "threads_shared",
     "{0} retries an operation; the controller looked {1} times and changed the order {2} times. It asks for 0.30; one order alone cannot be asked for, so that the two cannot be compared",
     [("scaling[16].contention.cas_retries_per_op", "tslab"), ("scaling[16].contention.scan_checks", "tslab"), ("scaling[16].contention.scan_switches", "tslab")]),
    ("the same where threads own their slabs", "benchmark_threads", "{0} % of {1} locks an operation, {2} retries",
     [("scaling[16].contention.lock_contention_pct", "tslab"), ("scaling[16].contention.locks_per_op", "tslab"), ("scaling[16].contention.cas_retries_per_op", "tslab")]),
    ("processor and waiting time at 1, 8 and 16 threads", "benchmark_threads",
     "processor {0}, {1}, {2} ns an operation, waiting {3}, {4}, {5}; glibc {6}, {7}, {8} and {9}, {10}, {11}",
     [("scaling[%d].time.%s" % (n, key), who) for who in ("tslab", "glibc") for key in ("cpu_ns_per_op", "waiting_ns_per_op") for n in (1, 8, 16)]),
    ("the same, as the library's samples tell it", "threads_sampled", "processor {0}, {1}, {2} ns an allocation, waiting {3}, {4}, {5}",
     [("scaling[%d].sampling.%s" % (n, key), "tslab") for key in ("cpu_ns", "waiting_ns") for n in (1, 8, 16)]),
    ("cycle of a domain 180 ns: create 40, enter 30, exit 30, destroy 80", "applications",
     "create {0}, enter {1}, exit {2}, destroy {3} ns, together {4}; {5} from begin to end of one after the other",
     [("domain.%s_ns" % part, "tslab") for part in ("create", "enter", "exit", "destroy", "sum", "whole")]),
    ("serverless: memory is 40 % of a cold start", "applications", "{0} % of {1} us that make 20,000 objects, glibc {2} % of {3}",
     [("cold_start.memory_pct", "tslab"), ("cold_start.start_us", "tslab"), ("cold_start.memory_pct", "glibc"), ("cold_start.start_us", "glibc")]),
    ("memory of a query is back in less than 1 ms", "applications", "{0} us at p50, {1} at p99, then {2} KiB committed of 5.4 MB; glibc's frees take {3}",
     [("query.end_p50_us", "tslab"), ("query.end_p99_us", "tslab"), ("query.committed_after_kb", "tslab"), ("query.end_p50_us", "glibc")]),
    ("a batch ends in 500 us", "applications", "{0} us at p50, {1} at p99, for 100,000 records (27 MB); glibc's frees take {2}",
     [("batch.end_p50_us", "tslab"), ("batch.end_p99_us", "tslab"), ("batch.end_p50_us", "glibc")]),
    ("memory takes 0.0007 % of a frame", "applications", "begin and end {0} %; 3,000 objects made and ended {1} %, glibc {2} %",
     [("frame.scope_pct_of_frame", "tslab"), ("frame.memory_pct_of_frame", "tslab"), ("frame.memory_pct_of_frame", "glibc")]),
    ("a request in 127 us, mimalloc 45", "request_bench", "{0} us, mimalloc {1}, glibc {2}, on 4 threads, written and verified",
     [(request("mean_us"), who) for who in ("tslab", "mimalloc", "glibc")]),
    ("never closing: mean 38 times slower where recycling waits for the close", "request_bench",
     "{0} us, {1} with frees that are held back (emulated); peak {2} KiB and {3}",
     [("arms[never:%s].%s" % (how, key), "tslab") for key in ("mean_us", "rss_peak_kb") for how in ("continuous", "deferred")]),
    ("HTTP: five allocators in order", "request_http", None, [(request("mean_us"), None)]),
]
