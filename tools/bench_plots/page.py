"""The page around pictures and tables. Everything on it comes from the results; nothing is typed in by hand but the sentences
that say what a picture shows, and the reasons of --why."""

from . import tables
from .read import LEVEL
from .tables import escape

# file, source of the results, title, what it shows
PICTURES = (
    ("summary", "bench", "At a glance", "Cost of each metric relative to the best of the other allocators in the same repetition, median. Left of 1 "
     "temporal-slab is better. The thin line is the range over the repetitions, the grey band is level, within 5 %. Rates are turned round."),
    ("general", "bench", "General work", "Medians, the best on top, with their range."),
    ("latency", "bench", "Latency of a call", "Percentiles of single calls in batches of 100,000, row batch_tail, less what reading the clock costs."),
    ("tails", "suite", "The tail of single calls", "How many calls take longer than so much: the further left and below, the better. Repetitions are added up."),
    ("requests", "suite", "Requests", "The same for whole requests, by the policy of closing. The others know no phases and no closes. "
     "Dashed: temporal-slab with recycling deferred to the close."),
    ("phases", "bench", "Phases", "What the library is for. arena is a bump pointer, the limit of the machine, and frees nothing singly."),
    ("use", "bench", "Phases as programs use them", "Tiny, huge, with a buffer that grows; general work inside one. What is marked checks refuses doubled "
     "frees, as temporal-slab does."),
    ("two_threads", "bench", "Phases on two threads", "Handed from one to the other, and side by side on one allocator."),
    ("threads", "bench", "Scaling with threads", "Rate against threads, row threads; on the right the last point."),
    ("scaling", "suite", "Scaling, objects freed by neighbours", "benchmark_threads of the suite: rate and latency."),
    ("size", "bench", "Cost against size", "Left: replacing one of so many live objects. Right: closing an epoch with so many empty slabs."),
    ("fragmentation", "bench", "Fragmentation and memory left behind", "Resident over live bytes, and what stays resident after an end; less is better."),
    ("fragmentation_suite", "suite", "Fragmentation, programs of the suite", "Resident bytes, less is better."),
    ("memory", "suite", "Memory over time", "Resident memory, medians of the repetitions."),
)


def item(label, text):
    return "| %s | %s |" % (label, text) if text not in (None, "") else None


def head(bench, source):
    lines = [item("machine", escape("%s, %d processors, %d MiB" % (bench.cpu or "unknown processor", bench.cpus, bench.memory_mb))),
             item("kernel, compiler", escape(", ".join(t for t in (bench.kernel, bench.compiler) if t))), item("commit", escape(bench.commit or "unknown")),
             item("date", escape(bench.date or "unknown")), item("command", "`%s`" % (bench.command or "unknown").replace("`", "'").replace("|", "/")),
             item("form", "%s, 1/%d of the work, %d repetition%s, %d s" % (escape(bench.form or "unknown"), bench.part, bench.repetitions,
                                                                           "" if bench.repetitions == 1 else "s", bench.seconds)),
             item("page and pictures", "`%s`" % source.replace("|", "/"))]
    return ["| | |", "|---|---|", *(line for line in lines if line), ""]


def warnings(bench):
    found = []
    if not bench.complete:
        found.append("The run was interrupted: this is what was done.")
    if bench.repetitions == 1:
        found.append("There is only one repetition: no ranges, and a ratio near 1 says nothing.")
    if bench.form != "full" or bench.part > 1:
        found.append("This is not the full form: some sizes are not in it, and rows that fill much memory ran once.")
    if not any(b.available for b in bench.backends if b.group in ("general", "phase")):
        found.append("There are no others to compare with.")
    elif not bench.compared():
        found.append("No metric has a value of ours and one of another allocator.")
    return ["- **%s**" % w for w in found] + [""] if found else []


def verdicts(bench):
    tally = {v: sum(m.verdict() == v for m in bench.metrics) for v in ("won", "level", "behind")}
    if not any(tally.values()):
        return []
    return ["Against the best of the other allocators in the same repetition: %d won, %d level (within %.0f %%), %d behind."
            % (tally["won"], tally["level"], 100 * LEVEL, tally["behind"]), ""]


def not_drawn(name, bench):
    """Metrics with a verdict that the summary cannot show: a logarithm has no zero."""
    if name != "summary":
        return []
    rows = [m for m in bench.compared() if m.ours().to_best is None]
    if not rows:
        return []
    return ["Without a ratio, because a value is not above zero: %s." % "; ".join(
        "%s: %s (%s against %s)" % (escape(m.row), escape(m.name), tables.text_of(m.ours().median), tables.best(m)) for m in rows), ""]


def gallery(drawn, link, bench, suite):
    """drawn: {name: None when it is there, else the reason}"""
    lines = []
    for name, source, title, caption in PICTURES:
        if drawn.get(name, "") is not None or (bench if source == "bench" else suite) is None:
            continue
        lines += ["### " + title, "", "![%s](%s)" % (title, link(name)), "", caption, ""]
        lines += not_drawn(name, bench) if bench else []
    return lines


def cells_without(bench):
    """Cells that failed, and those with a reason of their own; one line for each row and backend."""
    found = {}
    for metric in bench.metrics:
        for cell in metric.cells.values():
            special = cell.state in ("failed", "corrupt") or cell.failures or (cell.state == "cannot" and cell.reason != "it has no such thing")
            if special:
                times = " %d x" % cell.failures if cell.failures else ""
                found.setdefault((metric.row, cell.backend), "%s%s: %s" % (cell.state, times, cell.reason or "no reason given"))
    return ["- %s, %s %s" % (escape(row), escape(backend), escape(text)) for (row, backend), text in found.items()]


def empty_metrics(bench):
    rows = ["%s: %s" % (m.row, m.name) for m in bench.metrics if not m.measured()]
    return ["- no values at all: " + escape("; ".join(rows))] if rows else []


def missing(drawn, bench, suite):
    lines = ["- picture \"%s\": %s" % (title, escape(drawn[name])) for name, _, title, _ in PICTURES if drawn.get(name)]
    if bench:
        lines += ["- %s: %s" % (escape(b.name), escape(b.reason or "no reason given")) for b in bench.backends if not b.available]
        lines += cells_without(bench) + empty_metrics(bench)
    if suite:
        lines += ["- suite, %s: %s" % (escape(name), escape(reason)) for name, reason in suite.missing.items()]
        lines += ["- suite, failed: " + escape(f) for f in suite.failures]
        lines += ["- suite: " + escape(n) for n in suite.notes]
    return ["## What is missing, and why", "", *lines, ""] if lines else []


def bench_tables(bench, why):
    lines = ["## All numbers", "", "Medians. Ratios are of costs, taken repetition by repetition; below 1 temporal-slab is better. Spread is (max - min) / "
             "median. A name beside our number is the way of using temporal-slab where it is not plain tslab.", "", *tables.whole(bench)]
    for title, groups in (("General allocators", ("general",)), ("General allocators that refuse doubled frees, as temporal-slab does", ("checked",)),
                          ("Allocators with phases, and the limit", ("phase", "limit")),
                          ("Ways of using temporal-slab", ("ours",)), ("Allocators with their profilers, on and off", ("observed",))):
        found = tables.of_groups(bench, groups)
        if found:
            lines += ["### " + title, "", "In bold who is the best of all but the limit, those that check and those with profilers; an empty cell: it has no such thing.", "", *found]
    found = tables.observed(bench)
    if found:
        lines += ["### What being observed costs", "", "Relative to the same backend that is not observed, repetition by repetition; 1 is nothing.", "", *found]
    found = tables.seeds(bench)
    if found:
        lines += ["### Two seeds", "", "Our cost relative to the best peer. The first seed is always the same, the second was drawn when the run began: what is "
                  "tuned to the first is worse on the second.", "", *found]
    behind = tables.behind(bench, why)
    first = ["## Where temporal-slab is behind", "", *behind] if behind else []
    return first + lines + ["## Allocators", "", *tables.backends(bench)]


def suite_part(suite):
    lines = ["## The comparison suite", ""]
    loads = sorted(r.load for r in suite.runs if r.load is not None)
    where = [suite.cpu, "%d processors" % suite.cpus, "%d MiB" % suite.memory_mb if suite.memory_mb else None, suite.system, suite.kernel]
    facts = [item("machine", escape(", ".join(w for w in where if w))), item("commit", escape(suite.commit or "unknown")),
             item("date", escape(suite.date or "unknown")),
             item("command", "`%s`" % suite.command.replace("`", "'").replace("|", "/")), item("repetitions", str(suite.repetitions)),
             item("load average before a run", "median %.1f, most %.1f" % (loads[len(loads) // 2], loads[-1]) if loads else None),
             item("allocators", escape(", ".join("%s %s" % (n, suite.versions[n] or "") for n in suite.allocators())))]
    lines += ["| | |", "|---|---|", *(f for f in facts if f), ""]
    doubts = []
    if not suite.complete:
        doubts.append("The run was interrupted: this is what was done.")
    if suite.quick:
        doubts.append("Run with --smoke: its loads are too small for its timings to mean anything.")
    if suite.repetitions == 1:
        doubts.append("There is only one repetition.")
    lines += ["- **%s**" % d for d in doubts] + [""] if doubts else []
    numbers, arms = tables.suite(suite), tables.requests(suite)
    lines += numbers
    if arms:
        lines += ["Requests, by the policy of closing:", "", *arms]
    return lines


def write(bench, suite, drawn, link, why, aims, source):
    lines = ["# Benchmark: all numbers", ""]
    if bench:
        lines += [*head(bench, source), *warnings(bench), *verdicts(bench)]
    pictures = gallery(drawn, link, bench, suite)
    lines += ["## Pictures", "", *pictures] if pictures else []
    lines += aims
    lines += bench_tables(bench, why) if bench else []
    lines += suite_part(suite) if suite else []
    lines += missing(drawn, bench, suite)
    return "\n".join(lines).rstrip() + "\n"
