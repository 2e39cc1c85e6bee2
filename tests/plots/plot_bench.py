"""plot_bench.py without pictures: verdicts and tables, what the page tells of a run, results it cannot use, wrong words."""

import copy
import json
import os
import random

from plot_bench_kit import around, bench, call, check, demo, demo_run, finish, metric, read, suite, write

from bench_plots import page, tables
from bench_plots.read import Bench, Damaged
from bench_plots.suite import Suite


def page_of(value, *more, wanted=0):
    write("bench.json", value)
    _, err = call("bench.json", "--page", "page.md", "--no-pictures", *more, wanted=wanted)
    return read("page.md"), err


def lines_of(text, begin):
    return [line for line in text.splitlines() if line.startswith(begin)]


def numbers():
    text, _ = page_of(bench())
    for line in ("| machine | Some CPU, 2 processors, 8000 MiB |", "| commit | abc1234 |", "| date | 2026-01-31T12:00:00Z |",
                 "| command | `tslab_bench --json b.json` |", "| form | full, 1/1 of the work, 3 repetitions, 100 s |",
                 "| pair: alloc + free, ns | 9.00 | 30 % | 20.0 | 0.450 | 10.0 mimalloc | 0.900 won | 0.900 | - |",
                 "| batch: alloc + free, ns | 30.3 | 30 % | 60.0 | 0.505 | 30.0 mimalloc | 1.01 level | 1.01 | - |",
                 "| drift: drift, % | 0 | - | 4.00 | - | 2.00 mimalloc | - won | - | - |",
                 "| threads: 1 thread, Mops/s (more is better) | 100 | 30 % | 41.0 | 0.410 | 201 mimalloc | 2.01 **behind** | 2.01 | - |",
                 "| request_bulk: 1 thread, us | 1.50 | 30 % | 6.00 | 0.250 | 2.00 apr | 0.750 won | 0.750 | 1.50 |",
                 "| domain: with a label, ns | 60.0 | 30 % | - | - | - | - | - | - |",
                 "| churn_left: live, MiB | 3.00 | 30 % | 3.00 | 1.00 | 3.00 glibc | - | - | - |",
                 "| pair: alloc + free, ns | 20.0 | 10.0 | 12.0 |",
                 "| request_bulk: 1 thread, us | 2.00 | 1.00 |", "| request_bulk: 1 thread, us | **1.50** |  |",
                 "| threads: 1 thread, Mops/s (more is better) | 41.0 | **201** |  |", "| glibc | general | 1.0 | yes |"):
        check(line in text.splitlines(), "no line", line, lines_of(text, line.split("|")[1].join("||")))
    behind = text.split("## Where temporal-slab is behind")[1].split("##")[0]
    losers = lines_of(behind, "| ")[1:]
    check([r.split(" | ")[0] for r in losers] == ["| churn_left: resident / live, x", "| threads: 1 thread, Mops/s (more is better)",
                                                  "| batch_tail: alloc p50, ns", "| batch_tail: free p50, ns"], losers)
    check(losers[0].startswith("| churn_left: resident / live, x | 18.0 | 6.00 glibc | 3.00 | "), losers[0])
    check("pair" not in behind and "churn_left: live" not in behind and "drift" not in behind, behind)
    check("/some/where" not in text and "**" not in text.split("## Pictures")[0].split("Against")[0], "paths or doubts", text[:1500])


def ranges():
    """A ratio is taken repetition by repetition, against whoever was best in it; for rates it is turned round."""
    write("b.json", bench([metric("pair", "alloc + free", "ns", {"glibc": [10, 20, 10], "mimalloc": [20, 10, 10], "arena": [1, 1, 1], "tslab": [5, 20, 30]}),
                           metric("threads", "1 thread", "Mops/s", {"glibc": [10, 20, 10], "mimalloc": [20, 10, 10], "tslab": [5, 20, 40]}, more=True)]))
    less, more = Bench("b.json").metrics
    check(less.ratio_range() == (0.5, 3) and more.ratio_range() == (0.25, 4), less.ratio_range(), more.ratio_range())
    check((less.verdict(), more.verdict()) == ("behind", "level"), less.verdict(), more.verdict())
    for own, verdict in ((94.9, "won"), (95.1, "level"), (104.9, "level"), (105.1, "behind")):
        write("b.json", bench([metric("pair", "alloc + free", "ns", {"glibc": [100], "tslab": [own]})]))
        check(Bench("b.json").metrics[0].verdict() == verdict, own, "is not", verdict)


def observed():
    """Backends that are observed beside themselves unobserved; older files do not have them."""
    value = bench([metric("pair", "alloc + free", "ns", around(glibc=20, tslab=9, tslab_handle=11)),
                   metric("snapshot", "its length", "KiB", around(tslab=9), plain=True)])
    check("being observed" not in page_of(value)[0], "being observed without anybody")
    value["backends"][-1]["off"] = "tslab"
    value["backends"] += [{**value["backends"][0], "name": n, "group": "observed", "off": off}
                          for n, off in (("je-off", None), ("je-on", "je-off"))]
    for m in value["rows"]:
        by = {r["backend"]: r for r in m["results"]}
        by["tslab-handle"]["ratio_off"] = 1.25
        m["results"] += [{**by["glibc"], "backend": "je-off", "median": 1, "min": 1, "max": 1}, {**by["glibc"], "backend": "je-on", "ratio_off": None}]
    text, _ = page_of(value)
    part = text.split("### What being observed costs")[1].split("\n#")[0]
    check(lines_of(part, "|") == ["| row | tslab-handle |", "|---|---|", "| pair: alloc + free, ns | 1.25 |"], part)
    check("| row | je-off | je-on |" in text and "| 20.0 glibc | 0.450 won |" in text, "another peer", text)


def short():
    write("bench.json", bench())
    before = sorted(os.listdir("."))
    out, err = call("bench.json", "--short-table")
    check(out.splitlines()[:4] == ["| row | temporal-slab | glibc | best peer | ratio to it | best that checks, too |", "|---|---|---|---|---|---|",
                                   "| pair: alloc + free, ns | 9.00 | 20.0 | 10.0 mimalloc | 0.900 won | 8.00 scudo |",
                                   "| batch: alloc + free, ns | 30.3 | 60.0 | 30.0 mimalloc | 1.01 level | - |"], out)
    check("live:" not in out and err == "" and sorted(os.listdir(".")) == before, err, os.listdir("."))
    write("none.json", bench([metric("pair", "alloc + free", "ns", around(glibc=3))]))
    out, _ = call("none.json", "--short-table")
    check(out == "No main row has a value of temporal-slab.\n", out)


def seeds():
    """Rows that are drawn by seed: even repetitions have the second one."""
    text, _ = page_of(bench())
    part = text.split("### Two seeds")[1].split("\n#")[0]
    check(lines_of(part, "|") == ["| row | seed 1 | seed 77 | second / first |", "|---|---|---|---|", "| phase10: in bulk, ns | 0.550 | 0.900 | 1.64 |"], part)
    value = bench([metric("phase10", "in bulk", "ns", {"glibc": [1], "tslab": [1]}, drawn=True)], seeds=[1])
    check("Two seeds" not in page_of(value)[0], "two seeds of one repetition")
    del value["seeds"], value["rows"][0]["drawn"]
    check("Two seeds" not in page_of(value)[0], "seeds of an older file")


def requests():
    """The demo's figures are rows, in pairs of runs; targets reach them."""
    write("demo.json", demo(("glibc", 100, 4000), ("glibc", 200, 4000), ("glibc", 100, 8000), ("tslab", 200, 2000), ("tslab", 100, 2000), ("tslab", 120, 8000)))
    write("aims.tsv", "demo\trequests per second\ttslab\tglibc\t0.7\ndemo\tlatency p99\ttslab\tvalue\t1.95\n")
    text, _ = page_of(bench(), "--demo", "demo.json", "--targets", "aims.tsv")
    for line in ("| demo: requests per second, 1/s (more is better) | 120 | 83 % | 100 | 0.833 | 100 glibc | 0.833 won | 0.500 to 2.00 | - |",
                 "| demo: requests per second, 1/s (more is better) | glibc | 0.700 | 0.833 | **missed** |",
                 "| demo: latency p99, us | - | 1.95 | 2.00 | level |", "| demo: resident after the last phase, MiB | 4.00 | 0 % | 4.00 | 1.00 | 4.00 glibc | 1.00 level | 1.00 | - |"):
        check(line in text.splitlines(), "no line", line, lines_of(text, "| demo"))
    for said, value in (("no runs of both", demo(("tslab", 1, 1))), ("'runs' is missing", {}), ("'page_faults' is missing", {"runs": [
            {k: v for k, v in demo_run(b, 1, 1).items() if k != "page_faults"} for b in ("glibc", "tslab")]})):
        write("demo.json", value)
        _, err = call("bench.json", "--page", "p.md", "--no-pictures", "--demo", "demo.json", wanted=1, one_line=True)
        check(said in err and "demo.json" in err, said, "is not said but", err)


def reasons():
    write("why.tsv", "# reasons\nchurn_left\t*\teach survivor keeps | a page\nthreads\t1 thread\tof one thread\nthreads\t*\tof all\npair\t*\tnot behind\n")
    text, err = page_of(bench(), "--why", "why.tsv")
    check("| 3.00 | 3.00 | each survivor keeps \\| a page |" in text and "| of one thread |" in text, text)
    check("reason not used: pair, * is not behind" in err and "churn_left" not in err, err)
    write("why.tsv", "churn_left because\n")
    _, err = call("bench.json", "--page", "p.md", "--no-pictures", "--why", "why.tsv", wanted=1, one_line=True)
    check("line 1 is not ROW tab METRIC tab TEXT" in err, err)


def aims():
    """What is measured against each kind of rival, repetition by repetition, and the verdict beside the limit."""
    value = bench([metric("pair", "alloc + free", "ns", {"glibc": [10, 20, 10], "mimalloc": [20, 10, 10], "apr": [4, 4, 4], "arena": [2, 2, 2],
                                                         "tslab": [10, 10, 30], "tslab-handle": [21, 21, 61]}),
                   metric("threads", "1 thread", "Mops/s", {"glibc": [10, 10, 40], "mimalloc": [5, 20, 10], "tslab": [10, 10, 10]}, more=True),
                   metric("domain", "with a label", "ns", {"tslab": [40, 90, 40]}), metric("pair", "nobody", "ns", {"glibc": [1]}),
                   metric("realloc_grow", "a buffer", "us", {"tslab": [1, 1, 1]}), metric("rss", "after the end", "MiB", {"tslab": [1, 1, 1]})])
    wanted = (("pair\talloc + free\ttslab\tbest\t2.5", "| pair: alloc + free, ns | the best peer | 2.50 | 2.50 | met |"),
              ("pair\talloc + free\ttslab\tgeneral\t0.96", "| pair: alloc + free, ns | the best general allocator | 0.960 | 1.00 | level |"),
              ("pair\talloc + free\ttslab\tarena\t4.7", "| pair: alloc + free, ns | arena | 4.70 | 5.00 | **missed** |"),
              ("pair\talloc + free\ttslab-handle\ttslab\t2", "| pair: alloc + free, ns, tslab-handle | tslab | 2.00 | 2.10 | level |"),
              ("threads\t1 thread\ttslab\tgeneral\t1.5", "| threads: 1 thread, Mops/s (more is better) | the best general allocator | 1.50 | 2.00 | **missed** |"),
              ("domain\twith a label\ttslab\tpair/alloc + free/glibc\t5", "| domain: with a label, ns | pair, alloc + free, glibc | 5.00 | 4.00 | met |"),
              ("realloc_grow\ta buffer\ttslab\tpair/alloc + free/glibc\t99", "| realloc_grow: a buffer, us | pair, alloc + free, glibc | 99.0 | 100 | level |"),
              ("domain\twith a label\ttslab\tvalue\t38", "| domain: with a label, ns | - | 38.0 | 40.0 | **missed** |"),
              ("domain\twith a label\ttslab-handle\tvalue\t3", "| domain: with a label, ns, tslab-handle | - | 3.00 | - | not measured |"),
              ("pair\tnobody\ttslab\tbest\t1", "| pair: nobody, ns | the best peer | 1.00 | - | not measured |"),
              ("drift\tdrift\ttslab\tvalue\t1", "| drift: drift | - | 1.00 | - | not measured |"))
    write("aims.tsv", "# of a test\n\n" + "".join(line + "\n" for line, _ in wanted))
    text, _ = page_of(value, "--targets", "aims.tsv")
    part = text.split("## Targets")[1].split("\n## ")[0]
    check(lines_of(part, "| ")[1:] == [said for _, said in wanted], part)
    check("Here: 2 met, 3 level, 3 missed, 3 not measured." in part, part)
    check("## Targets" not in page_of(value)[0], "targets that nobody gave")
    for said, line in (("is not ROW tab METRIC tab BACKEND", "pair\talloc + free\ttslab"), ("the limit '0' is no number above 0", "pair\talloc + free\ttslab\tbest\t0"),
                       ("the limit 'nan'", "pair\talloc + free\ttslab\tbest\tnan"), ("has no metric 'alloc'", "pair\talloc\ttslab\tbest\t1"),
                       ("there is no backend 'ours'", "pair\talloc + free\tours\tbest\t1"), ("no 'arean' to compare with", "pair\talloc + free\ttslab\tarean\t1"),
                       ("has no metric 'x'", "pair\talloc + free\ttslab\tpair/x/glibc\t1"), ("no 'a/glibc' to compare with", "pair\talloc + free\ttslab\ta/glibc\t1"),
                       ("MiB cannot be divided by ns", "rss\tafter the end\ttslab\tpair/alloc + free/glibc\t1")):
        write("aims.tsv", line + "\n")
        _, err = call("bench.json", "--page", "p.md", "--no-pictures", "--targets", "aims.tsv", wanted=1, one_line=True)
        check(said in err and "aims.tsv" in err, said, "is not said but", err)


def spoilt(value, row, whose, /, **changes):
    for m in value["rows"]:
        for r in m["results"]:
            if m["row"] == row and r["backend"] == whose:
                r.update(changes)
    return value


def doubts():
    """Runs that say less than a whole one: the page says so."""
    text, _ = page_of(bench(complete=False, repetitions=1, form="quick", part=5))
    for said in ("The run was interrupted", "only one repetition", "not the full form", "| form | quick, 1/5 of the work, 1 repetition, 100 s |"):
        check(said in text, "the page does not say", said)
    alone = bench([metric("pair", "alloc + free", "ns", around(tslab=9), backends=("tslab",))])
    alone["backends"] = [b for b in alone["backends"] if b["name"] == "tslab"]
    text, _ = page_of(alone)
    check("There are no others to compare with." in text and "| pair: alloc + free, ns | 9.00 | 30 % | - | - | - | - | - | - |" in text, text)
    check("Where temporal-slab is behind" not in text and "General allocators" not in text, text)

    none = {"median": None, "min": None, "max": None, "spread": None, "ratio_best": None, "ratio_glibc": None, "ratio_limit": None, "values": []}
    value = spoilt(bench(), "pair", "jemalloc", state="corrupt", reason="objects overlap <b>|", **none)
    spoilt(value, "pair", "tslab-handle", state="failed", reason="killed by signal 11 in /a/b/worker", failures=3, **none)
    spoilt(value, "batch", "glibc", state="failed", reason="took over 60 s", failures=1)
    spoilt(value, "churn_left", "apr", state="cannot", reason="it makes no more pools", **none)
    value["backends"][5].update(available=False, reason="not in /opt/x/list.tsv")
    value["rows"].append(metric("mixed", "free + alloc", "ns", {}))
    text, _ = page_of(value)
    for said in ("| pair: alloc + free, ns | 20.0 | 10.0 | corrupt |", "- pair, jemalloc corrupt: objects overlap &lt;b&gt;\\|",
                 "- pair, tslab-handle failed 3 x: killed by signal 11 in worker", "- batch, glibc failed 1 x: took over 60 s",
                 "| 60.0 (failed 1 x) |", "- churn_left, apr cannot: it makes no more pools", "- arena: not in list.tsv",
                 "| arena | limit | 1.5 | no: not in list.tsv |", "- no values at all: mixed: free + alloc"):
        check(said in text, "the page does not say", said)


def nobody():
    """Rows where we have no value, and rows of a result that was interrupted before anything was done."""
    text, _ = page_of(bench([metric("pair", "alloc + free", "ns", around(glibc=3)), metric("batch", "alloc + free", "ns", {})], complete=False))
    check("| pair: alloc + free, ns | - | - | 3.00 | - | 3.00 glibc | - | - | - |" in text and "No metric has a value of ours and one" in text, text)
    text, _ = page_of(bench([metric("pair", "alloc + free", "ns", {})]))
    check("- no values at all: pair: alloc + free" in text and "NaN" not in text and "None" not in text, text)


def places(value, path=()):
    """Paths to everything inside."""
    yield path
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from places(value[key], path + (key,))


def damage(value, path, new):
    value = copy.deepcopy(value)
    inner = value
    for key in path[:-1]:
        inner = inner[key]
    if new is KeyError:
        del inner[path[-1]]
    else:
        inner[path[-1]] = new
    return value


def everything(name):
    found = Bench(name)
    tables.short(found)
    page.write(found, None, {}, str, {}, [], "")


def hostile():
    """Whatever a value is replaced by: a page, or one line that names the file."""
    small = bench(rows()[:4] + rows()[-1:])
    random.seed(1)
    paths = [p for p in places(small) if p]
    refused = 0
    for path in random.sample(paths, 250) + [p for p in paths if len(p) == 1]:
        for new in (None, -1, 0, True, "x", "", [], {}, 1e999, [None], [{}], KeyError):
            write("hostile.json", damage(small, path, new))
            try:
                everything("hostile.json")
            except Damaged as said:
                refused += 1
                check(str(said).startswith("hostile.json") and "\n" not in str(said), path, new, said)
    check(refused > 1000, "only", refused, "refused")
    text = read(write("whole.json", bench()))
    for end in range(0, len(text) - 2, 997):
        write("cut.json", text[:end])
        try:
            everything("cut.json")
            check(False, "a file that ends at", end, "was taken")
        except Damaged as said:
            check("cut.json is damaged" in str(said), said)


def rows():
    return bench()["rows"]


BAD = (
    ("is damaged, or no JSON", "no JSON at all"),
    ("is damaged, or no JSON", '{"program": "tslab_bench", "format": 2, "cpus": NaN}'),
    ("is damaged, or no JSON", "[" * 100000),
    ("is no result of tslab_bench --json", []),
    ("is no result of tslab_bench --json", {"program": "tslab_drainability"}),
    ("has format 1, and this reads format 2: run tslab_bench again", {k: v for k, v in bench().items() if k != "format"}),
    ("has format 3, and this reads format 2: use the plot_bench.py of its tree", bench(format=3)),
    ('has format "2"', bench(format="2")),
    ("has no rows", bench([])),
    ("'complete' is missing", {k: v for k, v in bench().items() if k != "complete"}),
    ("there is no state 'good'", spoilt(bench(), "pair", "glibc", state="good")),
    ("(pair, alloc + free), result 1: 'median' is 'fast', not a number", spoilt(bench(), "pair", "glibc", median="fast")),
    ("'cpus' is inf, not a number", json.dumps(bench()).replace('"cpus": 2', '"cpus": 1e999')),
    ("there is no backend 'hoard'", spoilt(bench(), "pair", "glibc", backend="hoard")),
)

WRONG = (
    (2, "did you mean --short-table?", "b.json", "--short-tabel"),
    (2, "did you mean --suite?", "--siute=x"),
    (2, "see --help", "b.json", "c.json"),
    (2, "there is nothing to draw"),
    (2, "where to", "b.json"),
    (2, "--short-table takes RESULTS.json", "--suite", "x", "--short-table"),
    (2, "--page needs --out DIR for the pictures", "b.json", "--page", "p.md"),
    (2, "expected one argument", "b.json", "--out"),
    (1, "nowhere.json: No such file", "nowhere.json", "--short-table"),
    (1, "nowhere is no directory", "--suite", "nowhere", "--out", "o"),
    (1, "No such file", "--suite", ".", "--out", "o"),
    (2, "--targets takes RESULTS.json", "--suite", "x", "--out", "o", "--targets", "t"),
    (2, "--demo takes RESULTS.json", "--suite", "x", "--out", "o", "--demo", "d"),
    (1, "nowhere.tsv: No such file", "b.json", "--out", "o", "--why", "nowhere.tsv"),
    (1, "nowhere.tsv: No such file", "b.json", "--out", "o", "--targets", "nowhere.tsv"),
    (1, "Not a directory", "b.json", "--out", "b.json/o", "--no-pictures"),
    (1, "Is a directory", "b.json", "--page", "folder", "--no-pictures"),
)


def wrong():
    for said, value in BAD:
        write("bad.json", value)
        out, err = call("bad.json", "--out", "o", "--short-table", wanted=1, one_line=True)
        check(said in err and "bad.json" in err and out == "" and not os.path.exists("o"), value if isinstance(value, str) else "", "says", err)
    write("b.json", bench())
    os.makedirs("folder", exist_ok=True)
    for status, said, *arguments in WRONG:
        out, err = call(*arguments, wanted=status, one_line=True)
        check(said in err and out == "" and not os.path.exists("o"), arguments, "says", err)
    out, _ = call("--help")
    for word in ("--suite", "--out", "--page", "--why", "--targets", "--demo", "--no-pictures", "--short-table", "Exit status"):
        check(word in out, "--help has no", word)


def without_matplotlib():
    """The page is written, and says why it has no pictures; who asked for none has no reason to complain."""
    os.makedirs("blocked", exist_ok=True)
    write("blocked/matplotlib.py", "raise ImportError('blocked')\n")
    write("b.json", bench())
    _, err = call("b.json", "--out", "bare", env={"PYTHONPATH": "blocked"}, wanted=1)
    text = read("bare/summary.md")
    check("no matplotlib, so no pictures: make deps FOR=plot" in err and os.listdir("bare") == ["summary.md"], err)
    check('- picture "At a glance": there was no matplotlib' in text and "![" not in text and "## All numbers" in text, text[:800])
    _, err = call("b.json", "--out", "bare", "--no-pictures", env={"PYTHONPATH": "blocked"})
    check("no matplotlib" not in err + read("bare/summary.md"), err)


def suite_page(folder):
    call("--suite", folder, "--page", "suite.md", "--no-pictures")
    return read("suite.md")


def of_the_suite():
    text = suite_page(suite("whole"))
    for line in ("| number | tslab | glibc | jemalloc |", "| churn_fixed: latency.alloc_p99_ns | 50.0 | 100 | 100 |",
                 "| tslab | batch-100 | deferred | 50.0 | - | - | - | - | - | - | 0 |", "| command | `run.py --out out` |",
                 "| allocators | tslab 1.0, glibc 1.0, jemalloc 1.0 |", "- suite, scudo: libscudo.so does not exist"):
        check(line in text.splitlines(), "no line", line, text)
    check("**" not in text, "doubts", text)

    def fail(run):
        if (run["program"], run["allocator"], run["repetition"]) == ("churn_fixed", "glibc", 0):
            run.update(report=None, error="status -11", status=-11)

    text = suite_page(suite("failing", change=fail, complete=False, form="smoke", repetitions=1))
    for said in ("- suite, failed: churn_fixed glibc, repetition 1: status -11", "The run was interrupted", "Run with --smoke", "only one repetition"):
        check(said in text, "the page does not say", said)
    check("| churn_fixed: latency.alloc_p99_ns | 50.0 | 100 | 100 |" in text, "what is left of glibc", text)

    lines = read("whole/results.jsonl").splitlines()
    write("whole/results.jsonl", "\n".join(lines[:-1]) + "\n" + lines[-1][:100])
    check("- suite: The last line of results.jsonl was cut off and is left out." in suite_page("whole"), "a line that was cut off")
    for said, broken in (("line 2 is damaged", [lines[0], lines[1][:50], *lines[2:]]), ("has no runs", []),
                         ("line 1: 'program' is missing", ["{}"]), ("line 1 is not an object", ["3"])):
        write("whole/results.jsonl", "\n".join(broken))
        _, err = call("--suite", "whole", "--page", "suite.md", "--no-pictures", wanted=1, one_line=True)
        check(said in err, said, "is not said but", err)


def hostile_suite():
    head, lines = suite("hostile"), read("hostile/results.jsonl").splitlines()
    first = json.loads(lines[0])
    refused = 0
    for path in [p for p in places(first) if p]:
        for new in (None, -1, "x", [], {}, [3], True, KeyError):
            write("hostile/results.jsonl", "\n".join([json.dumps(damage(first, path, new)), *lines[1:]]))
            try:
                page.write(None, Suite(head), {}, str, {}, [], "")
            except Damaged:
                refused += 1
    check(refused > 10, "only", refused, "refused")


for test in (numbers, ranges, observed, short, seeds, requests, reasons, aims, doubts, nobody, hostile, wrong, without_matplotlib, of_the_suite, hostile_suite):
    test()
finish()
