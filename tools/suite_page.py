#!/usr/bin/env python3
"""Writes docs/results/tables/suite.md, its pictures and its JSON from what bench/suite/run.py measured, and compares.

    suite_page.py DIR      keeps what is needed of the run in docs/results/suite/*.json, then draws and writes the page of that
    suite_page.py          draws and writes them again from the kept results; without any it writes a page that says so
    suite_page.py --check  the page is what the kept results and the reasons say, and its pictures are there

docs/results/suite.md is written by hand; the verdict there, between its marks, is written and compared as well.

Reasons for metrics that are lost are in docs/results/suite-why.tsv, a line each: PROGRAM tab PATH tab TEXT; PATH * for all of a program.
Those that have none are named. Pictures need matplotlib (make deps FOR=plot); --no-pictures leaves the old ones.

Exit status: 0; 1 something differs, or cannot be read, drawn or written; 2 for wrong arguments.
"""

import argparse
import difflib
import os
import sys

sys.dont_write_bytecode = True

from bench_plots import kept, suite_page  # noqa: E402
from bench_plots.read import Damaged, Nothing  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SOURCE = "tools/suite_page.py DIR"


def parse(words):
    p = argparse.ArgumentParser(prog="suite_page.py", allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__)
    p.add_argument("run", nargs="?", metavar="DIR", help="output directory of bench/suite/run.py")
    p.add_argument("--check", action="store_true", help="write nothing, compare")
    p.add_argument("--no-pictures", action="store_true", help="only the page and the JSON")
    p.add_argument("--results", metavar="DIR", default=os.path.join(ROOT, "docs", "results"), help="where the page is (default: docs/results)")
    o = p.parse_args(words)
    if o.check and o.run:
        p.error("--check compares what is kept; it takes no DIR")
    return o


def read_reasons(path, metrics):
    """{(program, path): text}; a reason for what is not there is a mistake."""
    found, known = {}, {(m.run, m.path) for m in metrics} | {(m.run, "*") for m in metrics}
    if not os.path.exists(path):
        return found
    with open(path, encoding="utf-8") as lines:
        for i, line in enumerate(lines, 1):
            if line.startswith("#") or not line.strip():
                continue
            cells = line.rstrip("\n").split("\t")
            if len(cells) != 3 or (cells[0], cells[1]) not in known:
                raise Damaged("%s: line %d is not PROGRAM tab PATH tab TEXT of a metric that there is" % (path, i))
            found[cells[0], cells[1]] = " ".join(cells[2].split()).replace("|", "\\|")
    return found


def makers():
    try:
        import matplotlib
    except ImportError as error:
        raise Damaged("no matplotlib, so no pictures: make deps FOR=plot, or --no-pictures") from error
    matplotlib.use("Agg")
    from bench_plots import suite_more_pictures as more
    from bench_plots import suite_pictures as first

    return {"overview": more.overview, "tails": first.latency_tail, "requests": first.requests, "http": more.http, "scaling": first.scaling,
            "waiting": more.waiting, "applications": more.applications, "fragmentation": first.fragmentation, "memory": first.memory}


def draw(suite, folder):
    """{picture: why it is not there}"""
    from_name, without = makers(), {}
    from bench_plots import style

    for name, *_ in suite_page.PICTURES:
        path = os.path.join(folder, name + ".png")
        try:
            style.save(from_name[name](None, suite), path)
        except Nothing as nothing:
            without[name] = str(nothing)
            if os.path.exists(path):
                os.remove(path)
    return without


def not_there(folder):
    return {name: "it was not drawn" for name, *_ in suite_page.PICTURES if not os.path.exists(os.path.join(folder, name + ".png"))}


def check(page, text):
    with open(page, encoding="utf-8") as there:
        lines = there.read().splitlines(True)
    differ = [line.rstrip("\n") for line in difflib.unified_diff(lines, text.splitlines(True), "the page", "the kept results", n=0)]
    for line in differ[:20]:
        print(line[:300], file=sys.stderr)
    return 1 if differ else 0


def with_verdict(front, suite):
    """The text of the page by hand, with the verdict of the results between its marks."""
    with open(front, encoding="utf-8") as there:
        text = there.read()
    begin, end = "<!-- verdict -->\n", "<!-- end -->\n"
    if text.count(begin) != 1 or text.count(end) != 1:
        raise Damaged("%s has no place for the verdict" % front)
    before, rest = text.split(begin)
    return before + begin + "\n".join(suite_page.short_verdict(suite)) + "\n" + end + rest.split(end)[1]


def put(page, text):
    os.makedirs(os.path.dirname(page), exist_ok=True)
    with open(page + ".new", "w", encoding="utf-8") as to:
        to.write(text)
    os.replace(page + ".new", page)
    print("written: %s" % page, file=sys.stderr)
    return 0


def work(o):
    folder, page, front = (os.path.join(o.results, *name) for name in (["suite"], ["tables", "suite.md"], ["suite.md"]))
    why = read_reasons(os.path.join(o.results, "suite-why.tsv"), suite_page.METRICS)
    if o.run:
        os.makedirs(folder, exist_ok=True)
        kept.keep(o.run, folder)
    elif not os.path.exists(os.path.join(folder, "numbers.json")):
        return check(page, suite_page.NOTHING_YET) if o.check else put(page, suite_page.NOTHING_YET)
    suite = kept.KeptSuite(folder)
    if not o.check and not o.no_pictures:
        without = draw(kept.KeptSuite(folder), folder)
        for name, text in without.items():
            print("not drawn: %s: %s" % (name, text), file=sys.stderr)
    text = suite_page.write(suite, why, not_there(folder), SOURCE)
    by_hand = with_verdict(front, suite) if os.path.exists(front) else None
    if o.check:
        return check(page, text) or (check(front, by_hand) if by_hand else 0)
    if by_hand:
        put(front, by_hand)
    for metric in suite_page.unexplained(suite, why):
        print("no reason in suite-why.tsv: %s\t%s" % (metric.run, metric.path), file=sys.stderr)
    return put(page, text)


def main():
    o = parse(sys.argv[1:])
    try:
        return work(o)
    except Damaged as error:
        print("suite_page.py: %s" % error, file=sys.stderr)
    except OSError as error:
        print("suite_page.py: %s: %s" % (error.filename, error.strerror), file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
