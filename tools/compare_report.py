#!/usr/bin/env python3
"""Compares malloc with temporal-slab over the patterns of synthetic_bench, and tests what is claimed of temporal-slab.

Runs take turns: in each repetition every pattern runs unpaced and paced, and each time all allocators one after the
other, in an order that rotates. Ratios are taken between runs of the same turn, so that what slows the machine down for
a while slows all. temporal-slab runs twice: as the preset has it, which is phases of the ring, and as tslab-domain, where
each thread has a domain for its phase. Unpaced runs show speed. Paced runs show only that the pace was kept, and what a request waits at
that pace: both allocators serve the same number of requests, and that is no result.

Writes PREFIX.md and PREFIX.json. After ctrl-C what is done is written and the rest is left out.
Exit status: 0; 1 when a run failed or nothing could be written; 2 for a wrong command line; 130 after ctrl-C. A claim that
does not hold is a result, not a failure.
"""

import argparse
import difflib
import glob
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

PATTERNS = ("burst", "steady", "leak", "hotspot", "kernel", "contention")
MODES = ("unpaced", "paced")
ALLOCATORS = ("malloc", "tslab", "tslab-domain")
LEAKING_ROUTE = "POST /orders"
SLOW_PATH_MOST, YIELD_LEAST, CLOSE_MOST_NS, NAMED_MOST_S, DROP_MOST_NS = 1.0, 85.0, 500e3, 60.0, 10e6


class Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(2, "compare_report.py: %s; see --help\n" % message)

    def parse(self, words):
        options, unknown = self.parse_known_args(words)
        known = list(self._option_string_actions)
        for word in unknown:
            near = difflib.get_close_matches(word.split("=")[0], known, 1)
            self.exit(2, "compare_report.py: unknown argument '%s'; %s\n"
                      % (word, "did you mean %s?" % near[0] if near else "see --help"))
        return options


def within(kind, low, high):
    def convert(text):
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not low <= value <= high:
            raise argparse.ArgumentTypeError("a number from %s to %s, not '%s'" % (low, high, text))
        return value

    return convert


def preload(text):
    name, _, library = text.partition("=")
    if not re.fullmatch(r"[A-Za-z0-9_.-]+", name) or name in ALLOCATORS or not library:
        raise argparse.ArgumentTypeError("NAME=LIBRARY, not '%s'" % text)
    if not os.path.exists(library):
        raise argparse.ArgumentTypeError("there is no library '%s'" % library)
    return name, os.path.abspath(library)


def find_bench():
    tree = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    built = glob.glob(os.path.join(tree, "build", "*", "synthetic_bench"))
    return max(built, key=os.path.getmtime) if built else shutil.which("synthetic_bench")


def read_command_line(words):
    p = Parser(prog="compare_report.py", allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter,
               description=__doc__)
    p.add_argument("--quick", action="store_true", help="2 repetitions of half a second: under two minutes, and rough")
    p.add_argument("--reps", type=within(int, 1, 99), help="repetitions (default: 5; 2 with --quick)")
    p.add_argument("--seconds", type=within(float, 0.05, 3600), help="of a run (default: 3; 0.5 with --quick)")
    p.add_argument("--pattern", action="append", choices=PATTERNS, help="only this one; may be repeated")
    p.add_argument("--preload", action="append", type=preload, default=[], metavar="NAME=LIBRARY",
                   help="also malloc with this library in LD_PRELOAD; may be repeated")
    p.add_argument("--out", default="compare", metavar="PREFIX", help="of the two files (default: compare)")
    p.add_argument("--bench", metavar="FILE", help="synthetic_bench (default: the newest of build/*/, or that of PATH)")
    o = p.parse(words)
    o.allocators = [*ALLOCATORS, *(name for name, _ in o.preload)]
    o.reps = o.reps or (2 if o.quick else 5)
    o.seconds = o.seconds or (0.5 if o.quick else 3.0)
    o.bench = o.bench or find_bench()
    if not o.bench or not os.access(o.bench, os.X_OK):
        p.error("there is no synthetic_bench%s; 'cmake --preset install && cmake --build --preset install' builds it"
                % (" at '%s'" % o.bench if o.bench else ""))
    folder = os.path.dirname(os.path.abspath(o.out))
    if not os.path.isdir(folder) or not os.access(folder, os.W_OK):
        p.exit(1, "compare_report.py: cannot write in '%s'\n" % folder)
    o.patterns = [n for n in PATTERNS if not o.pattern or n in o.pattern]
    return o


# ---- runs ----


class Runner:
    def __init__(self, options, folder, total):
        self.bench, self.libraries, self.folder = options.bench, dict(options.preload), folder
        self.total, self.done, self.failed, self.begin = total, 0, [], time.monotonic()

    def progress(self, what):
        print("[%3d/%d, %3.0f s] %s" % (self.done + 1, self.total, time.monotonic() - self.begin, what), file=sys.stderr)

    def run(self, what, allocator, arguments):
        """The result of a run, or None when it failed. What is interrupted raises, and is not a result."""
        self.progress(what)
        name = os.path.join(self.folder, "run.json")
        env = dict(os.environ)
        if allocator in self.libraries:
            env["LD_PRELOAD"] = self.libraries[allocator]
        ours = allocator in ALLOCATORS[1:]
        command = [self.bench, "--allocator", "tslab" if ours else "malloc", "--progress_s=0", "--json", name, *arguments]
        if allocator == "tslab-domain":
            command.append("--phases=domain")
        with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True) as child:
            try:
                _, err = child.communicate()
            except KeyboardInterrupt:
                child.terminate()
                child.communicate()
                raise
        self.done += 1
        if child.returncode != 0:
            self.failed.append({"run": what, "exit": child.returncode, "said": err.strip()[-500:]})
            print("failed: %s: exit %d: %s" % (what, child.returncode, err.strip()[-200:]), file=sys.stderr)
            return None
        with open(name, encoding="utf-8") as text:
            result = json.load(text)
        result["stderr"] = err
        return result


def compare(runner, options, cells):
    """Fills cells[mode][pattern]: for each repetition, results by allocator."""
    for repetition in range(options.reps):
        for pattern in options.patterns:
            for mode in MODES:
                allocators, turn = options.allocators, {}
                cells.setdefault(mode, {}).setdefault(pattern, []).append(turn)
                for n in range(len(allocators)):
                    allocator = allocators[(n + repetition) % len(allocators)]
                    arguments = ["--pattern", pattern, "--duration_s", str(options.seconds), "--seed", str(repetition + 1)]
                    result = runner.run("%s %s %s" % (mode, pattern, allocator), allocator,
                                        arguments + (["--req_rate=0"] if mode == "unpaced" else []))
                    if result:
                        turn[allocator] = result


LAGS = (100, 1000)


def special_runs(runner, options, special):
    threshold, seconds = (1, 3) if options.quick else (20, 30)
    special["leak"] = runner.run("leak, until it is named", "tslab", ["--pattern=leak", "--duration_s", str(seconds), "--doctor",
                                                                     "--leak_threshold_s", str(threshold)])
    for lag in LAGS:
        for _ in range(options.reps):
            result = runner.run("close of a phase with %d requests' objects" % lag, "tslab",
                                ["--pattern=kernel", "--epoch_policy=manual", "--free_policy=lag:%d" % lag, "--req_rate=0",
                                 "--requests=%d" % (lag * 3 // 2)])
            if result:
                special.setdefault("drop", {}).setdefault(lag, []).append(result)


# ---- claims ----


def of_pattern(turns, allocator, value):
    """value(result) of each repetition in which it is a number."""
    found = [value(t[allocator]) for t in turns if allocator in t]
    return [v for v in found if v is not None]


def share(part, whole):
    return 100.0 * part / whole if whole else None


def slow_path(r):
    return share(r["library"]["slow_path_hits"], r["objects"]["allocated"])


def closed_yield(r):
    library = r["library"]
    return share(library["closed_slabs"] - library["pinned_slabs"], library["closed_slabs"])


def mean_close(r):
    return r["phases"]["close_ns_sum"] / r["phases"]["ended"] if r["phases"]["ended"] else None


def claim(text, bound, rows, holds):
    """rows: (what, number or None, as text)"""
    measured = [r for r in rows if r[1] is not None]
    verdicts = [{"what": what, "value": value, "shown": shown, "holds": holds(value)} for what, value, shown in measured]
    verdict = None if not measured else all(v["holds"] for v in verdicts)
    return {"claim": text, "bound": bound, "holds": verdict, "rows": verdicts}


def by_pattern(cells, mode, value, form):
    rows = []
    for allocator, suffix in (("tslab", ""), ("tslab-domain", " (domain)")):
        for pattern, turns in cells.get(mode, {}).items():
            values = of_pattern(turns, allocator, value)
            middle = statistics.median(values) if values else None
            rows.append((pattern + suffix, middle, form % middle if values else ""))
    return rows


def drop_row(lag, results):
    """Not having seen the fall within a second is a value too: more than that."""
    times = [r["last_close"]["drop_ns"] or float("inf") for r in results]
    middle = statistics.median(times)
    size = statistics.median(r["last_close"]["bytes_returned"] for r in results) / 2**20
    return ("%.1f MiB" % size, middle if middle != float("inf") else 1e9,
            "%.2f ms" % (middle / 1e6) if middle != float("inf") else "not seen within 1 s")


def claims(cells, special):
    found = []
    rows = by_pattern(cells, "paced", slow_path, "%.2f %%")
    found.append(claim("slow path below 1 % of allocations", "< 1 %", rows, lambda v: v < SLOW_PATH_MOST))
    rows = by_pattern(cells, "paced", closed_yield, "%.1f %%")
    found.append(claim("reclamation yield of closes at least 85 %", ">= 85 %", rows, lambda v: v >= YIELD_LEAST))
    rows = [(p, v, "%.4f ms" % (v / 1e6) if v is not None else "") for p, v, _ in by_pattern(cells, "paced", mean_close, "%f")]  # in ns
    found.append(claim("mean close below 0.5 ms", "< 0.5 ms", rows, lambda v: v < CLOSE_MOST_NS))
    leak, rows = special.get("leak"), []
    if leak:
        named = leak["leak_named"] or {}
        right = named.get("label") == LEAKING_ROUTE
        doctor = 'ACTION: "%s" leaks' % LEAKING_ROUTE in leak["stderr"]
        threshold = leak["settings"]["leak_threshold_s"]
        shown = "after %.1f s, threshold %d s; the doctor %s it" % (named["after_s"], threshold, "names" if doctor else "does not name") \
            if right else "not named, or under another label"
        rows.append((LEAKING_ROUTE, named["after_s"] if right and doctor else 1e9, shown))
    found.append(claim("leak named in less than 60 s", "< 60 s", rows, lambda v: v < NAMED_MOST_S))
    rows = [drop_row(lag, results) for lag, results in special.get("drop", {}).items()]
    found.append(claim("close, madvise, resident size falls: within 10 ms", "< 10 ms", rows, lambda v: v < DROP_MOST_NS))
    return found


def verdict_text(c):
    word = {True: "holds", False: "does not hold", None: "not measured"}[c["holds"]]
    return "%s: %s%s" % (c["claim"], word, " (%s)" % "; ".join(
        "%s %s%s" % (r["what"], r["shown"], "" if r["holds"] else " x") for r in c["rows"]) if c["rows"] else "")


# ---- the report ----


def machine():
    model = ""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as text:
            model = next((line.split(":", 1)[1].strip() for line in text if line.startswith("model name")), "")
    except OSError:
        pass
    return {"processors": os.cpu_count(), "model": model, "kernel": platform.release(), "libc": " ".join(platform.libc_ver()),
            "load_at_start": os.getloadavg()[0]}


def figures(turns, allocator, base):
    """Medians of an allocator, and the ratios to the first one within turns."""
    def value(key):
        return statistics.median(of_pattern(turns, allocator, key) or [float("nan")])

    ratios = [t[allocator]["requests_per_s"] / t[base]["requests_per_s"] for t in turns
              if allocator in t and base in t and t[base]["requests_per_s"] > 0]
    return {"requests_per_s": value(lambda r: r["requests_per_s"]), "p50_us": value(lambda r: r["latency_ns"]["p50"]) / 1e3,
            "p99_us": value(lambda r: r["latency_ns"]["p99"]) / 1e3, "p999_us": value(lambda r: r["latency_ns"]["p999"]) / 1e3,
            "rss_peak_mib": value(lambda r: r["rss"]["peak"]) / 2**20, "rss_end_mib": value(lambda r: r["rss"]["end"]) / 2**20,
            "ratios": ratios}


def ratio_text(ratios):
    if not ratios:
        return "-"
    return "%.2f (%.2f to %.2f)" % (statistics.median(ratios), min(ratios), max(ratios))


def table(cells, mode, allocators):
    lines = ["| pattern | allocator | requests/s | against malloc | p50 us | p99 us | p99.9 us | RSS peak MiB | RSS end MiB | runs |",
             "|---|---|---|---|---|---|---|---|---|---|"]
    for pattern, turns in cells.get(mode, {}).items():
        for allocator in allocators:
            count = sum(allocator in t for t in turns)
            if count == 0:
                continue
            f = figures(turns, allocator, "malloc")
            ratio = "-" if allocator == "malloc" else ratio_text(f["ratios"]) if mode == "unpaced" else "paced"
            lines.append("| %s | %s | %.0f | %s | %.1f | %.1f | %.1f | %.1f | %.1f | %d |" % (
                pattern, allocator, f["requests_per_s"], ratio, f["p50_us"], f["p99_us"], f["p999_us"], f["rss_peak_mib"],
                f["rss_end_mib"], count))
    return lines


def markdown(report, cells, options, allocators):
    m = report["machine"]
    lines = ["# malloc against temporal-slab, patterns of synthetic_bench", "",
             "Command: `%s`. %d processors (%s), Linux %s, %s; load at the start %.1f." % (
                 report["command"], m["processors"], m["model"], m["kernel"], m["libc"], m["load_at_start"]),
             "%d repetitions of %g s. Medians; ratios are of runs in the same turn, with their least and largest." % (options.reps, options.seconds)]
    if m["load_at_start"] > 0.5 * (m["processors"] or 1):
        lines += ["", "**Other programs were running: the times below are no results.**"]
    if report["interrupted"]:
        lines += ["", "**Interrupted after %d of %d runs.**" % (report["runs_done"], report["runs_planned"])]
    lines += ["", "## Claims", "", "| claim | | measured |", "|---|---|---|"]
    for c in report["claims"]:
        word = {True: "holds", False: "**does not hold**", None: "not measured"}[c["holds"]]
        rows = "; ".join("%s %s%s" % (r["what"], r["shown"], "" if r["holds"] else " (does not hold)") for r in c["rows"])
        lines.append("| %s | %s | %s |" % (c["claim"], word, rows))
    lines += ["", "A claim holds when it does in every row. Yield is what closes took back of the slabs they looked at: objects freed",
              "after their phase has ended (steady), or never (leak), keep slabs at the close; those of the first go back with the frees.",
              "Slow paths: a line has at most 64 slots, so a phase that reuses none of them takes at least one in 64, 1.6 %."]
    lines += ["", "## Unpaced: as fast as they can", "", *table(cells, "unpaced", allocators)]
    lines += ["", "## Paced", "", "The number of requests is that of the clock and no result: these runs only show the pacing, and",
              "what a request takes at that pace.", "", *table(cells, "paced", allocators)]
    if report["failed"]:
        lines += ["", "## Runs that failed", "", *("- %(run)s: exit %(exit)d: %(said)s" % f for f in report["failed"])]
    return "\n".join(lines) + "\n"


def write(name, text):
    temporary = "%s.%d.part" % (name, os.getpid())
    with open(temporary, "w", encoding="utf-8") as out:
        out.write(text)
    os.replace(temporary, name)


def main():
    words = sys.argv[1:]
    options = read_command_line(words)
    allocators = options.allocators
    total = options.reps * len(options.patterns) * len(MODES) * len(allocators) + 1 + options.reps * len(LAGS)
    cells, special, interrupted = {}, {}, False
    report = {"command": " ".join(["compare_report.py", *words]), "machine": machine()}
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(options, folder, total)
        try:
            special_runs(runner, options, special)
            compare(runner, options, cells)
        except KeyboardInterrupt:
            interrupted = True
            print("interrupted: what is done is kept", file=sys.stderr)
    summary = {mode: {p: {a: figures(turns, a, "malloc") for a in allocators if any(a in t for t in turns)}
                      for p, turns in cells.get(mode, {}).items()} for mode in MODES}
    report.update(interrupted=interrupted, runs_done=runner.done, runs_planned=total, failed=runner.failed,
                  claims=claims(cells, special), summary=summary, runs={"cells": cells, "special": special})
    try:
        write(options.out + ".json", json.dumps(report, indent=1) + "\n")
        write(options.out + ".md", markdown(report, cells, options, allocators))
    except OSError as error:
        print("compare_report.py: %s: %s" % (error.filename, error.strerror), file=sys.stderr)
        return 1
    for c in report["claims"]:
        print(verdict_text(c))
    print("written: %s.md, %s.json" % (options.out, options.out))
    return 130 if interrupted else 1 if runner.failed else 0


if __name__ == "__main__":
    sys.exit(main())
