"""Pictures of what bench/suite/run.py collected. Each takes its results and returns a figure, or raises Nothing."""

import statistics

from . import style
from .read import Nothing
from .suite import entries, histogram, inside, number


def first_nothing(makers):
    """What each maker returns, without those that raise; all reasons where none returns."""
    found, reasons = [], []
    for maker in makers:
        try:
            found.append(maker())
        except Nothing as nothing:
            reasons.append(str(nothing))
    if not found:
        raise Nothing("; ".join(dict.fromkeys(reasons)))
    return found


def row(name, by_repetition):
    values = list(by_repetition.values())
    return name, statistics.median(values), min(values), max(values), ""


# ---- distributions ----


def slower_than(buckets):
    """(x, share of the calls that are not below x); the last step has nothing above it and is not drawn."""
    total, left, out = sum(buckets.values()), sum(buckets.values()), []
    for bound, count in sorted(buckets.items()):
        if out or count < left:
            out.append((bound, (left - count) / total))
        left -= count
    return [(x, share) for x, share in out if share > 0]


def tails(axes, histograms, dashed=None):
    for name, buckets in histograms.items():
        steps = slower_than(buckets)
        first = min(buckets)
        steps = [(first * 0.9, 1.0), *steps, (max(buckets), steps[-1][1] if steps else 1.0)]
        look = dict(style.look(name), marker="", drawstyle="steps-post")
        axes.plot([x for x, _ in steps], [share for _, share in steps], label=name, **look)
    for name, buckets in (dashed or {}).items():
        steps = slower_than(buckets)
        if steps:
            axes.plot([x for x, _ in steps], [share for _, share in steps], label=name + " deferred", color=style.OURS,
                      linestyle="--", linewidth=1.4, drawstyle="steps-post", zorder=5)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("more than")
    axes.set_ylabel("share of the calls")
    style.plain_ticks(axes.xaxis, 100, style.time_of)
    style.plain_ticks(axes.yaxis, 100, lambda share: style.plain(100 * share) + " %")
    style.grid(axes)


def latency_tail(_, suite):
    def histograms(program, kind):
        return program, kind, suite.histograms(program, lambda report: inside(report, "latency.histogram." + kind))

    found = first_nothing([lambda p=p, k=k: histograms(p, k) for p in ("churn_fixed", "benchmark_accurate") for k in ("alloc", "free")])
    figure, all_axes = style.panels(len(found), 3.1)
    for axes, (program, kind, data) in zip(all_axes, found):
        tails(axes, data)
        axes.set_title("%s: %s" % (program, {"alloc": "allocation", "free": "free"}[kind]))
    style.legend(figure, suite.allocators())
    return figure


def arm(report, policy, recycling):
    return next((a for a in entries(report, "arms") if (a.get("policy"), a.get("recycling")) == (policy, recycling)), {})


def requests(_, suite):
    found = []
    suite.of("request_bench")
    for policy in ("never", "per-request", "batch-100", "batch-1000"):
        def of(recycling, policy=policy):
            return suite.histograms("request_bench", lambda report: arm(report, policy, recycling).get("histogram"))

        try:
            data = of("continuous")
        except Nothing:
            continue
        try:
            deferred = {"tslab": of("deferred")["tslab"]}
        except (Nothing, KeyError):
            deferred = {}
        found.append((policy, data, deferred))
    if not found:
        raise Nothing("the reports of request_bench hold no histograms")
    figure, all_axes = style.panels(len(found), 3.1)
    for axes, (policy, data, deferred) in zip(all_axes, found):
        tails(axes, data, deferred)
        axes.set_title("closes: %s" % policy)
        axes.set_ylabel("share of the requests")
    style.legend(figure, suite.allocators())
    return figure


# ---- fragmentation ----


def fragmentation(_, suite):
    wanted = [("fragmentation_adversary", "rss.final_less_before_over_live", "fragmentation_adversary: resident / live", "x"),
              ("fragmentation_adversary", "rss.growth_pct", "fragmentation_adversary: growth after eight rounds", "%"),
              ("benchmark_accurate", "rss.bytes_per_object", "benchmark_accurate: resident bytes of 128", "B"),
              ("phase_shift_retention", "retention.retention_pct", "phase_shift_retention: kept after the cool-down", "% of the peak")]
    found = first_nothing([lambda w=w: (suite.values(*w[:2]), *w[2:]) for w in wanted])
    most = max(len(values) for values, _, _ in found)
    figure, all_axes = style.panels(len(found), max(0.17 * most + 1.0, 1.8))
    for axes, (values, title, unit) in zip(all_axes, found):
        style.dots(axes, sorted((row(*pair) for pair in values.items()), key=lambda r: r[1]), unit)
        axes.set_title(title)
    figure.tight_layout()
    return figure


# ---- memory over time ----


def reclamation(suite):
    """{allocator: [(cycle, MiB)]}: four readings a cycle, start, full, freed, closed."""
    found = {}
    for allocator, runs in suite.of("epoch_reclamation_demo").items():
        readings = {}
        for run in runs:
            for cycle in entries(run.report, "cycles"):
                for part, key in enumerate(("start_kb", "full_kb", "freed_kb", "closed_kb")):
                    c, kb = number(cycle.get("cycle")), number(cycle.get(key))
                    if c is not None and kb is not None:
                        readings.setdefault(c + part / 4, []).append(kb / 1024)
        if readings:
            found[allocator] = [(x, statistics.median(v)) for x, v in sorted(readings.items())]
    if not found:
        raise Nothing("the reports of epoch_reclamation_demo have no cycles")
    return found


def memory(_, suite):
    wanted = [("sustained_phase_shifts", "phases of shifting sizes", "phase"), ("soak", "8 threads", "seconds"),
              ("steady_state_churn", "a steady population", "cycle"), ("phase_shift_retention", "bursts, 40 % pinned, cool-down", "burst")]
    makers = [lambda: (reclamation(suite), "epoch_reclamation_demo: start, full, freed, closed", "cycle")]
    makers += [lambda w=w: (suite.memory_over_time(w[0]), "%s: %s" % w[:2], w[2]) for w in wanted]
    found = first_nothing(makers)
    figure, all_axes = style.panels(len(found), 2.9)
    for axes, (data, title, label) in zip(all_axes, found):
        for name, line in data.items():
            few = len(line) < 3
            look = dict(style.look(name), marker="o" if few else "", markersize=4)
            axes.plot([x for x, _ in line], [y for _, y in line], label=name, **look)
        values = [y for line in data.values() for _, y in line if y > 0]
        if values and max(values) / min(values) > 12:
            axes.set_yscale("log")
            style.plain_ticks(axes.yaxis)
        else:
            axes.set_ylim(bottom=0)
        axes.xaxis.set_major_locator(style.whole_numbers())
        axes.set_xlabel(label)
        axes.set_ylabel("resident, MiB")
        axes.set_title(title)
        style.grid(axes)
    style.legend(figure, suite.allocators())
    return figure


# ---- threads ----


def scaling(_, suite):
    throughput, tail = {}, {}
    for allocator, runs in suite.of("benchmark_threads").items():
        for run in runs:
            for entry in entries(run.report, "scaling"):
                threads, ops, p99 = (number(inside(entry, k)) for k in ("threads", "median_ops_per_second", "latency.both_p99_ns"))
                if threads and ops:
                    throughput.setdefault(allocator, {}).setdefault(threads, []).append(ops / 1e6)
                if threads and p99 is not None:
                    tail.setdefault(allocator, {}).setdefault(threads, []).append(p99)
    if not throughput:
        raise Nothing("the reports of benchmark_threads have no throughput")
    figure, all_axes = style.panels(2 if tail else 1, 3.7)
    for axes, data, unit in zip(all_axes, (throughput, tail), ("million operations a second", "p99 of a call, ns")):
        series = {a: [(t, statistics.median(v), min(v), max(v)) for t, v in sorted(by.items())] for a, by in data.items()}
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        style.lines(axes, series, least=1 if data is tail else None)
        style.plain_ticks(axes.yaxis)
        xs = sorted({p[0] for line in series.values() for p in line})
        axes.set_xticks(xs, ["%d" % x for x in xs])
        axes.set_xticks([], minor=True)
        axes.set_xlabel("threads")
        axes.set_ylabel(unit)
        axes.set_title("half of the objects freed by a neighbour" if data is throughput else "the same: latency")
        style.grid(axes)
    style.legend(figure, suite.allocators())
    return figure
