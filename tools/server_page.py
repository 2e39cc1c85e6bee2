#!/usr/bin/env python3
"""Writes docs/results/server.md, its numbers and its pictures from what demo/server/measure.py --json wrote.

    server_page.py RUN.json...   server.json (what the page has of the runs), server.md, server-1.png and so on (needs matplotlib:
                                 make deps FOR=plot)
    server_page.py --check       the page is what server.json makes

Exit status: 0; 1 the page differs; 2 for wrong arguments.
"""
import json
import os
import statistics
import sys

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "demo", "server"))
import measure  # noqa: E402

RESULTS = os.path.join(ROOT, "docs", "results")
NAMES = ("glibc", "jemalloc", "mimalloc", "tslab", "phases")
SHOWN = {"tslab": "tslab without phases", "phases": "tslab, phases"}
COLOURS = {"glibc": "#555555", "jemalloc": "#b9770e", "mimalloc": "#76448a", "tslab": "#7fb3d5", "phases": "#1b4f72"}
QUIET = 0.5  # load, above which times are not judged
CPU_LIMIT = 1.10
FACTS = ("commit", "date", "kernel", "libc", "processor", "cpus", "load", "seconds", "cycle", "rest", "turns", "together", "scale", "loops", "failures")
MIB = 2 ** 20


def reduced_result(result):
    parts = {kind: [s for s in result["segments"] if s["kind"] == kind] for kind in ("calm", "burst")}
    size = [sample[1] for sample in result["samples"]]
    # Between bursts: the last second of each calm stretch that a burst has gone before.
    after = [s["resident"]["rss"] for n, s in enumerate(result["segments"]) if s["kind"] == "calm" and n > 0 and result["segments"][n - 1]["kind"] == "burst"]
    served = sum(s["served"] for s in result["segments"])
    thin = max(1, len(result["samples"]) // 400)
    return {"allocator": result["allocator"], "turn": result["turn"], "served": served,
            "latency_ms": {kind: [round(ms, 2) for ms in measure.percentiles([s["reads"] for s in parts[kind]])] for kind in parts},
            "orders_ms": {kind: [round(ms, 1) for ms in measure.percentiles([s["orders"] for s in parts[kind]])] for kind in parts},
            "cpu_us": round(sum(s["cpu"] for s in result["segments"]) / served * 1e6, 1),
            "faults": round(sum(s["faults"] for s in result["segments"]) / served, 2),
            "peak": max(size), "mean": round(statistics.fmean(size)), "after": round(statistics.fmean(after)) if after else None,
            "at_rest": result["rest"]["rss"], "open_max": result["figures"]["open_max"],
            "samples": [[at, round(bytes_ / MIB, 1)] for at, bytes_, _ in result["samples"][::thin]],
            "routes": {label: {key: r[key] for key in ("phases", "objects_allocated", "bytes_allocated", "objects_escaped")}
                       for label, r in result["figures"]["routes"].items()} if result["allocator"] == "phases" else None}


def reduced(run):
    return {name: run[name] for name in FACTS} | {"results": [reduced_result(r) for r in run["results"]]}


def of(run, name):
    return [r for r in run["results"] if r["allocator"] == name]


def names_of(run):
    return [name for name in NAMES if of(run, name)]


def middle(run, name, key):
    values = [r[key] for r in of(run, name) if r[key] is not None]
    return statistics.median(values) if values else None


def mib(value):
    return "-" if value is None else f"{value / MIB:.1f}"


def latency(run, name, kind):
    rows = [r["latency_ms"][kind] for r in of(run, name)]
    return " | ".join(f"{statistics.median(column):.{1 if n < 3 else 0}f}" for n, column in enumerate(zip(*rows)))


def judged(good, quiet=True):
    return ("reached" if good else "missed") if quiet else "not judged: the machine did other work"


def verdict(run):
    lines = ["| goal | measured | |", "|---|---|---|"]
    if not of(run, "phases") or not of(run, "glibc"):
        return []
    if of(run, "tslab"):
        ratio = middle(run, "phases", "cpu_us") / middle(run, "tslab", "cpu_us")
        lines.append(f"| processor time with phases: at most {CPU_LIMIT:.2f} times the time without phases | {ratio:.2f} | {judged(ratio <= CPU_LIMIT, run['load'] <= QUIET)} |")
    for key, what in (("mean", "average resident bytes over the whole run"), ("after", "resident bytes before the next burst"),
                      ("at_rest", "resident bytes at rest"), ("peak", "peak resident bytes")):
        if middle(run, "glibc", key) and middle(run, "phases", key):
            ratio = middle(run, "phases", key) / middle(run, "glibc", key)
            lines.append(f"| {what}: less than with glibc | {ratio:.2f} times as much as glibc | {judged(ratio < 1)} |")
    return lines


def shape(run):
    one = "1 minute" if run["seconds"] == 60 else f"{run['seconds'] // 60} minutes" if run["seconds"] % 60 == 0 else f"{run['seconds']} seconds"
    calm, burst = (sum(int(n * run["scale"]) for n, _ in groups) for groups in (measure.CALM, measure.BURST))
    more = "all servers at the same time, with their bursts one after another" if run["together"] else "one server after another"
    turns = f", {run['turns']} runs of each allocator, medians" if run["turns"] > 1 else ""
    return one, f"{one} for each allocator, {more}{turns}", f"{calm} connections, and {burst} in bursts of {min(measure.BURST_SECONDS, max(1, run['cycle'] // 5))} s " \
                f"every {run['cycle']} s; {run['loops']} event loop{'s' if run['loops'] > 1 else ''} per server"


def run_lines(number, run):
    title, what, clients = shape(run)
    words = [f"--seconds {run['seconds']}"] + (["--together"] if run["together"] else []) + ([f"--turns {run['turns']}"] if run["turns"] > 1 else []) + \
        ([f"--cycle {run['cycle']}"] if run["cycle"] != 60 else []) + ([f"--loops {run['loops']}"] if run["loops"] > 1 else []) + \
        ([f"--scale {run['scale']}"] if run["scale"] != 1 else [])
    load = f"{run['load']:.1f}" + (": a quiet machine" if run["load"] <= QUIET else ": other work ran on the machine, so latency and processor time are unreliable")
    out = [f"## {title[0].upper()}{title[1:]}{', together' if run['together'] else ''}", "", "| | |", "|---|---|", f"| what | {what} |", f"| clients | {clients} |",
           f"| machine | {run['processor']}, {run['cpus']} processors, Linux {run['kernel']}, {run['libc']} |", f"| commit, date | {run['commit']}, {run['date']} |",
           f"| load before the run | {load} |", f"| command | `make server ARGS=\"{' '.join(words)}\"` |", "",
           f"![Resident MiB over time, one line for each allocator](server-{number}.png)", ""] + verdict(run)
    out += ["", "| resident MiB | peak | average | before the next burst | at rest | most open requests | page faults per request | processor time per request, us |",
            "|---|---|---|---|---|---|---|---|"]
    for name in names_of(run):
        out.append(f"| {SHOWN.get(name, name)} | {mib(middle(run, name, 'peak'))} | {mib(middle(run, name, 'mean'))} | {mib(middle(run, name, 'after'))} | "
                   f"{mib(middle(run, name, 'at_rest'))} | {middle(run, name, 'open_max'):.0f} | {middle(run, name, 'faults'):.2f} | {middle(run, name, 'cpu_us'):.0f} |")
    out += ["", "| latency of requests that do not wait for a bank, ms | calm p50 | p99 | p99.9 | max | burst p50 | p99 | p99.9 | max | requests of all kinds |", "|---|" + "---|" * 9]
    for name in names_of(run):
        out.append(f"| {SHOWN.get(name, name)} | {latency(run, name, 'calm')} | {latency(run, name, 'burst')} | {middle(run, name, 'served'):,.0f} |")
    routes = of(run, "phases")[0]["routes"] if of(run, "phases") else {}
    if routes:
        out += ["", "| route | phases | objects per phase | KiB per phase | objects live at the end of the phase |", "|---|---|---|---|---|"]
        for label, r in routes.items():
            out.append(f"| {label} | {r['phases']:,} | {r['objects_allocated'] / max(r['phases'], 1):.0f} | {r['bytes_allocated'] / max(r['phases'], 1) / 1024:.1f} | {r['objects_escaped']:,} |")
    return out + ([""] + [f"- failed: {line}" for line in run["failures"]] if run["failures"] else []) + [""]


def page(runs):
    out = ["# A server under load", "",
           "This page is for readers who compare the memory and the latency of a server under several",
           "allocators. The server, the [second demo](../../demo/server/README.md), is an online shop. It uses",
           "libevent, json-c, a Lua interpreter for each request, and SQLite outside of all phases. The same",
           "binary ran with each allocator preloaded. The load generator wrk sent requests over connections that",
           "pause between requests. Hundreds of requests were open at the same time, and more than a thousand in",
           "each burst. *tslab without phases* is the preload library alone. *tslab, phases* adds a phase for",
           "each request.",
           "",
           "Some requests wait for a simulated bank. wrk measured the latency of the other requests, separately",
           "for calm periods and for bursts. Resident bytes were read every half second. [Decision",
           "0084](../decisions/0084-a-server-as-a-demo.md) explains the numbers, which are in",
           "[server.json](server.json). `tools/server_page.py RUN.json...` generates this page from the output",
           "of `make server`.",
           ""]
    for number, run in enumerate(runs, 1):
        out += run_lines(number, run)
    return "\n".join(out).rstrip() + "\n"


def draw(run, path):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    figure, axis = pyplot.subplots(figsize=(11, 4.5), layout="constrained")
    for name in names_of(run):
        samples = of(run, name)[0]["samples"]
        axis.plot([at for at, _ in samples], [size for _, size in samples], label=SHOWN.get(name, name), color=COLOURS[name], linewidth=1.6 if name == "phases" else 1.1)
    axis.set_xlabel("seconds" + (", bursts of the servers one after the other" if run["together"] else " since the start of each server"))
    axis.set_ylabel("resident MiB")
    axis.set_ylim(0)
    axis.legend(ncols=len(NAMES), fontsize=8)
    figure.savefig(path, dpi=90)
    pyplot.close(figure)


def main():
    words = sys.argv[1:]
    kept, made = (os.path.join(RESULTS, "server" + end) for end in (".json", ".md"))
    if words == ["--check"]:
        with open(kept, encoding="utf-8") as text, open(made, encoding="utf-8") as there:
            same = page(json.load(text)) == there.read()
        if not same:
            print("server_page.py: docs/results/server.md is not what server.json makes", file=sys.stderr)
        return 0 if same else 1
    if not words or any(word.startswith("-") for word in words):
        print(__doc__, file=sys.stderr)
        return 2
    runs = []
    for word in words:
        with open(word, encoding="utf-8") as text:
            runs.append(reduced(json.load(text)))
    with open(kept, "w", encoding="utf-8") as out:
        json.dump(runs, out, separators=(",", ":"))
        out.write("\n")
    with open(made, "w", encoding="utf-8") as out:
        out.write(page(runs))
    for number, run in enumerate(runs, 1):
        draw(run, os.path.join(RESULTS, f"server-{number}.png"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
