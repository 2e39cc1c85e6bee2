"""Figures of the request server in demo/ as metrics of a row `demo`: what its --figures writes.

Runs of glibc and of temporal-slab are taken in turn there, so the n-th of each make a pair: a repetition here.
"""

import statistics

from .read import Damaged, Metric, field, read_json

FIGURES = (  # path, name, unit, better
    ("requests_per_second", "requests per second", "1/s", "higher"), ("latency_ns.p50", "latency p50", "us", "lower"),
    ("latency_ns.p99", "latency p99", "us", "lower"), ("page_faults", "page faults", "faults", "lower"),
    ("rss.peak", "resident at the peak", "MiB", "lower"), ("rss.end", "resident after the last phase", "MiB", "lower"))
SIZES = {"us": 1e3, "MiB": 1048576}


def figure(run, path, where):
    *folders, last = path.split(".")
    for key in folders:
        run = field(run, key, dict, where)
    return field(run, last, float, where)


def ratio(more, pairs):
    found = [(o / v if more else v / o) for v, o in pairs if v > 0 and o > 0]
    return statistics.median(found) if found else None


def metric(unit, better, values, backends, **head):
    more, results = better == "higher", []
    for backend, own in values.items():
        to_glibc = ratio(more, zip(own, values["glibc"]))
        results.append({"backend": backend, "state": "ok", "failures": 0, "median": statistics.median(own), "min": min(own), "max": max(own),
                        "spread": (max(own) - min(own)) / statistics.median(own) if statistics.median(own) else None,
                        "ratio_glibc": to_glibc, "ratio_best": to_glibc, "values": own})
    winner = (max if more else min)(results, key=lambda r: r["median"])["backend"]
    return Metric({"row": "demo", "what": "a request server on Lua and cJSON", "unit": unit, "better": better, "plain": False, "best_peer": "glibc",
                   "winner": winner, "results": results, **head}, backends, "the demo")


def metrics(path, backends):
    found = read_json(path)
    runs = {"glibc": [], "tslab": []}
    for i, run in enumerate(field(found, "runs", list, path)):
        where = "%s: run %d" % (path, i + 1)
        runs.get(field(run, "backend", str, where), []).append((run, where))
    if not all(runs.values()) or not {"glibc", "tslab"} <= {b.name for b in backends}:
        raise Damaged("%s: there are no runs of both, glibc and tslab" % path)
    pairs = min(map(len, runs.values()))
    return [metric(unit, better, {b: [figure(run, key, where) / SIZES.get(unit, 1) for run, where in of[:pairs]] for b, of in runs.items()},
                   backends, metric=name) for key, name, unit, better in FIGURES]
