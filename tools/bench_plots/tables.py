"""Markdown tables of results."""

import re
import statistics

from .read import Nothing
from .suite import inside, number

SHORT = (("pair", "alloc + free"), ("batch", "alloc + free"), ("batch_tail", "alloc p99.9"), ("batch_tail", "free p99.9"),
         ("mixed", "free + alloc"), ("threads", "1 thread"), ("threads", "4 threads"), ("xthread", "4 threads"),
         ("request", "1 thread"), ("request_own", "1 thread"), ("request_bulk", "1 thread"), ("phase10", "in bulk"), ("domain", "with a label"),
         ("in_domain", "pair"), ("handed_on", "a phase"), ("realloc_grow", "a buffer"), ("big_phase", "an object"),
         ("open_phases", "eighth lap, open to end"), ("open_phases", "resident bytes per phase"),
         ("big_phases", "left over start, ended"), ("churn_apart", "resident / live"), ("churn_left", "resident / live"),
         ("left_over", "over start, ended"), ("rss", "after the end"), ("drift", "drift"))
SUITE = (("churn_fixed", "latency.alloc_p99_ns"), ("churn_fixed", "latency.alloc_p999_ns"), ("churn_fixed", "latency.free_p99_ns"),
         ("churn_fixed", "rss.growth_pct"), ("steady_state_churn", "ns_per_op"), ("steady_state_churn", "rss.growth_pct"),
         ("fragmentation_adversary", "committed.over_live"), ("fragmentation_adversary", "rss.final_less_before_over_live"),
         ("epoch_reclamation_demo", "rss.given_back_pct"), ("phase_shift_retention", "retention.retention_pct"),
         ("sustained_phase_shifts", "verdict.committed_drift_pct"), ("sustained_phase_shifts", "verdict.anon_drift_pct"),
         ("locality_bench", "access.cycles_per_access"), ("benchmark_accurate", "rss.bytes_per_object"),
         ("benchmark_accurate", "latency.alloc_p999_ns"), ("benchmark_accurate", "efficiency.all_sizes_pct"),
         ("soak", "operations_per_second"))


def text_of(value):
    """Three significant digits, without an exponent where that can be read."""
    if value is None:
        return "-"
    size = abs(value)
    if size >= 99.95:
        return "{:,.0f}".format(value)
    if size == 0:
        return "0"
    if size < 0.001:
        return "%.1e" % value
    return "%.*f" % (1 if size >= 9.995 else 2 if size >= 0.9995 else 3 if size >= 0.09995 else 4, value)


def escape(text):
    """Text of a result as text of a page."""
    text = re.sub(r"[\\`*|\[\]]|(?<!\w)_|_(?!\w)", lambda mark: "\\" + mark.group(), text)
    return " ".join(text.replace("<", "&lt;").replace(">", "&gt;").split())


def table(head, rows):
    if not rows:
        return []
    return ["| %s |" % " | ".join(head), "|%s" % ("---|" * len(head)), *("| %s |" % " | ".join(r) for r in rows), ""]


def value(cell):
    """A median, or what kept the cell from having one."""
    if cell is None:
        return ""
    if cell.median is None:
        return {"corrupt": "corrupt", "failed": "failed", "missing": "missing"}.get(cell.state, "")
    return text_of(cell.median) + (" (failed %d x)" % cell.failures if cell.failures else "")


def name(metric):
    return escape("%s: %s, %s" % (metric.row, metric.name, metric.unit)) + (" (more is better)" if metric.more else "")


def best(metric):
    return "%s %s" % (text_of(metric.median(metric.best_peer)), escape(metric.best_peer)) if metric.best_peer else "-"


def ratio(metric):
    own, verdict = metric.ours(), metric.verdict()
    if own is None or verdict is None:
        return "-"
    text = text_of(own.to_best) if own.to_best is not None else "-"
    return "%s %s" % (text, {"won": "won", "level": "level", "behind": "**behind**"}[verdict])


def ratio_range(metric):
    found, own = metric.ratio_range(), metric.ours()
    if not found or own.count < 2:
        return "-"
    return " to ".join(dict.fromkeys(map(text_of, found)))


def spread(cell):
    return "%.0f %%" % (100 * cell.spread) if cell and cell.spread is not None and cell.count > 1 else "-"


def best_checked(metric):
    """The best of those that refuse doubled frees, as we do."""
    cells = [c for c in metric.measured() if metric.groups[c.backend] == "checked"]
    found = (max if metric.more else min)(cells, key=lambda c: c.median, default=None)
    return "%s %s" % (text_of(found.median), escape(found.backend)) if found else "-"


def short(bench):
    rows = []
    for key in SHORT:
        metric = bench.metric(*key)
        if metric and metric.ours():
            rows.append([name(metric), text_of(metric.ours().median), value(metric.glibc()) or "-", best(metric), ratio(metric), best_checked(metric)])
    return table(["row", "temporal-slab", "glibc", "best peer", "ratio to it", "best that checks, too"], rows)


def whole(bench):
    rows = []
    for metric in bench.metrics:
        if not metric.measured():
            continue
        own, limit = metric.ours(), metric.cells.get("arena")
        by = " " + escape(own.backend) if own and own.backend != "tslab" else ""
        rows.append([name(metric), (value(own) or "-") + by, spread(own), value(metric.glibc()) or "-",
                     text_of(own.to_glibc) if own else "-", best(metric), ratio(metric), ratio_range(metric),
                     text_of(own.to_limit) if own and limit else "-"])
    head = ["row", "temporal-slab", "spread", "glibc", "to glibc", "best peer", "to the best peer", "its range", "to the arena"]
    return table(head, rows)


def of_groups(bench, groups):
    """Medians of every backend of those groups."""
    names = [b.name for b in bench.backends if b.group in groups and (b.available or any(m.median(b.name) is not None for m in bench.metrics))]
    rows = []
    for metric in bench.metrics:
        cells = [value(metric.cells.get(n)) for n in names]
        if any(cells):
            rows.append([name(metric), *("**%s**" % c if n == metric.winner and not metric.plain else c for n, c in zip(names, cells))])
    return table(["row", *map(escape, names)], rows) if names else []


def observed(bench):
    """The cost of being observed, relative to the same backend that is not."""
    names = [b.name for b in bench.backends if any(b.name in m.cells and m.cells[b.name].to_off is not None for m in bench.metrics)]
    rows = []
    for metric in bench.metrics:
        ratios = [metric.cells[n].to_off if n in metric.cells else None for n in names]
        if not metric.plain and any(r is not None for r in ratios):
            rows.append([name(metric), *("-" if r is None else text_of(r) for r in ratios)])
    return table(["row", *map(escape, names)], rows)


def seeds(bench):
    """Our cost relative to the best peer by the seed that the work was drawn from, for rows that are drawn."""
    rows = []
    for metric in bench.metrics:
        found = metric.ratios() if metric.drawn else []
        halves = [[r for r in found[k::2] if r is not None] for k in (0, 1)]
        if all(halves):
            first, second = map(statistics.median, halves)
            rows.append([name(metric), text_of(first), text_of(second), text_of(second / first)])
    return table(["row", "seed %d" % bench.seeds[0], "seed %d" % bench.seeds[1], "second / first"], rows) if len(bench.seeds) > 1 else []


def behind(bench, why):
    """why: {(row, metric): text}, metric "*" for the whole row."""
    found = [m for m in bench.metrics if m.verdict() == "behind"]
    found.sort(key=lambda m: -(m.ours().to_best or 0))
    return table(["row", "temporal-slab", "best peer", "ratio", "its range", "why"],
                 [[name(m), text_of(m.ours().median), best(m), text_of(m.ours().to_best), ratio_range(m),
                   why.get((m.row, m.name), why.get((m.row, "*"), ""))] for m in found])


def backends(bench):
    return table(["backend", "group", "version", "here"],
                 [[escape(b.name), b.group, escape(b.version or "-"), "yes" if b.available else "no: " + escape(b.reason or "no reason given")]
                  for b in bench.backends])


def suite(found):
    """The main numbers of the programs, by allocator; contention is of tslab alone and not here."""
    names, rows = found.allocators(), []
    for program, path in SUITE:
        try:
            values = found.values(program, path)
        except Nothing:
            continue
        rows.append([escape("%s: %s" % (program, path)), *(text_of(statistics.median(values[n].values())) if n in values else "-" for n in names)])
    return table(["number", *map(escape, names)], rows)


def requests(found):
    """The arms of request_bench; the policies are of temporal-slab, malloc is there to compare."""
    rows, keys = [], ("mean_us", "p50_us", "p95_us", "p99_us", "max_us", "rss_peak_kb", "rss_closed_kb", "refusals")
    try:
        runs = found.of("request_bench")
    except Nothing:
        return []
    for allocator in ("tslab", "glibc"):
        arms = {}
        for run in runs.get(allocator, ()):
            for arm in run.report.get("arms") if isinstance(run.report.get("arms"), list) else ():
                kind = (str(inside(arm, "policy")), str(inside(arm, "recycling")))
                for key in keys:
                    n = number(inside(arm, key))
                    if n is not None:
                        arms.setdefault(kind, {}).setdefault(key, []).append(n)
        for (policy, recycling), numbers in arms.items():
            rows.append([allocator, escape(policy), escape(recycling),
                         *(text_of(statistics.median(numbers[k])) if k in numbers else "-" for k in keys)])
    return table(["allocator", "closes", "recycling", "mean us", "p50", "p95", "p99", "max us", "peak KiB", "closed KiB", "refusals"], rows)
