"""Results of tslab_bench as its --json writes them, format 2 (bench/README.md).

A damaged or foreign file raises Damaged with one line that says what is wrong; whatever has been read is of the right type.
A number that is not there is None. Nothing is computed here that the file states, but for the range of a ratio.
"""

import json
import math
import re

FORMAT = 2
LEVEL = 0.05
GROUPS = ("general", "checked", "phase", "limit", "ours", "observed")
STATES = ("ok", "failed", "corrupt", "cannot", "missing", "none")
KINDS = {str: "a text", bool: "true or false", list: "a list", dict: "an object", float: "a number"}


class Damaged(Exception):
    """A file that cannot be used; the text names it and says why."""


class Nothing(Exception):
    """A picture that has nothing to show; the text says why."""


def without_folders(text):
    """Where a machine keeps its files is nobody's business."""
    return re.sub(r"(?<![\w.])~?/(?:[^\s/'\"|:]+/)+", "", text)


def read_json(path):
    def refuse(word):
        raise ValueError("%s is no number of JSON" % word)

    try:
        with open(path, encoding="utf-8") as text:
            return json.load(text, parse_constant=refuse)
    except OSError as error:
        raise Damaged("%s: %s" % (path, error.strerror)) from error
    except (ValueError, RecursionError) as error:
        raise Damaged("%s is damaged, or no JSON: %s" % (path, error)) from error


def field(entry, key, kind, where, optional=False):
    """entry[key], which is of that kind; None only where it is optional."""
    if not isinstance(entry, dict):
        raise Damaged("%s is not an object" % where)
    value = entry.get(key)
    if value is None and optional:
        return None
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind is float and number and math.isfinite(value):
        return float(value)
    if kind is not float and isinstance(value, kind):
        return without_folders(value) if kind is str else value
    raise Damaged("%s: '%s' is %s, not %s" % (where, key, "missing" if value is None else repr(value)[:40], KINDS[kind]))


class Backend:
    def __init__(self, entry, where):
        self.name = field(entry, "name", str, where)
        self.group = field(entry, "group", str, where)
        self.version = field(entry, "version", str, where, True)
        self.available = field(entry, "available", bool, where)
        self.reason = field(entry, "reason", str, where, True)
        if self.group not in GROUPS:
            raise Damaged("%s: there is no group '%s'" % (where, self.group))


class Cell:
    """One metric of one backend."""

    NUMBERS = ("median", "min", "max", "spread", "ratio_glibc", "ratio_best", "ratio_limit", "ratio_off", "instructions")

    def __init__(self, entry, where):
        self.backend = field(entry, "backend", str, where)
        self.state = field(entry, "state", str, where)
        self.reason = field(entry, "reason", str, where, True)
        self.failures = int(field(entry, "failures", float, where))
        self.median, self.least, self.most, self.spread, self.to_glibc, self.to_best, self.to_limit, self.to_off, self.instructions = (
            field(entry, key, float, where, True) for key in self.NUMBERS)
        self.values = [None if v is None else field({"values": v}, "values", float, where)
                       for v in field(entry, "values", list, where)]
        if self.state not in STATES:
            raise Damaged("%s: there is no state '%s'" % (where, self.state))
        if self.median is not None and (self.least is None or self.most is None):
            raise Damaged("%s: a median without min and max" % where)

    @property
    def count(self):
        return sum(v is not None for v in self.values)


class Metric:
    def __init__(self, entry, backends, where):
        self.row = field(entry, "row", str, where)
        self.name = field(entry, "metric", str, where)
        where = "%s (%s, %s)" % (where, self.row, self.name)
        self.what = field(entry, "what", str, where)
        self.unit = field(entry, "unit", str, where)
        self.plain = field(entry, "plain", bool, where)
        self.drawn = field(entry, "drawn", bool, where, True) or False
        self.best_peer = field(entry, "best_peer", str, where, True)
        self.winner = field(entry, "winner", str, where, True)
        better = field(entry, "better", str, where)
        if better not in ("lower", "higher"):
            raise Damaged("%s: better is '%s'" % (where, better))
        self.more = better == "higher"
        self.groups = {b.name: b.group for b in backends}
        self.cells = {}
        for i, result in enumerate(field(entry, "results", list, where)):
            cell = Cell(result, "%s, result %d" % (where, i + 1))
            if cell.backend not in self.groups:
                raise Damaged("%s: there is no backend '%s'" % (where, cell.backend))
            self.cells[cell.backend] = cell
        if self.best_peer is not None and self.median(self.best_peer) is None:
            raise Damaged("%s: the best peer '%s' has no value" % (where, self.best_peer))

    def median(self, backend):
        return self.cells[backend].median if backend in self.cells else None

    def measured(self):
        return [c for c in self.cells.values() if c.median is not None]

    def ours(self):
        """The cell that stands for us: tslab, or the first of our other ways where it has no value."""
        return next((c for c in self.measured() if self.groups[c.backend] == "ours"), None)

    def glibc(self):
        return self.cells.get("glibc")

    def verdict(self):
        """"won", "level", "behind", or None where nothing is to win or nobody to win against."""
        own = self.ours()
        if self.plain or own is None or self.best_peer is None:
            return None
        if own.to_best is not None:
            return "won" if own.to_best < 1 - LEVEL else "level" if own.to_best <= 1 + LEVEL else "behind"
        other = self.median(self.best_peer)  # one of them is not above zero: there is no quotient
        if own.median == other:
            return "level"
        return "won" if (own.median < other) != self.more else "behind"

    def best_of_turn(self, i, groups=("general", "phase")):
        """The best value in a repetition, or None."""
        return (max if self.more else min)((c.values[i] for c in self.cells.values() if self.groups[c.backend] in groups
                                            and i < len(c.values) and c.values[i] is not None), default=None)

    def ratios(self):
        """Of our cost to the best peer, one for each repetition; None where there is none."""
        own, found = self.ours(), []
        for i, value in enumerate(own.values if own and not self.plain else ()):
            best = self.best_of_turn(i)
            there = best is not None and best > 0 and value is not None and value > 0
            found.append((best / value if self.more else value / best) if there else None)
        return found

    def ratio_range(self):
        """Least and most of them, or None."""
        found = [r for r in self.ratios() if r is not None]
        return (min(found), max(found)) if found else None


class Bench:
    TEXTS = ("date", "form", "cpu", "kernel", "compiler", "commit", "command")

    def __init__(self, path):
        found = read_json(path)
        if not isinstance(found, dict) or found.get("program") != "tslab_bench":
            raise Damaged("%s is no result of tslab_bench --json" % path)
        form = found.get("format", 1)
        if form != FORMAT:
            known = isinstance(form, int) and form > FORMAT
            raise Damaged("%s has format %s, and this reads format %d: %s" % (
                path, json.dumps(form)[:20], FORMAT, "use the plot_bench.py of its tree" if known else "run tslab_bench again"))
        for key in self.TEXTS:
            setattr(self, key, field(found, key, str, path, True))
        self.complete = field(found, "complete", bool, path)
        self.part, self.cpus, self.memory_mb, self.repetitions, self.seconds = (
            int(field(found, key, float, path)) for key in ("part", "cpus", "memory_mb", "repetitions", "seconds"))
        self.backends = [Backend(b, "%s: backend %d" % (path, i + 1)) for i, b in enumerate(field(found, "backends", list, path))]
        self.metrics = [Metric(m, self.backends, "%s: row %d" % (path, i + 1))
                        for i, m in enumerate(field(found, "rows", list, path))]
        self.seeds = [int(field({"seed": s}, "seed", float, path)) for s in field(found, "seeds", list, path, True) or ()]
        if not self.metrics:
            raise Damaged("%s has no rows" % path)

    def of_row(self, row):
        """The metrics of a row that somebody has a value for."""
        found = [m for m in self.metrics if m.row == row]
        if not found:
            raise Nothing("the row %s was not run" % row)
        measured = [m for m in found if m.measured()]
        if not measured:
            raise Nothing("nobody has a value in the row %s" % row)
        return measured

    def metric(self, row, name):
        return next((m for m in self.metrics if (m.row, m.name) == (row, name)), None)

    def compared(self):
        return [m for m in self.metrics if m.verdict()]

    def group(self, name):
        return [b for b in self.backends if b.group == name]
