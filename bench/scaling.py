#!/usr/bin/env python3
"""How allocators scale with threads, up to all processors of the machine: for a report from a machine with many.

Two programs of the comparison suite run for temporal-slab, glibc malloc and every general peer that is there, with 1, 2, 4, ...
threads, up to --threads:

  objects    benchmark_threads: each thread allocates 100,000 objects and frees half of them and half of its neighbour's; million
             operations per second of all threads together
  requests   request_bench: requests of 225 objects, each freed, on one allocator; thousand requests per second

Repetitions are interleaved and medians are shown, and for each allocator how many times as much it does as on one thread. The table is
Markdown on standard output; --json keeps every figure. Compare only figures of the same run.

Exit status: 0; 1 a run failed; 2 wrong arguments; 130 interrupted.
"""
import argparse
import json
import os
import statistics
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "suite"))
import run as suite  # pylint: disable=wrong-import-position

KIND = "general"


def counts(most):
    """Powers of two up to it."""
    return [1 << n for n in range(most.bit_length())]


def steps(threads, smoke):
    """(name, unit, command, what of its report: threads and figure) of each program that is run."""
    trials = ["--quick"] if smoke else ["--trials", "5"]
    yield ("objects", "million operations per second", ["benchmark_threads", "--threads", str(threads[-1]), *trials],
           lambda report: [(r["threads"], r["median_ops_per_second"] / 1e6) for r in report["scaling"]])
    for n in threads:
        requests = str(400 * n if smoke else 5000 * n)
        yield ("requests", "thousand requests per second",
               ["request_bench", "--threads", str(n), "--requests", requests, "--policy", "per-request", "--recycling", "continuous"],
               lambda report, n=n: [(n, report["arms"][0]["requests_per_second"] / 1e3)])


def table(name, unit, threads, allocators, values):
    print(f"\n{name}: {unit}, and times as much as on one thread\n")
    print("| allocator | " + " | ".join(f"{n} thread{'s' if n > 1 else ''}" for n in threads) + " |")
    print("|---|" + "---|" * len(threads))
    for allocator in allocators:
        cells = []
        one = values.get((name, allocator.name, 1))
        for n in threads:
            found = values.get((name, allocator.name, n))
            if not found:
                cells.append("-")
                continue
            median = statistics.median(found)
            more = f" ({median / statistics.median(one):.1f}x)" if one and n > 1 else ""
            cells.append(f"{median:.1f}{more}")
        print(f"| {allocator.name} {allocator.version} | " + " | ".join(cells) + " |")


def parse():
    p = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0], allow_abbrev=False)
    p.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), metavar="N", help="the most (default: the processors that may be used)")
    p.add_argument("--allocators", nargs="+", metavar="NAME", help="these allocators (default: tslab, glibc and all general peers)")
    p.add_argument("--reps", type=int, default=3, metavar="N", help="repetitions (default: 3)")
    p.add_argument("--smoke", action="store_true", help="next to no work: whether everything runs")
    p.add_argument("--json", metavar="FILE", help="keep every figure")
    p.add_argument("--build", default=os.path.join(suite.ROOT, "build", "bench"), help="build directory (default: build/bench)")
    p.add_argument("--peers", default=os.path.join(suite.ROOT, "build", "peers", "peers.tsv"), help="list of peers")
    options = p.parse_args()
    if not 1 <= options.threads <= 64:
        p.error("--threads takes a number from 1 to 64")
    if not 1 <= options.reps <= 100:
        p.error("--reps takes a number from 1 to 100")
    return options


def run_all(options, threads, allocators, values, failures):
    plan = [(step, allocators[(k + repetition) % len(allocators)]) for repetition in range(options.reps)
            for step in steps(threads, options.smoke) for k in range(len(allocators))]
    for done, ((name, _, command, figures), allocator) in enumerate(plan, 1):
        program = os.path.join(options.build, "suite", command[0])
        report, _, error = suite.report_of([program, *command[1:], "--allocator", allocator.word, "--json"], allocator)
        print(f"[{done}/{len(plan)}] {' '.join(command[:3])} {allocator.name}: {error or 'ok'}", file=sys.stderr)
        if error:
            failures.append(f"{' '.join(command[:3])} {allocator.name}: {error}")
            continue
        for n, figure in figures(report):
            values.setdefault((name, allocator.name, n), []).append(figure)


def main():
    options = parse()
    facts = suite.machine(options.build)
    version = suite.output_of(os.path.join(options.build, "suite", "churn_fixed"), "--version")
    if version is None or not facts:
        print(f"scaling.py: no programs in {options.build}: make scaling builds them", file=sys.stderr)
        return 2
    known, missing = suite.read_peers(options.peers, version.split()[-1])
    known = [a for a in known if a.kind in ("ours", KIND)]
    names = suite.pick("allocator", options.allocators, [a.name for a in known])
    allocators = [a for a in known if a.name in names]
    for peer, reason in missing.items():
        print(f"missing: {peer}: {reason}", file=sys.stderr)
    threads, values, failures, status = counts(options.threads), {}, [], 0
    try:
        run_all(options, threads, allocators, values, failures)
    except KeyboardInterrupt:
        status = 130
    print(f"{facts.get('cpu')}, {facts.get('cpus')} processors, {facts.get('kernel')}, {facts.get('compiler')}, commit {facts.get('commit')}")
    for name, unit in dict((step[0], step[1]) for step in steps(threads, True)).items():
        table(name, unit, threads, allocators, values)
    if options.json:
        rows = [{"program": name, "allocator": allocator, "threads": n, "values": v} for (name, allocator, n), v in values.items()]
        suite.write_json(options.json, {**facts, "date": suite.utc(), "complete": status == 0, "rows": rows, "failures": failures})
    for failure in failures:
        print(f"failed: {failure}", file=sys.stderr)
    return status or (1 if failures else 0)


if __name__ == "__main__":
    sys.exit(main())
