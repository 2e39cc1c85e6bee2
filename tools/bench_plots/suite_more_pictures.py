"""Pictures of docs/results/tables/suite.md beside those of suite_pictures.py: the overview, HTTP, processor and waiting time, applications."""

import statistics

from . import style
from .read import LEVEL, Nothing
from .suite_metrics import PER_REQUEST, Metric, compare
from .suite_pictures import first_nothing, row


def overview(_, suite):
    found = [c for c in compare(suite) if c.verdict() and c.to_best and not c.metric.points]
    if not found:
        raise Nothing("no metric has a ratio")
    figure, (axes,) = style.panels(1, 0.17 * len(found) + 1.1, columns=1)
    axes.axvspan(1 - LEVEL, 1 + LEVEL, color="#e6e6e6", zorder=0)
    for y, c in enumerate(found):
        middle = statistics.median(c.to_best)
        axes.plot([min(c.to_best), max(c.to_best)], [y, y], color=style.OURS, linewidth=1.2, alpha=0.5, zorder=2)
        if c.to_glibc:
            axes.plot([statistics.median(c.to_glibc)], [y], "s", color="#9a9a9a", markersize=4, zorder=3, label="to glibc")
        axes.plot([middle], [y], "o", color=style.BEHIND if c.verdict() == "behind" else style.OURS, markersize=5.5, zorder=4, label="to the best peer")
        axes.annotate(c.best, (1, y), xycoords=("axes fraction", "data"), xytext=(4, 0), textcoords="offset points", va="center", fontsize=6.5, color="#444444")
    axes.set_xscale("log")
    style.plain_ticks(axes.xaxis, 150)
    axes.set_yticks(range(len(found)), ["%s: %s" % (c.metric.run, c.metric.title) for c in found], fontsize=7)
    axes.set_ylim(len(found) - 0.4, -0.6)
    axes.set_xlabel("cost of temporal-slab / cost of the other; orange: behind the best peer, named on the right; grey: glibc")
    axes.tick_params(axis="y", length=0)
    style.grid(axes)
    figure.tight_layout()
    return figure


def panel_dots(suite, wanted):
    """wanted: (run, path, title, unit, more is better)"""
    def values(run, path, *rest):
        found = Metric(run, path, "", "").values(suite)
        if not found:
            raise Nothing("%s has no %s" % (run, path))
        return (found, *rest)

    found = first_nothing([lambda w=w: values(*w) for w in wanted])
    most = max(len(values) for values, *_ in found)
    figure, all_axes = style.panels(len(found), max(0.17 * most + 1.0, 1.8))
    for axes, (values, title, unit, more) in zip(all_axes, found):
        style.dots(axes, sorted((row(*pair) for pair in values.items()), key=lambda r: -r[1] if more else r[1]), unit)
        axes.set_title(title)
    figure.tight_layout()
    return figure


def http(_, suite):
    return panel_dots(suite, [("request_http", PER_REQUEST + "mean_us", "a request, mean", "us", False),
                              ("request_http", PER_REQUEST + "p99_us", "p99", "us", False)])


def applications(_, suite):
    return panel_dots(suite, [("applications", "cold_start.memory_pct", "memory's share of a cold start", "%", False),
                              ("applications", "query.end_p50_us", "end of a query of 20,000 objects, p50", "us", False),
                              ("applications", "batch.end_p50_us", "end of a batch of 100,000 records, p50", "us", False),
                              ("applications", "frame.memory_pct_of_frame", "memory's share of a frame, 3,000 objects", "%", False)])


def waiting(_, suite):
    counts = (1, 8, 16)
    parts = [[Metric("benchmark_threads", "scaling[%d].time.%s" % (n, key), "", "").values(suite) for key in ("cpu_ns_per_op", "waiting_ns_per_op")] for n in counts]
    if not any(cpu for cpu, _ in parts):
        raise Nothing("the reports of benchmark_threads have no time.cpu_ns_per_op")
    names = [a for a in suite.allocators() if any(a in cpu for cpu, _ in parts)]
    figure, all_axes = style.panels(len(counts), 0.17 * len(names) + 1.1, columns=3)
    for axes, threads, (cpu, wait) in zip(all_axes, counts, parts):
        for y, name in enumerate(names):
            if name not in cpu:
                continue
            work, rest = (statistics.median(p[name].values()) if name in p else 0 for p in (cpu, wait))
            strong = style.is_ours(name)
            axes.barh([y], [work], color=style.OURS if strong else "#7a7a7a", height=0.7, zorder=3)
            axes.barh([y], [rest], left=[work], color="#9fc0ee" if strong else "#d5d5d5", height=0.7, zorder=3)
            axes.annotate("%s + %s" % (style.text_of(work), style.text_of(rest)), (work + rest, y), xytext=(3, 0), textcoords="offset points", va="center", fontsize=6.5,
                          color=style.OURS if strong else "#444444")
        axes.set_yticks(range(len(names)), names if axes is all_axes[0] else [], fontsize=7)
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.set_xlim(right=axes.get_xlim()[1] * 1.35)
        axes.set_xlabel("ns an operation")
        axes.set_title("%d thread%s: processor + waiting" % (threads, "" if threads == 1 else "s"))
        axes.tick_params(axis="y", length=0)
        style.grid(axes)
    figure.tight_layout()
    return figure


