#!/usr/bin/env python3
"""Runs the comparison suite: every program, for temporal-slab, glibc malloc and every peer that is there.

Repetitions are interleaved: a repetition runs each program once for each allocator, and the order of the allocators turns
from one repetition to the next, so that a slow minute of the machine does not hit one allocator alone. Peers come from
the list that scripts/get-peers.sh writes; those of the kinds "general" and "checked" are preloaded, and a preload that fails is a
failed run, never a silent run of glibc.

Three forms: full; --quick, with less work where a run takes long, so that everything is done in a quarter of an hour on
two processors; --smoke, which only shows that all programs run.

Written into the output directory, as it goes:
  run.json       the head that all documents of the benchmark have, versions, peers that are missing and why
  results.jsonl  one line a run: program, allocator, repetition, command, status, seconds, the program's own report
  csv/           the CSV rows of each run; column "allocator" holds the peer's name
  summary.csv    every number of the reports: median, least, most, and the median ratio to glibc

Exit status: 0; 1 a run failed; 2 wrong arguments; 130 interrupted (what is done is kept).
"""
import argparse
import csv
import difflib
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
PROGRAMS = {  # name of the run: program and its arguments
    "churn_fixed": ["churn_fixed"],
    "steady_state_churn": ["steady_state_churn"],
    "fragmentation_adversary": ["fragmentation_adversary"],
    "epoch_reclamation_demo": ["epoch_reclamation_demo"],
    "phase_shift_retention": ["phase_shift_retention", "--alone"],
    "sustained_phase_shifts": ["sustained_phase_shifts"],
    "request_bench": ["request_bench"],
    "request_http": ["request_bench", "--http"],
    "locality_bench": ["locality_bench"],
    "benchmark_threads": ["benchmark_threads"],
    "benchmark_accurate": ["benchmark_accurate"],
    "applications": ["applications"],
    "soak": ["soak"],
    "threads_shared": ["benchmark_threads"],
    "threads_sampled": ["benchmark_threads"],
}
OPTIONS = {"threads_shared": "shared=1", "threads_sampled": "sampling_period=64"}  # TSLAB_OPTIONS; runs of tslab alone
QUICK = {"sustained_phase_shifts": ["400"], "soak": ["--seconds", "6"]}  # arguments of the quick form: these two take long
FULL = {"soak": ["--seconds", "20"]}
FEWER = {"sustained_phase_shifts": 3, "soak": 3}  # repetitions of the full form, by default
FORMS = {"full": 7, "quick": 3, "smoke": 1}  # and their repetitions
KINDS = ("general", "checked")  # of peers: both answer malloc; the second refuse a doubled free, as temporal-slab does
TIMEOUT_SECONDS = 1800


class Allocator:
    def __init__(self, name, version, preload=None, kind="general"):
        self.name, self.version, self.preload, self.kind = name, version, preload, kind

    @property
    def word(self):
        return "tslab" if self.name == "tslab" else "malloc"


def read_peers(path, tslab_version):
    """Allocators to run, and what is missing: name -> reason."""
    allocators = [Allocator("tslab", tslab_version, kind="ours"), Allocator("glibc", platform.libc_ver()[1])]
    missing = {}
    if not os.path.exists(path):
        missing["all general peers"] = f"no list at {path}: run scripts/get-peers.sh"
        return allocators, missing
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            name, version, kind, library, reason = (line.rstrip("\n").split("\t") + [""] * 5)[:5]
            if not name or name.startswith("#") or name in ("name", "glibc") or kind not in KINDS:
                continue
            gone = [part for part in library.split(":") if not os.path.exists(part)]
            if library == "-" or not library:
                missing[name] = reason or "no reason given"
            elif gone:
                missing[name] = f"{gone[0]} does not exist"
            else:
                allocators.append(Allocator(name, version, library, kind))
    return allocators, missing


def busy_seconds():
    """Processor seconds of the whole machine so far, and ours; None where the kernel does not say."""
    try:
        with open("/proc/stat", encoding="ascii") as lines:
            user, nice, system, _, _, irq, softirq, steal = (int(word) for word in lines.readline().split()[1:9])
    except (OSError, ValueError):
        return None
    own = sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK") - own


def output_of(*command):
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=20, check=False)
        return done.stdout.strip() if done.returncode == 0 else None
    except (OSError, subprocess.TimeoutExpired):
        return None


def machine(build):
    """Where results come from, as every document of the benchmark says it."""
    return json.loads(output_of(os.path.join(os.path.abspath(build), "tslab_bench"), "--machine") or "{}")


def utc():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def write_json(path, value):
    with open(path + ".new", "w", encoding="utf-8") as to:
        json.dump(value, to, indent=2)
        to.write("\n")
    os.replace(path + ".new", path)


def rename_rows(path, name):
    """The programs write "malloc"; which one it was is known here."""
    if not os.path.exists(path):
        return
    with open(path, encoding="utf-8") as lines:
        text = lines.readlines()
    with open(path, "w", encoding="utf-8") as to:
        to.writelines(name + line[len("malloc"):] if line.startswith("malloc,") else line for line in text)


def report_of(command, allocator, tslab_options=None):
    """Runs a program under an allocator: its report, exit status, and the error or None."""
    environment = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "TSLAB_OPTIONS")}
    if allocator.preload:
        environment["LD_PRELOAD"] = allocator.preload
    if tslab_options:
        environment["TSLAB_OPTIONS"] = tslab_options
    report = error = None
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        try:
            text, errors = child.communicate(timeout=TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            text, errors = child.communicate()
            error = f"took over {TIMEOUT_SECONDS} s"
        except BaseException:
            child.kill()
            raise
    if error is None and "cannot be preloaded" in errors:
        error = "the library was not preloaded"
    if error is None and child.returncode != 0:
        error = errors.strip().splitlines()[-1] if errors.strip() else f"status {child.returncode}"
    try:
        report = json.loads(text)
    except ValueError:
        error = error or "its report is no JSON"
    return report, child.returncode, error


def run_once(name, allocator, repetition, options):
    words = PROGRAMS[name]
    rows = os.path.join(options.out, "csv", f"{name}.{allocator.name}.{repetition}.csv")
    more = {"full": FULL.get(name, []), "quick": QUICK.get(name, []), "smoke": ["--quick"]}[options.form]
    shown = [words[0], *words[1:], *more, "--allocator", allocator.word, "--seed", str(options.seed), "--json"]
    command = [os.path.join(options.build, "suite", words[0]), *shown[1:], f"--csv={rows}"]
    result = {"program": name, "allocator": allocator.name, "allocator_version": allocator.version,
              "repetition": repetition, "preload": allocator.preload,
              "command": [*shown, f"--csv={os.path.basename(rows)}"], "options": OPTIONS.get(name),
              "load_average": os.getloadavg()[0]}
    start = time.monotonic()
    result["report"], result["status"], result["error"] = report_of(command, allocator, OPTIONS.get(name))
    result["seconds"] = round(time.monotonic() - start, 3)
    rename_rows(rows, allocator.name)
    return result


def numbers(report, prefix=""):
    """Every number of a report with its path; entries of lists are named by what tells them apart."""
    if isinstance(report, bool) or report is None:
        return
    if isinstance(report, (int, float)):
        yield prefix, report
    elif isinstance(report, dict):
        for key, value in report.items():
            if key not in ("arguments", "seed", "histogram"):
                yield from numbers(value, f"{prefix}.{key}" if prefix else key)
    elif isinstance(report, list):
        for i, entry in enumerate(report):
            names = [str(entry[key]) for key in ("policy", "recycling", "threads", "cycle", "requested")
                     if isinstance(entry, dict) and key in entry]
            yield from numbers(entry, f"{prefix}[{':'.join(names) or i}]")


def write_summary(path, results):
    """One line for each number: medians over repetitions, ratios to glibc of the same repetition."""
    values = {}  # (program, metric) -> allocator -> repetition -> value
    for r in results:
        for metric, value in numbers(r["report"]) if r["error"] is None else ():
            values.setdefault((r["program"], metric), {}).setdefault(r["allocator"], {})[r["repetition"]] = value
    with open(path, "w", encoding="utf-8", newline="") as to:
        out = csv.writer(to, lineterminator="\n")
        out.writerow(["program", "metric", "allocator", "repetitions", "median", "least", "most", "ratio_to_glibc"])
        for (program, metric), by_allocator in values.items():
            glibc = by_allocator.get("glibc", {})
            for allocator, by_repetition in by_allocator.items():
                v = list(by_repetition.values())
                ratios = [x / glibc[k] for k, x in by_repetition.items() if glibc.get(k)]
                ratio = f"{statistics.median(ratios):.4f}" if ratios else ""
                out.writerow([program, metric, allocator, len(v), statistics.median(v), min(v), max(v), ratio])


def pick(kind, asked, known):
    for word in asked or ():
        if word not in known:
            close = difflib.get_close_matches(word, known, 1)
            hint = f"did you mean {close[0]}?" if close else "there are: " + ", ".join(known)
            print(f"run.py: there is no {kind} '{word}'; {hint}", file=sys.stderr)
            sys.exit(2)
    return [k for k in known if not asked or k in asked]


def parse():
    p = argparse.ArgumentParser(description="Runs the comparison suite.", allow_abbrev=False)
    p.add_argument("--only", nargs="+", metavar="NAME", help="these programs: " + ", ".join(PROGRAMS))
    p.add_argument("--allocators", nargs="+", metavar="NAME", help="these allocators")
    p.add_argument("--reps", type=int, metavar="N",
                   help="repetitions (default: 7, of %s 3; with --quick 3, with --smoke 1)" % " and ".join(FEWER))
    form = p.add_mutually_exclusive_group()
    form.add_argument("--quick", action="store_true", help="less work where a run takes long, 3 repetitions: a quarter of an hour on two free processors")
    form.add_argument("--smoke", action="store_true", help="next to no work: whether everything runs")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--build", default=os.path.join(ROOT, "build", "bench"), help="build directory (default: build/bench)")
    p.add_argument("--peers", default=os.path.join(ROOT, "build", "peers", "peers.tsv"), help="list of peers")
    p.add_argument("--out", help="output directory (default: build/suite-results/TIME)")
    options = p.parse_args()
    options.form = "quick" if options.quick else "smoke" if options.smoke else "full"
    options.fewer = FEWER if options.reps is None and options.form == "full" else {}
    options.reps = options.reps if options.reps is not None else FORMS[options.form]
    if not 1 <= options.reps <= 1000:
        p.error("--reps takes a number from 1 to 1000")
    options.out = options.out or os.path.join(ROOT, "build", "suite-results", time.strftime("%Y%m%d-%H%M%S"))
    return options


def run_all(options, names, allocators, results, to):
    plan = [(repetition, name, allocators[(k + repetition) % len(allocators)]) for repetition in range(options.reps) for name in names
            for k in range(len(allocators)) if repetition < options.fewer.get(name, options.reps)]
    plan = [step for step in plan if step[1] not in OPTIONS or step[2].name == "tslab"]
    start = time.monotonic()
    for done, (repetition, name, allocator) in enumerate(plan, 1):
        result = run_once(name, allocator, repetition, options)
        results.append(result)
        to.write(json.dumps(result) + "\n")
        to.flush()
        left = (time.monotonic() - start) / done * (len(plan) - done)
        print(f"[{done}/{len(plan)}] {name} {allocator.name}: {result['error'] or 'ok'}, "
              f"{result['seconds']:.1f} s; about {left:.0f} s left", file=sys.stderr)


def main():
    options = parse()
    names = pick("program", options.only, list(PROGRAMS))
    program = os.path.join(options.build, "suite", "churn_fixed")
    version = output_of(program, "--version")
    facts = machine(options.build)
    if version is None or not facts:
        print(f"run.py: no programs in {options.build}: cmake --preset bench && cmake --build --preset bench",
              file=sys.stderr)
        return 2
    known, missing = read_peers(options.peers, version.split()[-1])
    wanted = pick("allocator", options.allocators, [a.name for a in known])
    allocators = [a for a in known if a.name in wanted]
    for peer, reason in missing.items():
        print(f"missing: {peer}: {reason}", file=sys.stderr)
    os.makedirs(os.path.join(options.out, "csv"), exist_ok=True)
    head = {"program": "suite", "format": 2, "date": utc(), "form": options.form, "complete": False, **facts,
            "command": " ".join(["run.py", *sys.argv[1:]]), "repetitions": options.reps, "seed": options.seed,
            "programs": names, "allocators": [{"name": a.name, "version": a.version, "kind": a.kind, "preload": a.preload} for a in allocators],
            "missing": missing}
    results, interrupted, others, start = [], False, busy_seconds(), time.monotonic()
    write_json(os.path.join(options.out, "run.json"), head)
    with open(os.path.join(options.out, "results.jsonl"), "w", encoding="utf-8") as to:
        try:
            run_all(options, names, allocators, results, to)
        except KeyboardInterrupt:
            interrupted = True
            print(f"\ninterrupted after {len(results)} runs; they are kept", file=sys.stderr)
    failures = [f"{r['program']} {r['allocator']}: {r['error']}" for r in results if r["error"]]
    head["others_busy"] = None if others is None else round(max(busy_seconds() - others, 0) / (time.monotonic() - start), 3)
    head["seconds"] = round(time.monotonic() - start)
    head.update(complete=not interrupted, finished=utc(), runs=len(results), failures=failures)
    write_json(os.path.join(options.out, "run.json"), head)
    write_summary(os.path.join(options.out, "summary.csv"), results)
    print(f"{len(results)} runs, {len(failures)} failed; results in {options.out}")
    for failure in failures:
        print(f"failed: {failure}")
    return 130 if interrupted else 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
