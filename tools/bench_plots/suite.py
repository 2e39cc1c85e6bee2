"""An output directory of bench/suite/run.py: run.json, results.jsonl, csv/ (bench/suite/README.md).

Runs that failed count as not there and are named. A last line that was cut off, by a runner that was killed, is left out and
mentioned; any other damage raises Damaged.
"""

import csv
import json
import math
import os
import re
import statistics

from .read import Damaged, Nothing, field, read_json, without_folders

MEMORY = ["allocator", "cycle", "rss_mib"]


def number(value):
    good = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if good else None


def inside(report, path):
    """What is at that path of keys, or None."""
    for key in path.split("."):
        if not isinstance(report, dict) or key not in report:
            return None
        report = report[key]
    return report


def entries(report, path):
    found = inside(report, path)
    return [e for e in found if isinstance(e, dict)] if isinstance(found, list) else []


def histogram(found):
    """Upper bounds of the buckets and their counts: {bound: count}."""
    buckets = {}
    for entry in found if isinstance(found, list) else ():
        bound, count = (number(entry.get(k)) if isinstance(entry, dict) else None for k in ("below_ns", "count"))
        if bound is not None and bound > 0 and count is not None and count >= 0:
            buckets[bound] = buckets.get(bound, 0) + count
    return buckets


class Run:
    def __init__(self, entry, where):
        self.program, self.allocator = (field(entry, key, str, where) for key in ("program", "allocator"))
        self.repetition = int(field(entry, "repetition", float, where))
        self.error = field(entry, "error", str, where, True)
        self.report = field(entry, "report", dict, where, True)
        self.load = field(entry, "load_average", float, where, True)
        if self.error is None and self.report is None:
            self.error = "no report"


class Suite:
    def __init__(self, path):
        self.path = path
        if not os.path.isdir(path):
            raise Damaged("%s is no directory; it takes an output directory of bench/suite/run.py" % path)
        self.read_head(read_json(os.path.join(path, "run.json")), os.path.join(path, "run.json"))
        self.notes = []
        runs = self._read_runs(os.path.join(path, "results.jsonl"))
        self.runs = [r for r in runs if r.error is None]
        self.failures = ["%s %s, repetition %d: %s" % (r.program, r.allocator, r.repetition + 1, r.error) for r in runs if r.error]
        if not runs:
            raise Damaged("%s has no runs" % os.path.join(path, "results.jsonl"))

    def read_head(self, head, where):
        self.complete = field(head, "complete", bool, where)
        self.date, self.cpu, self.kernel, self.system, self.commit, self.form = (
            field(head, key, str, where, True) for key in ("date", "cpu", "kernel", "system", "commit", "form"))
        self.cpus, self.memory_mb = (int(field(head, key, float, where, True) or 0) for key in ("cpus", "memory_mb"))
        self.quick = self.form == "smoke"
        self.others_busy = field(head, "others_busy", float, where, True)
        self.command = without_folders(field(head, "command", str, where))
        self.repetitions = int(field(head, "repetitions", float, where))
        self.programs = [str(p) for p in field(head, "programs", list, where)]
        allocators = field(head, "allocators", list, where)
        self.versions = {field(a, "name", str, where): field(a, "version", str, where, True) for a in allocators}
        self.kinds = {field(a, "name", str, where): field(a, "kind", str, where, True) or "general" for a in allocators}
        self.missing = {str(k): without_folders(str(v)) for k, v in field(head, "missing", dict, where).items()}

    def _read_runs(self, path):
        runs = []
        try:
            with open(path, encoding="utf-8") as text:
                lines = text.read().splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise Damaged("%s: %s" % (path, getattr(error, "strerror", None) or "it is no text")) from error
        for i, line in enumerate(lines):
            try:
                runs.append(Run(json.loads(line), "%s: line %d" % (path, i + 1)))
            except (ValueError, RecursionError) as error:
                if i + 1 < len(lines):
                    raise Damaged("%s: line %d is damaged: %s" % (path, i + 1, error)) from error
                self.notes.append("The last line of results.jsonl was cut off and is left out.")
        return runs

    def allocators(self):
        """Ours, then the others in the order of the run."""
        return [a for a in self.versions if any(r.allocator == a for r in self.runs)]

    def of(self, program):
        """{allocator: its runs}"""
        if program not in self.programs:
            raise Nothing("%s was not run" % program)
        found = {a: [r for r in self.runs if (r.program, r.allocator) == (program, a)] for a in self.allocators()}
        found = {a: runs for a, runs in found.items() if runs}
        if not found:
            raise Nothing("no run of %s succeeded" % program)
        return found

    def values(self, program, path):
        """{allocator: {repetition: number}}"""
        found = {}
        for allocator, runs in self.of(program).items():
            numbers = {r.repetition: number(inside(r.report, path)) for r in runs}
            numbers = {k: v for k, v in numbers.items() if v is not None}
            if numbers:
                found[allocator] = numbers
        if not found:
            raise Nothing("the reports of %s have no %s" % (program, path))
        return found

    def histograms(self, program, get):
        """{allocator: {bound: count}}, repetitions added up; get(report) is a list of buckets."""
        found = {}
        for allocator, runs in self.of(program).items():
            total = {}
            for run in runs:
                for bound, count in histogram(get(run.report)).items():
                    total[bound] = total.get(bound, 0) + count
            if sum(total.values()):
                found[allocator] = total
        if not found:
            raise Nothing("the reports of %s hold no histograms (those of older programs did not)" % program)
        return found

    def memory_over_time(self, program):
        """{allocator: [(cycle, resident MiB)]}, medians over the repetitions, of the CSV files."""
        found = {}
        for allocator, runs in self.of(program).items():
            cycles = {}
            for run in runs:
                for cycle, mib in self._memory_rows(program, run):
                    cycles.setdefault(cycle, []).append(mib)
            if cycles:
                found[allocator] = [(c, statistics.median(v)) for c, v in sorted(cycles.items())]
        if not found:
            raise Nothing("there are no rows of %s in csv/" % program)
        return found

    def _memory_rows(self, program, run):
        name = "%s.%s.%d.csv" % (program, run.allocator, run.repetition)
        if not re.fullmatch(r"[\w.+-]+", name):
            return []
        try:
            with open(os.path.join(self.path, "csv", name), encoding="utf-8", newline="") as text:
                rows = list(csv.reader(text))
        except (OSError, UnicodeDecodeError, csv.Error):
            return []
        if not rows or rows[0][:3] != MEMORY:
            return []
        try:
            pairs = [(int(row[1]), float(row[2])) for row in rows[1:]]
            if not all(math.isfinite(mib) for _, mib in pairs):
                raise ValueError
            return pairs
        except (ValueError, IndexError):
            self.note("csv/%s is damaged and left out." % name)
            return []

    def note(self, text):
        if text not in self.notes:
            self.notes.append(text)
