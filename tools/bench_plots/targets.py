"""Targets, and whether results reach them.

A target is a line of a file: ROW tab METRIC tab BACKEND tab AGAINST tab LIMIT. BACKEND is one of our ways. AGAINST is `value`, and
LIMIT a value of the metric; or it is what our cost is divided by, repetition by repetition, and LIMIT the most that the
median of the quotients may be: `best` peer, best `general` allocator, the name of a backend, or another cell as
ROW/METRIC/BACKEND: a time that means something only beside another time of the same machine (units of time are converted), or
a row of ours beside another one of ours.
"""

import statistics

from .read import LEVEL, Damaged
from .tables import escape, name, table, text_of


NS = {"ns": 1, "us": 1e3, "ms": 1e6}


class Target:
    def __init__(self, cells, where):
        if len(cells) != 5:
            raise Damaged("%s is not ROW tab METRIC tab BACKEND tab AGAINST tab LIMIT" % where)
        self.row, self.metric, self.backend, self.against, limit = cells
        try:
            self.limit = float(limit)
        except ValueError:
            self.limit = 0
        if not 0 < self.limit < 1e12:
            raise Damaged("%s: the limit '%s' is no number above 0" % (where, limit))


def read(path):
    with open(path, encoding="utf-8") as text:
        lines = [(i + 1, line.rstrip("\n")) for i, line in enumerate(text)]
    return [Target(line.split("\t"), "%s: line %d" % (path, i)) for i, line in lines if line.strip() and not line.startswith("#")]


def find(bench, row, metric, where):
    found = bench.metric(row, metric)
    if found is None and any(m.row == row for m in bench.metrics):
        raise Damaged("%s: the row '%s' has no metric '%s'" % (where, row, metric))
    return found


def others(bench, metric, against, count, where):
    """A value for each repetition, None where there is none."""
    if against in ("best", "general"):
        groups = ("general", "phase") if against == "best" else ("general",)
        return [metric.best_of_turn(i, groups) for i in range(count)]
    parts = against.split("/")
    if len(parts) not in (1, 3) or parts[-1] not in metric.groups:
        raise Damaged("%s: there is no '%s' to compare with" % (where, against))
    other = find(bench, parts[0], parts[1], where) if len(parts) == 3 else metric
    cell = other.cells.get(parts[-1]) if other else None
    if cell is None or other.unit == metric.unit:
        return cell.values if cell else []
    if other.unit not in NS or metric.unit not in NS:
        raise Damaged("%s: %s cannot be divided by %s" % (where, metric.unit, other.unit))
    return [v and v * NS[other.unit] / NS[metric.unit] for v in cell.values]


def measured(bench, target, where):
    """Our value, or our cost divided by the other's; None without one."""
    metric = find(bench, target.row, target.metric, where)
    if metric is not None and target.backend not in metric.groups:
        raise Damaged("%s: there is no backend '%s'" % (where, target.backend))
    own = metric.cells.get(target.backend) if metric else None
    if own is None or own.median is None or target.against == "value":
        return own.median if own else None
    pairs = zip(own.values, others(bench, metric, target.against, len(own.values), where))
    found = [o / v if metric.more else v / o for v, o in pairs if v is not None and o is not None and v > 0 and o > 0]
    return statistics.median(found) if found else None


def verdict(target, found):
    if found is None:
        return "not measured"
    return "met" if found <= target.limit else "level" if found <= target.limit * (1 + LEVEL) else "**missed**"


def lines(bench, path):
    """The part of the page."""
    rows, count = [], {}
    for target in read(path):
        found = measured(bench, target, "%s (%s, %s)" % (path, target.row, target.metric))
        said = verdict(target, found)
        count[said] = count.get(said, 0) + 1
        metric = bench.metric(target.row, target.metric)
        what = name(metric) if metric else escape("%s: %s" % (target.row, target.metric))
        by = "" if target.backend == "tslab" else ", " + escape(target.backend)
        rows.append([what + by, {"value": "-", "best": "the best peer", "general": "the best general allocator"}.get(
            target.against, escape(target.against.replace("/", ", "))), text_of(target.limit), text_of(found), said])
    words = ", ".join("%d %s" % (count[k], k.strip("*")) for k in ("met", "level", "**missed**", "not measured") if k in count)
    return ["## Targets", "", "What the project set out to reach. Measured is our cost divided by the other's, as the median over the "
            "repetitions; without another it is the value itself. Level: within 5 %% of the limit. Here: %s." % words, "",
            *table(["row", "against", "limit", "measured", ""], rows)] if rows else []
