#!/usr/bin/env python3
"""Draws the results of tslab_drainability: what closed epochs hold over time, and drainable closes against p.

usage: plot_drainability.py RESULT.json PICTURE.png     (needs matplotlib: make deps FOR=plot)
RESULT.json is what the program wrote, or docs/results/drainability.json, which has fewer points.
"""

import sys

sys.dont_write_bytecode = True

from drainability_page import read  # noqa: E402

PUBLISHED_SLABS = (200000, 492944)  # requests and slabs held at the end of the published mixed arm
FEW_SLABS = 5  # arms that hold fewer on average are not drawn
COLOURS = ["#1b4f72", "#2e86c1", "#17a589", "#7d6608", "#d68910", "#ba4a00", "#922b21", "#6c3483"]


def lifetime(arm):
    requests = 4000 / arm["replaced_per_request"]
    epochs = "" if arm["requests_per_epoch"] == 1000 else ", epochs of %d" % arm["requests_per_epoch"]
    return "%.0f requests%s" % (requests, epochs)


def draw_held(axes, result):
    mixed = [arm for arm in result["routing"] + result["lifetimes"] if arm["name"] == "mixed"]
    for arm, colour in zip(mixed, COLOURS * 2):
        if sum(s["closed_slabs"] for s in arm["course"]) < FEW_SLABS * len(arm["course"]):
            continue
        xs = [s["requests"] / 1000 for s in arm["course"]]
        ys = [s["closed_slabs"] for s in arm["course"]]
        axes.plot(xs, ys, color=colour, linewidth=1.4, label=lifetime(arm))
    requests, slabs = PUBLISHED_SLABS
    xs = range(1, requests // 1000 + 1)
    axes.plot(xs, [slabs * 1000 * x / requests for x in xs], ":", color="black", label="published, mixed, all slabs")
    axes.axhline(result["pool"], linestyle="--", color="black", linewidth=1)
    axes.text(100, result["pool"] * 1.3, "one slab for each of %d sessions" % result["pool"], fontsize=8)
    axes.set_yscale("symlog", linthresh=1)
    axes.set_ylim(0, 1000000)
    axes.set_xlabel("requests, thousands")
    axes.set_ylabel("slabs held by closed epochs")
    title = "Sessions in the epochs of requests, by their mean life\n"
    title += "(shorter lives: fewer than %d slabs; isolated: none)"
    axes.set_title(title % FEW_SLABS, fontsize=10)
    axes.legend(fontsize=8, loc="lower right", ncol=2)


def draw_sweep(axes, result):
    kinds = []
    for arm in result["sweep"]:
        if arm["name"] not in kinds:
            kinds.append(arm["name"])
    for kind, colour in zip(kinds, COLOURS[1::3]):
        arms = [arm for arm in result["sweep"] if arm["name"] == kind]
        xs = range(len(arms))
        axes.plot(xs, [arm["theory_dsr"] for arm in arms], color=colour, linewidth=1, label=kind + ": theory")
        axes.plot(xs, [arm["dsr"] for arm in arms], "o", color=colour, markersize=5, label=kind + ": measured")
    steps = [arm["p"] for arm in result["sweep"] if arm["name"] == kinds[0]]
    axes.plot(range(len(steps)), result["published_dsr"], "x", color="black", markersize=9, label="published")
    axes.set_xticks(range(len(steps)), ["%g" % p for p in steps])
    axes.set_ylim(-0.03, 1.03)
    axes.set_xlabel("p, share of the sessions routed wrongly")
    axes.set_ylabel("drainable closes / closes")
    axes.set_title("100 epochs of 50 requests", fontsize=10)
    axes.legend(fontsize=8, loc=(0.36, 0.1))


def main():
    if len(sys.argv) != 3 or sys.argv[1].startswith("-"):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    try:
        import matplotlib
    except ImportError:
        print("plot_drainability.py: no matplotlib: make deps FOR=plot", file=sys.stderr)
        return 1
    matplotlib.use("Agg")
    from matplotlib import pyplot

    try:
        result = read(sys.argv[1])
        if not result["sweep"] or not result["lifetimes"]:
            raise ValueError("it lacks the sections lifetimes and sweep")
    except (OSError, ValueError, KeyError) as error:
        print("plot_drainability.py: %s: %s" % (sys.argv[1], error), file=sys.stderr)
        return 1
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(12, 4.8))
    draw_held(left, result)
    draw_sweep(right, result)
    figure.tight_layout()
    figure.savefig(sys.argv[2], dpi=100)
    return 0


sys.exit(main())
