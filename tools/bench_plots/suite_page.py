"""The page docs/results/tables/suite.md, of kept results (kept.py), and the verdict of docs/results/suite.md. Sentences that say what a thing is stand here; every number is of the results."""

import re
import statistics

from .read import LEVEL
from .suite_metrics import FIGURES, METRICS, OURS_ALONE, POINTS_LEVEL, Compared, Metric, at, compare
from .tables import escape, table, text_of

PICTURES = (  # file, title, what it shows
    ("overview", "At a glance", "Cost relative to the best general peer (blue) and to glibc (grey), medians of the ratios in the same repetition. Left of 1 "
     "temporal-slab is better; the grey band is level. Metrics in per cent points are in the tables alone."),
    ("tails", "The tail of single calls", "How many calls take longer than so much: the further left and below, the better. Repetitions are added up."),
    ("requests", "Requests", "The same for whole requests, by the policy of closing. The others know no phases and no closes. Dashed: temporal-slab with "
     "recycling deferred to the close."),
    ("http", "Requests over HTTP", "`request_bench --http`, a phase a request: mean and p99, the best on top, with their range."),
    ("scaling", "Scaling, objects freed by neighbours", "`benchmark_threads`: rate and latency."),
    ("waiting", "Processor and waiting time", "`benchmark_threads`: what an operation takes of its thread's time; waiting is for a processor, a lock or the kernel. With "
     "more threads than processors most of it is for a processor."),
    ("applications", "Applications", "`applications`: a cold start, the end of a query and of a batch, a frame."),
    ("fragmentation", "Fragmentation", "Resident bytes; less is better."),
    ("memory", "Memory over time", "Resident memory, medians of the repetitions."),
)
INTRODUCTION = ["# The comparison suite: all numbers", "", "What the programs of [bench/suite](../../../bench/suite/README.md) measured, temporal-slab beside other allocators. Rows of single "
                "operations and of phases against libraries with phases are in the [benchmark](../bench.md).", ""]
NOTHING_YET = "\n".join([*INTRODUCTION, "No run of it has been published. [The commands](../../../bench/README.md#the-page-of-the-suite) that make one, and this page of it.", ""])
WORDS = {"won": "won", "level": "level", "behind": "**behind**"}


def facts(suite, source):
    where = [suite.cpu or "unknown processor", "%d processors" % suite.cpus, "%d MiB" % suite.memory_mb if suite.memory_mb else None, suite.system, suite.kernel]
    rows = [("machine", escape(", ".join(w for w in where if w))), ("commit", escape(suite.commit or "unknown")),
            ("date", escape(suite.date or "unknown")), ("command", "`%s`" % suite.command.replace("`", "'").replace("|", "/")),
            ("form", "%s, %d repetition%s%s" % (escape(suite.form or "unknown"), suite.repetitions, "" if suite.repetitions == 1 else "s",
                                                ", %.0f s" % suite.seconds if suite.seconds else "")),
            ("others on the machine", None if suite.others_busy is None else "kept %.2f processors busy meanwhile" % suite.others_busy),
            ("load average before a run", "median %.1f, most %.1f" % tuple(suite.loads) if suite.loads else None),
            ("page and pictures", "`%s`; from [numbers.json](../suite/numbers.json) and [curves.json](../suite/curves.json), which it keeps" % source)]
    return ["| | |", "|---|---|", *("| %s | %s |" % row for row in rows if row[1]), ""]


def doubts(suite):
    found = []
    if not suite.complete:
        found.append("The run was interrupted: this is what was done.")
    if suite.form == "smoke":
        found.append("Run with --smoke: its loads are too small for its timings to mean anything.")
    if suite.others_busy is not None and suite.others_busy > 0.25:
        found.append("Others kept %.2f processors busy meanwhile: sizes and counts hold, times do not." % suite.others_busy)
    if suite.repetitions == 1:
        found.append("There is only one repetition: no ranges, and a ratio near 1 says nothing.")
    return ["- **%s**" % d for d in found] + [""] if found else []


def tally(compared, against):
    verdicts = [c.verdict(against) for c in compared]
    return "%d won, %d level, %d behind" % tuple(verdicts.count(v) for v in ("won", "level", "behind"))


def verdicts(compared):
    """Before the tables: who is ahead, in all and by program."""
    rows = []
    for run in dict.fromkeys(m.run for m in METRICS):
        of = [c for c in compared if c.metric.run == run and c.verdict()]
        if of:
            lost = ["%s (%s)" % (c.metric.title, c.best) for c in of if c.verdict() == "behind"]
            rows.append(["`%s`" % run, tally(of, "best"), tally(of, "glibc"), escape(", ".join(lost)) or "-"])
    if not rows:
        return ["There is nothing to compare with.", ""]
    return ["## Verdict", "", "Against the best general peer of each metric: %s. Against glibc: %s. Level is within %.0f %%, or %.0f per cent point where growth and "
            "shares are compared. Medians over the repetitions; the best peer may be another one in each metric. Growth below 0 counts as 0."
            % (tally(compared, "best"), tally(compared, "glibc"), 100 * LEVEL, POINTS_LEVEL), "",
            *table(["program", "against the best peer", "against glibc", "behind in, and whom"], rows), ""]


def short_verdict(suite):
    """The verdict for a page by hand: a line for each program, and the machine."""
    compared = compare(suite)
    rows = []
    for run in dict.fromkeys(m.run for m in METRICS):
        of = [c for c in compared if c.metric.run == run and c.verdict()]
        if of:
            rows.append(["`%s`" % run, tally(of, "best"), tally(of, "glibc")])
    return ["Against glibc: %s. Against the best general allocator of each metric: %s." % (tally(compared, "glibc"), tally(compared, "best")), "",
            *table(["program", "against the best general allocator", "against glibc"], rows)[:-1],
            "", "Machine: %s, %d processors. Commit %s, %s, `%s`, %d repetitions." % (suite.cpu or "unknown processor", suite.cpus, suite.commit or "unknown",
                                                                                 (suite.date or "unknown")[:10], suite.command.replace("`", "'"), suite.repetitions)]


def middle(compared, ratios):
    if not ratios:
        return "-"
    return "%+.2f points" % statistics.median(ratios) if compared.metric.points else text_of(statistics.median(ratios))


def spread(compared, ratios):
    if len(ratios) < 2:
        return "-"
    form = (lambda v: "%+.2f" % v) if compared.metric.points else text_of
    return " to ".join(dict.fromkeys(form(v) for v in (min(ratios), max(ratios))))


def title(metric):
    return escape(metric.title + (", " + metric.unit if metric.unit else "")) + (" (more is better)" if metric.more else "")


def reason(why, metric):
    return why.get((metric.run, metric.path), why.get((metric.run, "*"), "(not explained)"))


def losses(compared, why):
    behind = [c for c in compared if c.verdict() == "behind"]
    if not behind:
        return []
    behind.sort(key=lambda c: (c.metric.points, -statistics.median(c.to_best or [0])))
    rows = [["`%s`: %s" % (c.metric.run, title(c.metric)), text_of(c.medians["tslab"]), "%s %s" % (text_of(c.medians[c.best]), escape(c.best)), middle(c, c.to_best),
             spread(c, c.to_best), reason(why, c.metric)] for c in behind]
    return ["## Where temporal-slab is behind", "", *table(["metric", "temporal-slab", "best peer", "ratio", "its range", "why"], rows), ""]


def command_of(suite, run):
    return "`%s`" % suite.commands.get(run, run).replace("|", "/")


def ranking(suite, run, path):
    medians = Compared(Metric(run, path, "", "us"), suite).medians
    return ", ".join("%s %s" % (name, text_of(value)) for name, value in sorted(medians.items(), key=lambda pair: pair[1])) + " us, mean" if medians else None


def value_of(values):
    """Counts and small shares as people write them."""
    value = statistics.median(values)
    if value == int(value):
        return "{:,}".format(int(value))
    return ("%.6f" % value).rstrip("0") if abs(value) < 0.001 else text_of(value)


def figure(suite, run, form, wanted):
    """The sentence with its values; a value that is not there is a dash, and None when there is none at all."""
    if form is None:
        return ranking(suite, run, wanted[0][0])
    texts = []
    for path, who in wanted:
        values = [at(r.report, path) for r in suite.runs if (r.program, r.allocator) == (run, who)]
        values = [v for v in values if v is not None]
        texts.append(value_of(values) if values else "-")
    return form.format(*texts) if any(t != "-" for t in texts) else None


def figures(suite):
    rows = [[escape(published), escape(figure(suite, run, form, wanted) or "not in this run"), command_of(suite, run)] for published, run, form, wanted in FIGURES]
    return ["## Figures of the founding papers", "", "Published figures are from other machines: compare what each has beside it. Medians over the repetitions. Programs are in "
            "`build/bench/suite`; glibc and the others are run with `--allocator malloc`. More of them: [coming from the papers](../../coming-from/papers.md#figures).", "",
            *table(["published", "here", "command"], rows), ""]


def numbers(suite, compared, run):
    of = [c for c in compared if c.metric.run == run]
    if not of:
        return []
    names = [n for n in suite.allocators() if n != "tslab"]
    rows = []
    for c in of:
        best = max if c.metric.more else min
        leader = None if c.metric.plain else best((n for n in c.medians if suite.kinds.get(n) in ("general", "ours")), key=lambda n: c.medians[n], default=None)
        cells = ["**%s**" % text_of(c.medians[n]) if n == leader else text_of(c.medians[n]) if n in c.medians else "" for n in ["tslab", *names]]
        verdict = c.verdict()
        rows.append([title(c.metric), cells[0], "-" if c.metric.plain else middle(c, c.to_glibc),
                     "%s %s" % (middle(c, c.to_best), WORDS[verdict]) if verdict else "-", spread(c, c.to_best) if verdict else "-", *cells[1:]])
    return ["### " + run, "", command_of(suite, run), "",
            *table(["metric", "temporal-slab", "to glibc", "to the best peer", "its range", *(escape(n) for n in names)], rows), ""]


def ours_alone(suite):
    rows = [["`%s`: %s" % (c.metric.run, title(c.metric)), text_of(c.medians["tslab"])] for c in compare(suite, OURS_ALONE) if "tslab" in c.medians]
    return ["### Of temporal-slab alone", "", *table(["metric", "temporal-slab"], rows), ""] if rows else []


def missing(suite, drawn):
    lines = ["- picture \"%s\": %s" % (name, escape(text)) for key, name, _ in PICTURES for text in [drawn.get(key)] if text]
    lines += ["- %s: %s" % (escape(n), escape(text)) for n, text in suite.missing.items()]
    lines += ["- failed: " + escape(f) for f in suite.failures] + ["- " + escape(n) for n in suite.notes]
    lines += ["- %s was not run" % run for run in dict.fromkeys(m.run for m in METRICS) if run not in suite.programs]
    return ["## What is missing, and why", "", *lines, ""] if lines else []


def unexplained(suite, why):
    return [c.metric for c in compare(suite) if c.verdict() == "behind" and reason(why, c.metric) == "(not explained)"]


def write(suite, why, drawn, source):
    """drawn: {picture: why it is not there}"""
    compared = compare(suite)
    lines = [*INTRODUCTION, *facts(suite, source), *doubts(suite), *verdicts(compared)]
    lines += losses(compared, why) + figures(suite)
    shown = [(name, head, text) for name, head, text in PICTURES if not drawn.get(name)]
    if shown:
        lines += ["## Pictures", ""]
    for name, head, text in shown:
        lines += ["### " + head, "", "![%s](../suite/%s.png)" % (head, name), "", text, ""]
    lines += ["## All numbers", "", "Medians. Ratios are of costs, taken repetition by repetition; below 1 temporal-slab is better (per cent points: below 0). In bold who is the "
              "best of temporal-slab and the general peers; snmalloc-checks, mimalloc-secure and scudo refuse doubled frees, as temporal-slab does, and are never the best peer.", ""]
    for run in dict.fromkeys(m.run for m in METRICS):
        lines += numbers(suite, compared, run)
    lines += ours_alone(suite)
    versions = ", ".join("%s %s" % (n, suite.versions[n] or "") for n in suite.allocators())
    lines += ["## Allocators", "", escape(versions) + ".", "", *missing(suite, drawn)]
    return "\n".join(lines).rstrip() + "\n"
