"""The results of a run of the suite in small: two files beside the page that is made of them, so that it can be made again.

  numbers.json  the head of the run, and what the page needs of each report: a line a run, its values in the order of "columns"
  curves.json   what the pictures need besides: histograms, repetitions added up, and memory over time, medians

Numbers with a fraction are kept to five digits. The page is always made from these files, never from the run itself.
"""

import json
import os
import re
import statistics

from .read import Damaged, Nothing, field, read_json, without_folders
from .suite import Run, Suite, histogram, number
from .suite_metrics import METRICS, OURS_ALONE, at, names_of

FORMAT = 2
MOST_BYTES = 300 * 1000
MORE = {"benchmark_threads": ["scaling[%d].latency.both_p99_ns" % n for n in (1, 2, 4, 8, 16)]}  # of pictures
PARTS = ("start_kb", "full_kb", "freed_kb", "closed_kb")
HISTOGRAMS = {"churn_fixed": ["latency.histogram.alloc", "latency.histogram.free"], "benchmark_accurate": ["latency.histogram.alloc", "latency.histogram.free"],
              "request_bench": ["arms"]}
OVER_TIME = ("sustained_phase_shifts", "soak", "steady_state_churn", "phase_shift_retention")
POINTS = 120
HEAD = ("date", "finished", "complete", "cpu", "cpus", "memory_mb", "kernel", "system", "commit", "form", "repetitions", "seed", "programs", "missing",
        "others_busy", "seconds")


def short(value):
    return None if value is None else int(value) if value == int(value) else float("%.5g" % value)


def columns(program):
    """Paths of what is kept of its report."""
    return list(dict.fromkeys([m.path for m in METRICS + OURS_ALONE if m.run == program] + MORE.get(program, [])))


def entry_of(report, name, key):
    """The entry of the list that is called so; made where there is none."""
    entries = report.setdefault(name, [])
    found = next((e for e in entries if names_of(e) == key), None)
    if found is None:
        found = {"threads": int(key)} if name == "scaling" else dict(zip(("policy", "recycling"), key.split(":")))
        entries.append(found)
    return found


def put(report, path, value):
    """The reverse of at()."""
    *above, last = path.split(".")
    for part in above:
        name, _, key = part.partition("[")
        report = entry_of(report, name, key[:-1]) if key else report.setdefault(name, {})
    report[last] = value


def rebuilt(paths, values):
    report = {}
    for path, value in zip(paths, values):
        if value is not None:
            put(report, path, value)
    return report


def pairs(buckets):
    return [[int(bound), int(count)] for bound, count in sorted(buckets.items())]


def histograms_of(suite, program):
    """{allocator: {path: [[bound, count], ...]}}"""
    found = {}

    def add(allocator, path, buckets):
        total = found.setdefault(allocator, {}).setdefault(path, {})
        for bound, count in histogram(buckets).items():
            total[bound] = total.get(bound, 0) + count

    for run in (r for r in suite.runs if r.program == program):
        for path in HISTOGRAMS[program]:
            if path == "arms":
                for entry in run.report.get("arms", []):
                    add(run.allocator, "%s:%s" % (entry.get("policy"), entry.get("recycling")), entry.get("histogram"))
            else:
                _, _, kind = path.split(".")
                add(run.allocator, path, run.report.get("latency", {}).get("histogram", {}).get(kind))
    return {a: {path: pairs(b) for path, b in by.items() if b} for a, by in found.items()}


def reclamation(suite):
    """{allocator: [[cycle, resident KiB at start, full, freed, closed], ...]}, medians"""
    found = {}
    for run in (r for r in suite.runs if r.program == "epoch_reclamation_demo"):
        for entry in run.report.get("cycles", []):
            found.setdefault(run.allocator, {}).setdefault(entry["cycle"], []).append([entry[part] for part in PARTS])
    return {a: [[cycle, *(short(statistics.median(v)) for v in zip(*rows))] for cycle, rows in sorted(by.items())] for a, by in found.items()}


def over_time(suite, program):
    try:
        lines = suite.memory_over_time(program)
    except Nothing:
        return {}
    thin = {}
    for allocator, line in lines.items():
        every = -(-len(line) // POINTS)
        thin[allocator] = [[x, short(float(y))] for i, (x, y) in enumerate(line) if i % every == 0 or i + 1 == len(line)]
    return thin


def without_places(text):
    """Nor where a CSV file went, and what every command has."""
    return re.sub(r" --(csv=\S+|json|seed \d+)", "", without_folders(text))


def commands_of(folder):
    """{program: the command of ours}"""
    found = {}
    with open(os.path.join(folder, "results.jsonl"), encoding="utf-8") as lines:
        for line in lines:
            try:
                entry = json.loads(line)
            except ValueError:
                continue  # cut off; Suite has said so
            if entry.get("allocator") == "tslab":
                options = "TSLAB_OPTIONS=%s " % entry["options"] if entry.get("options") else ""
                found[entry["program"]] = options + without_places(" ".join(entry["command"]))
    return found


def write_lines(path, head, name, rows):
    """One object; its list `name` has an entry to a line."""
    text = json.dumps({**head, name: []}, separators=(",", ":"))[:-2]
    text += "\n" + ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows) + "\n]}\n"
    if len(text) > MOST_BYTES:
        raise Damaged("%s would have %d bytes; the most is %d" % (path, len(text), MOST_BYTES))
    with open(path + ".new", "w", encoding="utf-8") as to:
        to.write(text)
    os.replace(path + ".new", path)


def keep(folder, to):
    """Writes numbers.json and curves.json of the run in `folder` into `to`."""
    suite, run = Suite(folder), read_json(os.path.join(folder, "run.json"))
    loads = sorted(r.load for r in suite.runs if r.load is not None)
    head = {"format": FORMAT, **{k: run.get(k) for k in HEAD}, "command": suite.command, "notes": suite.notes, "failures": suite.failures,
            "missing": suite.missing, "loads": [short(loads[len(loads) // 2]), short(loads[-1])] if loads else None,
            "allocators": [{k: a.get(k) for k in ("name", "version", "kind")} for a in run["allocators"]], "commands": commands_of(folder)}
    head["columns"] = {program: columns(program) for program in dict.fromkeys(r.program for r in suite.runs)}
    write_lines(os.path.join(to, "numbers.json"), head, "results", [
        [r.program, r.allocator, r.repetition, *(short(at(r.report, path)) for path in head["columns"][r.program])] for r in suite.runs])
    curves = [["histogram", program, allocator, path, buckets] for program in HISTOGRAMS
              for allocator, by in histograms_of(suite, program).items() for path, buckets in by.items()]
    curves += [["memory", program, allocator, "rss_mib", line] for program in OVER_TIME for allocator, line in over_time(suite, program).items()]
    curves += [["cycles", "epoch_reclamation_demo", allocator, "cycles", rows] for allocator, rows in reclamation(suite).items()]
    write_lines(os.path.join(to, "curves.json"), {"format": FORMAT}, "curves", curves)


class KeptSuite(Suite):
    """The same as Suite, from the files that keep() wrote."""

    def __init__(self, folder):
        path = os.path.join(folder, "numbers.json")
        head, curves = read_json(path), read_json(os.path.join(folder, "curves.json"))
        for found in head, curves:
            if found.get("format") != FORMAT:
                raise Damaged("%s: format is %s, not %d" % (folder, found.get("format"), FORMAT))
        self.read_head(head, path)
        self.finished = field(head, "finished", str, path, True)
        self.loads = field(head, "loads", list, path, True)
        self.seconds = field(head, "seconds", float, path, True)
        self.commands = field(head, "commands", dict, path)
        self.notes, self.failures = head["notes"], head["failures"]
        paths = field(head, "columns", dict, path)
        self.runs = [Run({"program": program, "allocator": allocator, "repetition": repetition, "report": rebuilt(paths[program], values)}, path)
                     for program, allocator, repetition, *values in field(head, "results", list, path)]
        self.curves = field(curves, "curves", list, folder)
        self._hang_curves()

    def _hang_curves(self):
        """Each on the first run of its program and allocator: they are sums and medians."""
        for kind, program, allocator, path, rows in self.curves:
            report = next((r.report for r in self.runs if (r.program, r.allocator) == (program, allocator)), None)
            if kind == "memory" or report is None:
                continue
            if kind == "cycles":
                report["cycles"] = [dict(zip(("cycle", *PARTS), row)) for row in rows]
                continue
            buckets = [{"below_ns": bound, "count": count} for bound, count in rows]
            if ":" in path:
                entry_of(report, "arms", path)["histogram"] = buckets
            else:
                put(report, path, buckets)

    def memory_over_time(self, program):
        lines = {allocator: [(x, number(y)) for x, y in line] for kind, of, allocator, _, line in self.curves if (kind, of) == ("memory", program)}
        if not lines:
            raise Nothing("%s was not kept over time" % program)
        return lines
