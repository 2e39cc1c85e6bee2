#!/usr/bin/env python3
"""Writes docs/results/programs.md, its numbers and its picture from what bench/programs/run.py --json wrote.

    programs_page.py RUN.json...   programs.json (the runs together), programs.md, programs.png (needs matplotlib:
                                   make deps FOR=plot); of a program in several runs the last one counts
    programs_page.py --check       the page is what programs.json makes

Exit status: 0; 1 the page differs; 2 for wrong arguments.
"""
import json
import os
import statistics
import sys

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "bench", "programs"))
import run  # noqa: E402

RESULTS = os.path.join(ROOT, "docs", "results")
NAMES = {"peak": "peak resident bytes", "faults": "page faults", "cpu": "processor time", "wall": "wall time", "final": "resident bytes at exit"}
NINE = [p.name for p in run.PROGRAMS]
QUIET = 0.5  # load, above which times are not judged


def together(paths):
    out = {**run.machine(), "loads": [], "left_out": [], "failures": [], "results": {}}
    for path in paths:
        with open(path, encoding="utf-8") as text:
            one = json.load(text)
        out["loads"].append(round(one["load"], 1))
        out["left_out"] += one["left_out"]
        out["failures"] += one["failures"]
        out["results"].update(one["results"])
    return out


def allocators(data):
    return [name for name in ("tslab",) + run.PEERS if any(name in rows for rows in data["results"].values())]


def shown(figure, value):
    return f"{value:.2f} s" if figure in ("wall", "cpu") else f"{value:,.0f}" if figure == "faults" else f"{value / 2 ** 20:.1f} MiB"


def table(data, figure):
    names = allocators(data)
    lines = [f"| | glibc | {' | '.join(names)} |", "|---|" + "---|" * (len(names) + 1)]
    for program, rows in data["results"].items():
        cells = []
        for name in names:
            failed = any(line.startswith(f"{program} under {name}:") for line in data["failures"])
            cells.append(f"{statistics.median(run.ratios(rows, name, figure)):.2f}" if rows.get(name) else "failed" if failed else "-")
        base = statistics.median(row[figure] for row in rows["glibc"])
        lines.append(f"| {program} | {shown(figure, base)} | {' | '.join(cells)} |")
    means = []
    for name in names:
        medians = [statistics.median(run.ratios(data["results"][p], name, figure)) for p in NINE if data["results"].get(p, {}).get(name)]
        means.append(f"{run.geometric_mean(medians):.2f}" if len(medians) == len(NINE) else "-")
    lines.append(f"| *mean of the nine* | | {' | '.join(means)} |")
    return lines


def verdict(data):
    lines, quiet = ["| goal | measured | |", "|---|---|---|"], max(data["loads"]) <= QUIET
    for figure, (mean_limit, each_limit) in run.GOALS.items():
        medians = {p: statistics.median(run.ratios(data["results"][p], "tslab", figure)) for p in NINE if data["results"].get(p, {}).get("tslab")}
        if len(medians) != len(NINE):
            lines.append(f"| {NAMES[figure]}: all nine programs run | {len(medians)} | missed |")
            continue
        mean = run.geometric_mean(list(medians.values()))
        judged = ("reached" if mean <= mean_limit else "missed") if figure != "wall" or quiet else "not judged: the machine did other work"
        lines.append(f"| {NAMES[figure]}, geometric mean: at most {mean_limit:.2f} | {mean:.3f} | {judged} |")
        if not each_limit:
            continue
        over, unsure = [], []
        for p, median in medians.items():
            pairs = run.ratios(data["results"][p], "tslab", figure)
            if min(pairs) <= each_limit < max(pairs):
                unsure.append(f"{p} {min(pairs):.2f} to {max(pairs):.2f}")
            elif median > each_limit:
                over.append(f"{p} {median:.2f}")
        worst = max(medians, key=medians.get)
        judged = "not judged: the machine did other work" if figure == "wall" and not quiet else \
            "missed: " + ", ".join(over) if over else "not judged: " + ", ".join(unsure) if unsure else "reached"
        lines.append(f"| {NAMES[figure]}, each program: at most {each_limit:.2f} | {worst} {medians[worst]:.2f} | {judged} |")
    redis = data["results"].get("redis", {}).get("tslab")
    if redis:
        idle = redis[0]["idle"]
        lines.append(f"| redis a minute after FLUSHALL: at most {run.IDLE_LIMIT >> 20} MiB | {idle / 2 ** 20:.1f} MiB | {'reached' if idle <= run.IDLE_LIMIT else 'missed'} |")
    return lines


def page(data):
    load = " and ".join(f"{n:.1f}" for n in data["loads"])
    turns = {program: len(rows["glibc"]) for program, rows in data["results"].items()}
    most = max(turns.values())
    fewer = ", ".join(p for p, n in turns.items() if n != most)
    out = ["# Programs as they are", "",
           "This page shows how unchanged programs run with the [preload library](../preload.md). Each program",
           "ran with the preload library, with glibc's malloc, and with other allocators. In each table, the",
           "glibc column shows absolute values, and the other columns show ratios to glibc. Each program ran in",
           "several turns, once per turn with every allocator. A ratio compares two runs of the same turn, and",
           "the table shows the median of these ratios. *Failed* means that the output or the exit code differed",
           "from the run with glibc. A \"-\" means that the program was not run.",
           "[bench/programs](../../bench/programs/run.py) describes the work of each program.", "",
           "| | |", "|---|---|",
           f"| machine | {data['processor']}, {data['cpus']} processors, Linux {data['kernel']}, {data['libc']} |",
           f"| commit, date | {data['commit']}, {data['date']} |",
           f"| load before the runs | {load}: {'a quiet machine' if max(data['loads']) <= QUIET else 'other work ran at the same time, so times are unreliable'} |",
           f"| repetitions | {most}" + (f"; 1 of {fewer}" if fewer else "") + " |",
           "| commands | `make programs ARGS=\"--json RUN.json\"`, then `tools/programs_page.py RUN.json`; the numbers are in [programs.json](programs.json) |", "",
           "![Peak resident bytes and page faults, relative to glibc](programs.png)", "", "## Goals", ""] + verdict(data)
    if any(program.startswith("like-") for program in data["results"]):
        out += ["", "Rows *like-...* are small programs that mainly allocate. They were written for this page and modeled on mimalloc-bench "
                "([patterns.c](../../bench/programs/patterns.c)).", "Some of them hold so little memory that most of their peak is the fixed memory of the allocator."]
    for figure in ("peak", "faults", "cpu", "wall", "final"):
        out += ["", f"## {NAMES[figure][0].upper()}{NAMES[figure][1:]}", ""] + table(data, figure)
    redis = data["results"].get("redis")
    if redis:
        out += ["", "## Redis at rest", "", "The table shows resident MiB with the data loaded, and a minute after FLUSHALL. In the glibc column, redis runs without the jemalloc that Debian links it with.", "",
                f"| | {' | '.join(redis)} |", "|---|" + "---|" * len(redis)]
        for label, key in (("loaded", "loaded"), ("at rest", "idle")):
            out.append(f"| {label} | " + " | ".join(f"{statistics.median(r[key] for r in rows) / 2 ** 20:.1f}" for rows in redis.values()) + " |")
    if data["failures"] or data["left_out"]:
        out += ["", "## Failed, left out", ""] + [f"- {line}" for line in data["failures"] + data["left_out"]]
    return "\n".join(out) + "\n"


def draw(data, path):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    names = allocators(data)
    programs = list(data["results"])
    many = len(programs) > 16
    figure, axes = pyplot.subplots(2, 1, figsize=(max(11, 0.6 * len(programs)), 9 if many else 7), layout="constrained")
    for axis, what in zip(axes, ("peak", "faults")):
        for at, name in enumerate(names):
            there = [(n, statistics.median(run.ratios(data["results"][p], name, what))) for n, p in enumerate(programs) if data["results"][p].get(name)]
            axis.bar([n + (at - len(names) / 2 + 0.5) * 0.8 / len(names) for n, _ in there], [r for _, r in there], 0.8 / len(names), label=name,
                     color="#1b4f72" if name == "tslab" else ["#bbbbbb", "#999999", "#cccccc", "#777777"][at % 4])
        axis.axhline(1, color="black", linewidth=1)
        axis.axhline({"peak": 1.2, "faults": 1.2}[what], color="#922b21", linewidth=1, linestyle="--")
        axis.set_xticks(range(len(programs)), programs, rotation=60 if many else 0, ha="right" if many else "center")
        axis.set_ylabel(f"{NAMES[what]} / glibc's")
        axis.set_ylim(0, 2.6)
    axes[0].legend(ncols=len(names), fontsize=8)
    figure.savefig(path, dpi=90)


def main():
    words = sys.argv[1:]
    kept, made, picture = (os.path.join(RESULTS, "programs" + end) for end in (".json", ".md", ".png"))
    if words == ["--check"]:
        with open(kept, encoding="utf-8") as text, open(made, encoding="utf-8") as there:
            same = page(json.load(text)) == there.read()
        if not same:
            print("programs_page.py: docs/results/programs.md is not what programs.json makes", file=sys.stderr)
        return 0 if same else 1
    if not words or any(word.startswith("-") for word in words):
        print(__doc__, file=sys.stderr)
        return 2
    data = together(words)
    with open(kept, "w", encoding="utf-8") as out:
        json.dump(data, out, indent=None, separators=(",", ":"))
        out.write("\n")
    with open(made, "w", encoding="utf-8") as out:
        out.write(page(data))
    draw(data, picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
