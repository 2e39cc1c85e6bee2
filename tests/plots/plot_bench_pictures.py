"""plot_bench.py with matplotlib: what is drawn is what was measured, what was not measured is not drawn, and pages of real
runs of whatever programs are built."""

import os
import re
import shutil
import struct
import subprocess
import sys

from plot_bench_kit import SOURCE, around, bench, call, check, finish, metric, read, rows, suite, write

import matplotlib

matplotlib.use("Agg")

from bench_plots import bench_pictures, suite_pictures
from bench_plots.page import PICTURES
from bench_plots.read import Bench, Nothing
from bench_plots.suite import Suite
from matplotlib import pyplot

BUILD = os.environ["TSLAB_BUILD_DIR"]
MOST_BYTES = 300 * 1000
OF_BENCH = [name for name, source, _, _ in PICTURES if source == "bench"]
OF_SUITE = [name for name, source, _, _ in PICTURES if source == "suite"]


def result(value):
    return Bench(write("drawn.json", value))


def near(found, wanted):
    return len(found) == len(wanted) and all(abs(a - b) <= 1e-9 * max(1, abs(b)) for a, b in zip(found, wanted))


def curves(axes):
    return {line.get_label(): (list(line.get_xdata()), list(line.get_ydata())) for line in axes.lines if not line.get_label().startswith("_")}


def texts(axes):
    return [t.get_text() for t in axes.texts]


def size_of(path):
    """Width and height of a picture that is one."""
    with open(path, "rb") as picture:
        head = picture.read(24)
    return struct.unpack(">II", head[16:24]) if head.startswith(b"\x89PNG\r\n\x1a\n") else (0, 0)


def check_pictures(folder, wanted):
    found = sorted(n[:-4] for n in os.listdir(folder) if n.endswith(".png"))
    check(found == sorted(wanted), folder, "has", found, "instead of", sorted(wanted))
    for name in found:
        path = os.path.join(folder, name + ".png")
        width, height = size_of(path)
        check(500 <= width <= 1100 and 150 <= height <= 3000, path, width, height)
        check(5000 < os.path.getsize(path) < MOST_BYTES, path, os.path.getsize(path), "bytes")
    check(not [n for n in os.listdir(folder) if n.endswith(".new")], os.listdir(folder))


def at_a_glance():
    axes = bench_pictures.summary(result(bench()), None).axes[0]
    labels = [t.get_text() for t in axes.get_yticklabels()]
    check(labels[0] == "batch_tail: alloc p99.99" and labels[-1] == "churn_left: resident / live" and len(labels) == 18, labels)
    check("pair: alloc + free" in labels and "drift: drift" not in labels and "churn_left: live" not in labels, labels)
    at = labels.index("pair: alloc + free")
    dots = {line.get_ydata()[0]: (line.get_xdata()[0], line.get_color()) for line in axes.lines if len(line.get_xdata()) == 1}
    check(len(dots) == 18 and near([dots[at][0], dots[17][0]], [0.9, 3]), dots)
    check(dots[at][1] == "#0b5fd0" and dots[17][1] == "#d55e00" and dots[labels.index("batch: alloc + free")][1] == "#6b6b6b", dots)
    check([x for x, _ in (dots[i] for i in range(18))] == sorted(x for x, _ in dots.values()), "not sorted", dots)
    check("0.900  mimalloc" in texts(axes) and "3.00  glibc" in texts(axes), texts(axes))
    check("15 won, 2 level, 4 behind\n3 not drawn: a value is 0" in axes.get_title("left"), axes.get_title("left"))
    low, high = axes.get_xlim()
    check(low < min(x for x, _ in dots.values()) and high > 3 and axes.get_xscale() == "log", low, high)


def checked():
    """Who refuses doubled frees is marked."""
    axes, = bench_pictures.use(result(bench()), None).axes
    check("210 (checks)" in texts(axes) and "100" in texts(axes), texts(axes))


def lines():
    found = result(bench())
    left, right = bench_pictures.latency(found, None).axes
    check(near(curves(left)["tslab"][1], [25, 75, 225, 675]) and near(curves(right)["glibc"][1], [20, 200, 2000, 20000]), curves(left))
    check(near(curves(left)["mimalloc"][1], [1, 240, 1920, 15360]) and set(curves(left)) == {"tslab", "glibc", "mimalloc"}, curves(left))
    check([t.get_text() for t in left.get_xticklabels()] == ["p50", "p99", "p99.9", "p99.99"], "percentiles")
    live, close = bench_pictures.size(found, None).axes
    check(curves(live)["tslab"][0] == [1000, 10000, 100000] and near(curves(live)["tslab"][1], [40, 48, 56]), curves(live))
    check(set(curves(close)) == {"tslab"} and near(curves(close)["tslab"][1], [625, 1296, 2401]), curves(close))
    threads, last = bench_pictures.threads(found, None).axes
    check(curves(threads)["tslab"][0] == [1, 2, 4] and near(curves(threads)["tslab"][1], [100, 200, 400]), curves(threads))
    check([t.get_text() for t in last.get_yticklabels()] == ["tslab", "mimalloc", "glibc"], "the most is not on top")
    pyplot.close("all")


def dots():
    value = bench()
    for m in value["rows"]:
        if m["row"] == "churn_left" and m["metric"] == "resident / live":
            m["results"][2].update(state="corrupt", reason="overlap")
            m["results"][0].update(failures=2)
    figure = bench_pictures.fragmentation(result(value), None)
    axes, = figure.axes
    check([t.get_text() for t in axes.get_yticklabels()] == ["glibc", "tslab", "arena", "apr"], [t.get_text() for t in axes.get_yticklabels()])
    check(texts(axes) == ["6.00 (failed 2 x)", "18.0", "990", "1,000"] and axes.get_xlabel() == "x     (jemalloc: corrupt)", texts(axes), axes.get_xlabel())
    values = [line.get_xdata()[0] for line in axes.lines if len(line.get_xdata()) == 1]
    ranges = [tuple(line.get_xdata()) for line in axes.lines if len(line.get_xdata()) == 2]
    check(near(values, [6, 18, 990, 1000]) and near(ranges[1], [16.2, 21.6]) and axes.get_xscale() == "log", values, ranges)
    negative = metric("rss", "after the end", "MiB", {"glibc": [-2], "mimalloc": [0], "jemalloc": [300], "tslab": [1]})
    axes, = bench_pictures.fragmentation(result(bench([negative])), None).axes
    check(axes.get_xscale() == "symlog" and axes.get_xlim()[0] <= -2 and axes.get_xlim()[1] > 300, axes.get_xlim())
    pyplot.close("all")


def of_the_suite():
    found = Suite(suite("drawn"))
    axes = suite_pictures.latency_tail(None, found).axes[0]
    xs, ys = curves(axes)["tslab"]  # 2 x (900, 90, 9, 1) calls below 1, 16, 1024, 65536
    check(near(xs, [0.9, 1, 16, 1024, 65536]) and near(ys, [1, 0.1, 0.01, 0.001, 0.001]), xs, ys)
    xs, ys = curves(axes)["glibc"]  # 2 x (900, 180, 9, 1)
    check(near(ys[1:3], [190 / 1090, 10 / 1090]) and set(curves(axes)) == {"tslab", "glibc", "jemalloc"}, ys)
    never, batch = suite_pictures.requests(None, found).axes
    check("tslab deferred" in curves(never) and batch.get_title("left") == "closes: batch-100", list(curves(never)))
    rate, tail = suite_pictures.scaling(None, found).axes
    check(near(curves(rate)["tslab"][1], [10, 20, 40]) and near(curves(rate)["glibc"][1], [5, 10, 20]) and near(curves(tail)["glibc"][1], [80] * 3), curves(rate))
    demo, soak = suite_pictures.memory(None, found).axes
    check(near(curves(soak)["jemalloc"][1], [40.5, 41.5, 42.5, 43.5]) and curves(soak)["tslab"][0] == [0, 1, 2, 3], curves(soak))
    check(near(curves(demo)["glibc"][1][:4], [2000 / 1024, 8000 / 1024, 4000 / 1024, 3000 / 1024]), curves(demo)["glibc"])
    pyplot.close("all")


def whole_page():
    folder = suite("suite")
    write("bench.json", bench())
    call("bench.json", "--suite", folder, "--out", "all/pictures", "--page", "all/page.md")
    check_pictures("all/pictures", OF_BENCH + OF_SUITE)
    text = read("all/page.md")
    links = re.findall(r"!\[.*\]\((.*)\)", text)
    check(sorted(links) == sorted("pictures/%s.png" % n for n in OF_BENCH + OF_SUITE), links)
    check("Without a ratio, because a value is not above zero: drift: drift (0 against 2.00 mimalloc); batch_tail: alloc p50 (25.0 against" in text, text[:1500])
    before = {n: open("all/pictures/" + n, "rb").read() for n in os.listdir("all/pictures")}
    call("bench.json", "--suite", folder, "--out", "all/pictures", "--page", "all/page.md")
    check(before == {n: open("all/pictures/" + n, "rb").read() for n in os.listdir("all/pictures")}, "the same results give other pictures")


def not_there():
    """One row, one repetition, nobody else: what cannot be drawn is not, an old picture of it goes, and the page says why."""
    os.makedirs("few")
    for name in OF_BENCH:  # as an earlier run left them
        shutil.copy("all/pictures/%s.png" % name, "few")
    alone = bench([metric("pair", "alloc + free", "ns", {"tslab": [9]}, backends=("tslab",)),
                   metric("threads", "1 thread", "Mops/s", {}, backends=("tslab",))], repetitions=1, complete=False)
    alone["backends"] = [b for b in alone["backends"] if b["name"] == "tslab"]
    write("alone.json", alone)
    _, err = call("alone.json", "--out", "few")
    check_pictures("few", ["general"])
    text = read("few/summary.md")
    for said in ('- picture "At a glance": no metric has a value of ours and one of a peer above zero', '- picture "Memory over time": no results of the suite (--suite) were given',
                 '- picture "Latency of a call": the row batch_tail was not run', '- picture "Scaling with threads": nobody has a value in the row threads'):
        check(said in text, "the page does not say", said, text)
    check("not drawn: summary: no metric" in err and "![At a glance]" not in text, err)

    def without_histograms(run):
        run["report"].get("latency", {}).pop("histogram", None)

    old = Suite(suite("old", programs=("churn_fixed",), change=without_histograms))
    for maker, said in ((suite_pictures.latency_tail, "hold no histograms"), (suite_pictures.memory, "soak was not run"), (suite_pictures.scaling, "was not run")):
        try:
            maker(None, old)
            check(False, maker, "draws")
        except Nothing as nothing:
            check(said in str(nothing), maker, nothing)


def odd_values():
    """Whatever the numbers are, a picture or a reason."""
    for odd in ({"tslab": 0, "glibc": 1e15}, {"tslab": 1e-12, "glibc": -1}):
        value = bench([m for m in rows() if m["row"] in ("pair", "batch_tail", "threads", "live", "churn_left")])
        for m in value["rows"]:
            for r in m["results"]:
                if r["backend"] in odd and r["median"] is not None:
                    v = odd[r["backend"]]
                    r.update(median=v, min=v, max=v, values=[v] * 3, ratio_best=1e-9 if v == 1e-12 else r["ratio_best"])
        found = result(value)
        for name in OF_BENCH:
            try:
                getattr(bench_pictures, name)(found, None).canvas.draw()
            except Nothing:
                pass
            pyplot.close("all")


def real():
    """The programs that are built: their formats are the ones this reads."""
    if not os.path.exists(os.path.join(BUILD, "tslab_bench")):
        print("skipped: a real run, there is no tslab_bench in this build")
        return
    subprocess.run([os.path.join(BUILD, "tslab_bench"), "--row", "pair", "--row", "batch_tail", "--row", "close_cost", "--backend", "glibc", "--backend", "tslab",
                    "--part", "1000", "--reps", "2", "--peers", "nowhere.tsv", "--json", "real.json"], check=True, timeout=600, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    subprocess.run([sys.executable, os.path.join(SOURCE, "bench", "suite", "run.py"), "--build", BUILD, "--smoke", "--reps", "1", "--peers", "nowhere.tsv",
                    "--only", "churn_fixed", "epoch_reclamation_demo", "request_bench", "--out", "real"], check=True, timeout=600, stderr=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL)
    call("real.json", "--suite", "real", "--out", "real/page")
    check_pictures("real/page", ["summary", "general", "latency", "size", "tails", "requests", "memory"])
    text = read("real/page/summary.md")
    check("| pair: alloc + free, ns |" in text and "| tslab | never | deferred |" in text, text)
    check(len(suite_pictures.latency_tail(None, Suite("real")).axes) == 2, "churn_fixed has no two histograms")


for test in (at_a_glance, checked, lines, dots, of_the_suite, whole_page, not_there, odd_values, real):
    test()
finish()
