#!/usr/bin/env python3
"""Draws how memory goes while a load runs for hours, and says how far it has drifted.

usage: plot_soak.py TRACE... --out PICTURE

TRACE is what `TSLAB_TEST_TRACE=TRACE TSLAB_TEST_SECONDS=3600 stress_load loop` writes: a line for each second. Each trace is a row
of the picture. For each, a line on standard output has steps, hours, and the medians of the second tenth of the run and of the
last, by whose quotient memory has drifted. The exit status is 1 if a trace is damaged or shorter than a minute.
"""
import argparse
import csv
import statistics
import sys

COLUMNS = ("committed_bytes", "resident_bytes")


def read(name):
    with open(name, newline="", encoding="utf-8") as f:
        rows = list(csv.DictReader(f))
    try:
        rows = [{k: v if k == "load" else int(v) for k, v in row.items()} for row in rows]
        if len({row["load"] for row in rows}) != 1 or rows[-1]["seconds"] < 60:
            raise ValueError("not one load of a minute or more")
    except (KeyError, TypeError, ValueError, IndexError) as wrong:
        sys.exit("%s is not a trace that can be drawn: %s" % (name, wrong))
    return rows


def drift(rows, column):
    """The medians of the second tenth of the run, and of the last."""
    end = rows[-1]["seconds"]
    early = [row[column] for row in rows if 0.1 * end <= row["seconds"] < 0.2 * end]
    late = [row[column] for row in rows if row["seconds"] >= 0.9 * end]
    return statistics.median(early), statistics.median(late)


def said(rows):
    parts = []
    for column in COLUMNS:
        early, late = drift(rows, column)
        grown = "%+.2f %%" % (100 * (late / early - 1)) if early else "nothing at first" if late else "nothing at all"
        parts.append("%s %.2f MiB, then %.2f MiB (%s)" % (column.split("_")[0], early / 2**20, late / 2**20, grown))
    last = rows[-1]
    return "%s: %d steps in %.2f hours; %s" % (last["load"], last["steps"], last["seconds"] / 3600, "; ".join(parts))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("trace", nargs="+")
    parser.add_argument("--out", required=True, help="the picture, a PNG")
    args = parser.parse_args()
    traces = [read(name) for name in args.trace]
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(len(traces), 1, figsize=(8, 2.6 * len(traces)), squeeze=False, layout="constrained")
    for rows, (axis,) in zip(traces, axes):
        minutes = [row["seconds"] / 60 for row in rows]
        for column, colour in zip(COLUMNS, ("#1f77b4", "#d62728")):
            axis.plot(minutes, [row[column] / 2**20 for row in rows], color=colour, linewidth=1, label=column.split("_")[0])
        axis.set_ylim(bottom=0)
        axis.set_title("%s: %.1f million steps" % (rows[-1]["load"], rows[-1]["steps"] / 1e6), loc="left", fontsize=10)
        axis.set_xlabel("minutes")
        axis.set_ylabel("MiB")
        axis.grid(alpha=0.3)
        axis.legend(loc="lower right", frameon=False)
        print(said(rows))
    figure.savefig(args.out, dpi=110)


if __name__ == "__main__":
    main()
