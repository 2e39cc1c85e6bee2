#!/usr/bin/env python3
"""Draws what tslab_bench --json and bench/suite/run.py measured, and writes a Markdown page with the pictures and all numbers.

    plot_bench.py bench.json --suite build/suite-results/TIME --out docs/results/bench --page docs/results/tables/bench.md
    plot_bench.py bench.json --short-table

Machine, versions, commit, command and date on the page are those of the results. What was not measured is not drawn, and the
page says why. Pictures need matplotlib (make deps FOR=plot); tables do not.

Exit status: 0; 1 when results cannot be used, or something asked for could not be written or drawn; 2 for wrong arguments.
"""

import argparse
import difflib
import os
import sys

sys.dont_write_bytecode = True

from bench_plots import demo, page, tables, targets  # noqa: E402
from bench_plots.read import Bench, Damaged, Nothing, without_folders  # noqa: E402
from bench_plots.suite import Suite  # noqa: E402


class Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(2, "plot_bench.py: %s; see --help\n" % message)

    def parse(self, words):
        options, unknown = self.parse_known_args(words)
        for word in unknown:
            near = difflib.get_close_matches(word.split("=")[0], list(self._option_string_actions), 1)
            self.exit(2, "plot_bench.py: unknown argument '%s'; %s\n" % (word, "did you mean %s?" % near[0] if near else "see --help"))
        return options


def read_command_line(words):
    p = Parser(prog="plot_bench.py", allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__)
    p.add_argument("results", nargs="?", metavar="RESULTS.json", help="what tslab_bench --json wrote")
    p.add_argument("--suite", metavar="DIR", help="output directory of bench/suite/run.py")
    p.add_argument("--demo", metavar="FILE", help="what tslab_demo --figures wrote: rows of their own, glibc and temporal-slab")
    p.add_argument("--out", metavar="DIR", help="where the pictures go; made if it is not there")
    p.add_argument("--page", metavar="FILE.md", help="the page (default: summary.md beside the pictures)")
    p.add_argument("--why", metavar="FILE", help="reasons for rows we lose, a line each: ROW tab METRIC tab TEXT; METRIC * for all")
    p.add_argument("--targets", metavar="FILE", help="what is to be reached, a line each; the form is in tools/bench_plots/targets.py")
    p.add_argument("--no-pictures", action="store_true", help="only the page")
    p.add_argument("--short-table", action="store_true", help="print the table of the main rows")
    o = p.parse(words)
    if not o.results and not o.suite:
        p.error("there is nothing to draw: give RESULTS.json, --suite DIR or both")
    if not o.out and not o.page and not o.short_table:
        p.error("where to: give --out DIR, --page FILE.md or --short-table")
    if o.short_table and not o.results:
        p.error("--short-table takes RESULTS.json")
    for flag, given in (("--targets", o.targets), ("--demo", o.demo)):
        if given and not o.results:
            p.error(flag + " takes RESULTS.json")
    if o.page and not o.out and not o.no_pictures:
        p.error("--page needs --out DIR for the pictures, or --no-pictures")
    return o


def read_reasons(path):
    found = {}
    if path:
        with open(path, encoding="utf-8") as text:
            for i, line in enumerate(text):
                cells = line.rstrip("\n").split("\t")
                if line.strip() and not line.startswith("#"):
                    if len(cells) != 3:
                        raise Damaged("%s: line %d is not ROW tab METRIC tab TEXT" % (path, i + 1))
                    found[cells[0], cells[1]] = " ".join(cells[2].split()).replace("|", "\\|")
    return found


def import_pictures():
    """What draws each picture by name, or None without matplotlib."""
    try:
        import matplotlib
    except ImportError:
        return None
    matplotlib.use("Agg")
    from bench_plots import bench_pictures, suite_pictures

    return {"summary": bench_pictures.summary, "general": bench_pictures.general, "latency": bench_pictures.latency,
            "tails": suite_pictures.latency_tail, "requests": suite_pictures.requests, "phases": bench_pictures.phases, "use": bench_pictures.use, "two_threads": bench_pictures.two_threads,
            "threads": bench_pictures.threads, "scaling": suite_pictures.scaling, "size": bench_pictures.size,
            "fragmentation": bench_pictures.fragmentation, "fragmentation_suite": suite_pictures.fragmentation,
            "memory": suite_pictures.memory}


def draw(makers, bench, suite, folder):
    """{picture: None when it was drawn, else why not}; one of an earlier run that cannot be drawn now is removed."""
    from bench_plots import style

    drawn = {}
    for name, source, _, _ in page.PICTURES:
        path = os.path.join(folder, name + ".png")
        try:
            if (bench if source == "bench" else suite) is None:
                raise Nothing("no results of %s were given" % ("tslab_bench" if source == "bench" else "the suite (--suite)"))
            style.save(makers[name](bench, suite), path)
            drawn[name] = None
        except Nothing as nothing:
            drawn[name] = str(nothing)
            if os.path.exists(path):
                os.remove(path)
    return drawn


def write_page(o, bench, suite, drawn, why, aims):
    path = o.page or os.path.join(o.out, "summary.md")
    words = [without_folders(os.path.basename(w) if os.path.isabs(w) else w) for w in sys.argv[1:]]
    text = page.write(bench, suite, drawn, lambda name: os.path.relpath(os.path.join(o.out, name + ".png"), os.path.dirname(path) or ".")
                      .replace(os.sep, "/"), why, aims, " ".join(["tools/plot_bench.py", *words]))
    with open(path + ".new", "w", encoding="utf-8") as to:
        to.write(text)
    os.replace(path + ".new", path)
    return path


def work(o):
    bench = Bench(o.results) if o.results else None
    suite = Suite(o.suite) if o.suite else None
    if o.demo:
        bench.metrics += demo.metrics(o.demo, bench.backends)
    why, status, drawn = read_reasons(o.why), 0, {}
    aims = targets.lines(bench, o.targets) if o.targets else []
    if o.short_table:
        print("\n".join(tables.short(bench)).rstrip() or "No main row has a value of temporal-slab.")
    if not o.out and not o.page:
        return 0
    for folder in filter(None, (o.out, os.path.dirname(o.page or ""))):
        os.makedirs(folder, exist_ok=True)
    if not o.no_pictures:
        makers = import_pictures()
        if makers is None:
            print("plot_bench.py: no matplotlib, so no pictures: make deps FOR=plot", file=sys.stderr)
            drawn, status = {name: "there was no matplotlib" for name, *_ in page.PICTURES}, 1
        else:
            drawn = draw(makers, bench, suite, o.out)
    path = write_page(o, bench, suite, drawn, why, aims)
    behind = {(m.row, name) for m in bench.metrics if m.verdict() == "behind" for name in (m.name, "*")} if bench else set()
    for row, metric in sorted(set(why) - behind):
        print("reason not used: %s, %s is not behind" % (row, metric), file=sys.stderr)
    for name, *_ in page.PICTURES:
        if drawn.get(name):
            print("not drawn: %s: %s" % (name, drawn[name]), file=sys.stderr)
    print("written: %s and %d pictures" % (path, list(drawn.values()).count(None)), file=sys.stderr)
    return status


def main():
    o = read_command_line(sys.argv[1:])
    try:
        return work(o)
    except Damaged as error:
        print("plot_bench.py: %s" % error, file=sys.stderr)
    except UnicodeDecodeError:
        print("plot_bench.py: %s is no text" % " or ".join(filter(None, (o.why, o.targets))), file=sys.stderr)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # whoever read the table has seen enough
    except OSError as error:
        print("plot_bench.py: %s: %s" % (error.filename, error.strerror), file=sys.stderr)
    except KeyboardInterrupt:
        print("plot_bench.py: interrupted", file=sys.stderr)
        return 130
    return 1


if __name__ == "__main__":
    sys.exit(main())
