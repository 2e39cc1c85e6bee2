"""Pictures of what tslab_bench measured. Each takes its results and returns a figure, or raises Nothing with the reason.

Backends that have no value in a row are not in its picture; the page lists them with their reasons. Vertical or thin lines
are the range over the repetitions.
"""

import re

from matplotlib import pyplot

from . import style
from .read import LEVEL, Nothing


def points(bench, metrics, value_of_name):
    """{backend: [(x, median, least, most)]}, in the order of the backends."""
    found = {}
    for backend in bench.backends:
        for metric in metrics:
            cell, x = metric.cells.get(backend.name), value_of_name(metric.name)
            if cell and cell.median is not None and x is not None:
                found.setdefault(backend.name, []).append((x, cell.median, cell.least, cell.most))
    return found


def note(metric, backend, failures):
    """What stands behind a name: that it checks, and repetitions that failed."""
    return (" (checks)" if metric.groups[backend] == "checked" else "") + (" (failed %d x)" % failures if failures else "")


def notes(metrics):
    worst = {}
    for metric in metrics:
        for cell in metric.measured():
            worst[cell.backend] = max(worst.get(cell.backend, 0), cell.failures)
    return {name: note(metrics[0], name, n) for name, n in worst.items()}


def leading_number(name):
    found = re.match(r"[\d,]+", name)
    return int(found.group().replace(",", "")) if found else None


def order(bench):
    return [b.name for b in bench.group("ours") + bench.group("general") + bench.group("checked") + bench.group("phase") + bench.group("limit")]


# ---- at a glance ----


def summary(bench, _):
    """Every metric against its best peer."""
    shown = sorted((m for m in bench.compared() if m.ours().to_best is not None), key=lambda m: m.ours().to_best)
    if not shown:
        raise Nothing("no metric has a value of ours and one of a peer above zero")
    figure, axes = pyplot.subplots(figsize=(style.WIDTH, 0.185 * len(shown) + 1.35))
    colours = {"won": style.OURS, "level": style.LEVEL_GREY, "behind": style.BEHIND}
    axes.set_xscale("log")
    axes.axvspan(1 - LEVEL, 1 + LEVEL, color="#d9d9d9", linewidth=0, zorder=0)
    axes.axvline(1, color="#222222", linewidth=1, zorder=1)
    ratios = [m.ours().to_best for m in shown]
    for y, metric in enumerate(shown):
        ratio, paint = ratios[y], colours[metric.verdict()]
        low, high = metric.ratio_range() or (ratio, ratio)
        ratios += [low, high]
        axes.plot([1, ratio], [y, y], color=paint, linewidth=3.2, alpha=0.35, solid_capstyle="butt", zorder=2)
        axes.plot([low, high], [y, y], color=paint, linewidth=1, zorder=3)
        axes.plot([ratio], [y], "o", color=paint, markersize=5, zorder=4)
        axes.text(1.012, y, "%s  %s" % (style.text_of(ratio), metric.best_peer), color=paint, va="center", fontsize=7.5,
                  transform=axes.get_yaxis_transform())
    axes.set_xlim(min(*ratios, 0.5) / 1.2, max(*ratios, 2) * 1.2)
    style.plain_ticks(axes.xaxis)
    axes.set_yticks(range(len(shown)), ["%s: %s" % (m.row, m.name) for m in shown], fontsize=7.5)
    axes.set_ylim(len(shown) - 0.3, -0.7)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color="#e6e6e6", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.text(1.012, -1.1, "ratio  best peer", va="center", fontsize=7.5, color="#444444", transform=axes.get_yaxis_transform())
    axes.set_xlabel("cost, relative to the best peer (logarithmic)     left of 1: temporal-slab is better; grey band: level, within 5 %")
    verdicts = [m.verdict() for m in bench.compared()]
    title = "temporal-slab against the best of the others: %d won, %d level, %d behind" % tuple(map(verdicts.count, colours))
    hidden = len(verdicts) - len(shown)
    axes.set_title(title + ("\n%d not drawn: a value is 0" % hidden if hidden else ""), loc="left", pad=14)
    figure.tight_layout()
    return figure


# ---- latency ----


def latency(bench, _):
    metrics = bench.of_row("batch_tail")
    kinds = [(kind, [m for m in metrics if re.match(kind + r" p\d", m.name)]) for kind in ("alloc", "free")]
    kinds = [(kind, found) for kind, found in kinds if any(m.measured() for m in found)]
    if not kinds:
        raise Nothing("the row batch_tail has no percentiles")
    figure, all_axes = style.panels(len(kinds), 4.2)
    for axes, (kind, found) in zip(all_axes, kinds):
        names = [m.name[len(kind) + 1:] for m in found]
        axes.set_yscale("log")
        style.lines(axes, points(bench, found, lambda name, f=found: [m.name for m in f].index(name)), notes(found), least=1)
        style.plain_ticks(axes.yaxis)
        axes.set_xticks(range(len(names)), names)
        axes.set_xlim(-0.15, len(names) - 0.85)
        axes.set_ylabel("ns (below 1 is drawn at 1)")
        axes.set_title("%s of 128 B, one call" % {"alloc": "allocation", "free": "free"}[kind])
        style.grid(axes)
    style.legend(figure, order(bench), 7)
    return figure


# ---- costs against a size ----


def scale(axes, bench, row, label, title, base=10):
    metrics = bench.of_row(row)
    series = points(bench, metrics, leading_number)
    if not series:
        raise Nothing("the row %s has no sizes" % row)
    axes.set_xscale("log", base=base)
    axes.set_yscale("log")
    style.lines(axes, series, notes(metrics))
    style.plain_ticks(axes.yaxis)
    xs = sorted({p[0] for line in series.values() for p in line})
    axes.set_xticks(xs, ["{:,}".format(x) for x in xs])
    axes.set_xticks([], minor=True)
    axes.set_ylabel(label)
    axes.set_title(title)
    style.grid(axes)


def several(bench, parts):
    """A panel for each part that has something to show; the reasons of all where none has."""
    good, reasons = [], []
    for row, *more in parts:
        try:
            if points(bench, bench.of_row(row), leading_number):
                good.append((row, *more))
        except Nothing as nothing:
            reasons.append(str(nothing))
    if not good:
        raise Nothing("; ".join(reasons) or "no row with sizes")
    figure, all_axes = style.panels(len(good), 3.9)
    for axes, (row, y_label, title, x_label) in zip(all_axes, good):
        scale(axes, bench, row, y_label, title)
        axes.set_xlabel(x_label)
    style.legend(figure, order(bench), 7)
    return figure


def size(bench, _):
    return several(bench, [
        ("live", "ns for a free and an allocation", "cost against live objects", "live objects of 128 B"),
        ("close_cost", "us for a close", "epoch_close against empty slabs", "slabs of a page"),
    ])


# ---- bars ----


def ranking(metric):
    """Rows for style.dots, the best first."""
    cells = sorted(metric.measured(), key=lambda c: c.median, reverse=metric.more)
    return [(c.backend, c.median, c.least, c.most, note(metric, c.backend, c.failures)) for c in cells]


def unit(metric):
    """Of a panel: unit, direction, and who is not in it although it was asked."""
    broken = ["%s: %s" % (c.backend, c.state) for c in metric.cells.values() if c.median is None and c.state in ("failed", "corrupt")]
    return metric.unit + (", more is better" if metric.more else "") + ("     (%s)" % "; ".join(broken) if broken else "")


def bars(bench, wanted):
    found = [(bench.metric(row, name), title) for row, name, title in wanted]
    found = [(m, title) for m, title in found if m and m.measured()]
    if not found:
        raise Nothing("none of the rows %s has values" % ", ".join(dict.fromkeys(row for row, _, _ in wanted)))
    most = max(len(m.measured()) for m, _ in found)
    figure, all_axes = style.panels(len(found), max(0.155 * most + 0.95, 1.8))
    for axes, (metric, title) in zip(all_axes, found):
        style.dots(axes, ranking(metric), unit(metric))
        axes.set_title(title)
    figure.tight_layout()
    return figure


def general(bench, _):
    return bars(bench, [("pair", "alloc + free", "pair: one object, hot"), ("batch", "alloc + free", "batch: 100,000 at once"),
                        ("mixed", "free + alloc", "mixed: eight sizes, at random"),
                        ("xthread", "4 threads", "xthread: freed by other threads")])


def phases(bench, _):
    return bars(bench, [("request_own", "1 thread", "request_own: 225 objects, freed singly"),
                        ("request_bulk", "1 thread", "request_bulk: ended in bulk"), ("phase100", "phase", "phase100: 100 objects and the end"),
                        ("domain", "without a label", "domain: an empty phase"),
                        ("open_phases", "eighth lap, open to end", "open_phases: of 10,000 open ones, one"),
                        ("open_phases", "resident bytes per phase", "open_phases: memory of one (1760 B live)")])


def use(bench, _):
    return bars(bench, [("phase10", "in bulk", "phase10: ten objects, ended in bulk"),
                        ("phase10", "freed singly", "phase10: ten objects, freed singly"),
                        ("realloc_grow", "a buffer", "realloc_grow: 50 steps to 15 KB"),
                        ("big_phase", "an object", "big_phase: 100,000 objects, one"),
                        ("in_domain", "pair", "in_domain: a pair inside a phase"),
                        ("in_domain", "mixed", "in_domain: eight sizes, at random")])


def two_threads(bench, _):
    return bars(bench, [("handed_on", "a phase", "handed_on: ended by another thread"),
                        ("request_bulk", "2 threads", "request_bulk: on two threads"),
                        ("end_tail", "end p99.99", "end_tail: p99.99 of an end"),
                        ("shared_allocator", "2 threads, one allocator", "shared_allocator: two threads")])


def fragmentation(bench, _):
    return bars(bench, [("churn_apart", "resident / live", "churn_apart: survivors kept apart"),
                        ("churn_left", "resident / live", "churn_left: survivors in their phase"),
                        ("big_phases", "left over start, ended", "big_phases: left after 250 MB ended"),
                        ("rss", "after the end", "rss: left after 300,000 x 128 B ended"),
                        ("big_phase", "resident over start, ended", "big_phase: left right after an end"),
                        ("left_over", "over start, ended", "left_over: left after 50,000 phases")])


def threads(bench, _):
    metrics = bench.of_row("threads")
    figure, (left, right) = style.panels(2, 4.0)
    scale(left, bench, "threads", metrics[0].unit, "batches of 1000 x 128 B", 2)
    left.set_xlabel("threads (the machine has %d processors)" % bench.cpus)
    last = metrics[-1]
    style.dots(right, ranking(last), unit(last))
    right.set_title("at %s" % last.name)
    style.legend(figure, order(bench), 7)
    return figure
