#!/usr/bin/env python3
"""Runs programs that know nothing of temporal-slab under its preload library, glibc's malloc and the peers that are there.

Nine programs of the goals, PHP, Python's own tests of json, dict and threading, three servers under load, redis, nginx and
PostgreSQL (bench/programs/servers.py), and small programs that do little but allocate, in the manner of those of mimalloc-bench
(like-..., bench/programs/patterns.c). Each program has an input of a second or more, in the tree or made here (under build/programs). Its repetitions are
interleaved: each allocator runs before one runs again, and the order turns. Output and exit code must be those that it
has under glibc; a crash or a difference is a failed row, and its figures count for nothing.

Measured are wall time, processor time, most resident bytes of any process of the run (peak), resident bytes of the
largest as it exits (final) and page faults (bench/programs/measure.c). A figure of an allocator is the median of its
ratios to glibc, each to the run of the same turn.

Goals of the preload library, which --goals judges: over the first nine programs a geometric mean of at most 0.90 of glibc's wall
time, 1.05 of its peak and 1.20 of its page faults; no program above 1.05 of its wall time, or 1.20 of its peak. A program
whose ratios lie on both sides of a limit is not judged by it. Redis, a minute after FLUSHALL, holds 60 MiB at most.

Exit status: 0; 1 a run failed, or with --goals one is missed; 2 wrong arguments, or nothing to run; 130 interrupted.
"""
import argparse
import hashlib
import json
import math
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time

import servers

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PLACE = os.path.join(ROOT, "build", "programs")
LIBRARY = "libtemporal_slab_preload.so"
PEERS = ("jemalloc", "mimalloc", "tcmalloc", "snmalloc")
FIGURES = ("wall", "cpu", "peak", "final", "faults")
GOALS = {"wall": (0.90, 1.05), "peak": (1.05, 1.20), "faults": (1.20, None)}  # of the geometric mean, of each program
TIMEOUT_SECONDS = 600
OPTIONS = ""  # TSLAB_OPTIONS of the preload library


# ---- inputs: the same whenever they are made ----

def write(name, lines):
    path = os.path.join(PLACE, name)
    if not os.path.exists(path):
        with open(path + ".new", "w", encoding="utf-8") as out:
            out.writelines(lines)
        os.rename(path + ".new", path)
    return path


def sql():
    yield "pragma journal_mode=off; pragma synchronous=off; create table t(a integer primary key, b text, c real, d text);\n"
    yield ("with recursive n(i) as (select 1 union all select i + 1 from n where i < 250000) "
           "insert into t select i, hex(i * 7919 % 1000003), i / 3.0, printf('%d-%s', i, hex(i)) from n;\n")
    yield "create index j on t(b); create index k on t(d, c);\n"
    for n in range(6):
        yield (f"select count(*), max(length(d)), round(sum(c), 2) from (select b, d, c from t where a % 7 = {n} "
               "union all select b, d, c from t order by b desc limit 60000);\n")
    yield "select b, count(*) from t group by substr(b, 1, 3) order by 2 desc, 1 limit 5;\n"
    yield "update t set d = d || 'x' where a % 3 = 0; delete from t where a % 5 = 0; select count(*) from t; pragma integrity_check;\n"


def c_source():
    yield "#include <stddef.h>\ntypedef struct Node { struct Node *left, *right; int key, count; char name[24]; } Node;\n"
    for n in range(200):
        yield (f"static int step{n}(const Node* p, int x) {{ int s = {n}; for (int i = 0; i < x; i++) {{ switch ((p->key + i) % 7) {{ "
               f"case 0: s += p->name[i % 24] * {n % 13}; break; case 1: s ^= i << {n % 9}; break; case 2: if (p->left) s -= p->left->key; break; "
               f"case 3: s = s * 31 + p->count; break; default: s += x - {n % 17}; }} }} return s; }}\n"
               f"int run{n}(Node* p) {{ int s = 0; while (p) {{ s += step{n}(p, p->count & 63); p = s & 1 ? p->left : p->right; }} return s; }}\n")


def documents():
    yield "["
    for n in range(90000):
        yield (f'{", " if n else ""}{{"id": {n}, "name": "name {n % 7919}", "tags": ["t{n % 31}", "u{n % 17}"], "value": {n * 7 % 1001 / 4}, '
               f'"more": {{"a": {n % 11}, "b": "{"x" * (n % 40)}"}}}}\n')
    yield "]\n"


def text():
    state = 1
    words = [f"word{n * 7919 % 4001}" for n in range(4001)]
    for _ in range(60000):
        line = []
        for _ in range(8):
            state = (state * 1103515245 + 12345) & 0x7FFFFFFF
            line.append(words[state >> 8 & 1023 if state & 3 else state >> 8 & 3999])
        yield " ".join(line) + "\n"


def repository():
    """A repository with loose objects: what `git gc` works on, each run on a copy of its own."""
    path = os.path.join(PLACE, "repository")
    if os.path.exists(os.path.join(path, "done")):
        return path
    shutil.rmtree(path, ignore_errors=True)
    who = {"GIT_AUTHOR_DATE": "1700000000 +0000", "GIT_COMMITTER_DATE": "1700000000 +0000"}
    for role in ("AUTHOR", "COMMITTER"):
        who.update({f"GIT_{role}_NAME": "somebody", f"GIT_{role}_EMAIL": "somebody@example.org"})
    git = ["git", "-C", path, "-c", "gc.auto=0"]

    def run(*words):
        subprocess.run(git + list(words), check=True, env=os.environ | who, stdout=subprocess.DEVNULL)

    os.makedirs(path)
    run("init", "-q", "-b", "main")
    state = 7
    for commit in range(24):
        for number in range(40):
            with open(os.path.join(path, f"file{number}"), "w", encoding="utf-8") as out:
                for line in range(300):
                    if line % 60 == commit % 60:
                        state = (state * 1103515245 + 12345) & 0x7FFFFFFF
                    out.write(f"line {line} of {number}: {state if line % 60 <= commit else line * number}\n")
        run("add", ".")
        run("commit", "-q", "-m", f"number {commit}")
    open(os.path.join(path, "done"), "w", encoding="utf-8").close()
    return path


def image():
    path = os.path.join(PLACE, "image.ppm")
    if not os.path.exists(path):
        with open(path + ".new", "wb") as out:
            width, height, state = 1600, 1200, 3
            out.write(b"P6 %d %d 255\n" % (width, height))
            for y in range(height):
                row = bytearray()
                for x in range(width):
                    state = (state * 1103515245 + 12345) & 0x7FFFFFFF
                    row += bytes((x * 255 // width, (x ^ y) & 255, (y + (state >> 20 & 31)) & 255))
                out.write(row)
        os.rename(path + ".new", path)
    return path


# ---- programs ----

class Program:
    """command: words, made when it is to run; before: what is done before each run, not measured."""

    def __init__(self, name, needs, command, before=None, environment=None):
        self.name, self.needs, self.command, self.before, self.environment = name, needs, command, before, environment or {}


def copy_of_repository():
    shutil.rmtree(os.path.join(PLACE, "copy"), ignore_errors=True)
    shutil.copytree(repository(), os.path.join(PLACE, "copy"))


def given(name):
    return os.path.join(HERE, "inputs", name)


def real_python():
    """The interpreter itself, not what a version manager has put in its place."""
    return os.path.realpath(sys.executable)


def compiler():
    return subprocess.run(["gcc", "-print-prog-name=cc1"], capture_output=True, text=True, check=True).stdout.strip()


def imagemagick():
    for name in ("/usr/bin/convert", "convert", "magick"):
        path = shutil.which(name)
        said = path and subprocess.run([path, "-version"], capture_output=True, text=True, check=False).stdout
        if said and said.startswith("Version: ImageMagick"):
            return path
    return None


def tests_of_python():
    return "%s -m test -q test_json test_dict test_threading 2>&1 | grep -E '^(Total tests|Result)'" % real_python()


PROGRAMS = [
    Program("python", "python3", lambda: [real_python(), given("work.py")], environment={"PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0"}),
    Program("perl", "perl", lambda: ["perl", given("work.pl")], environment={"PERL_HASH_SEED": "0"}),
    Program("sqlite", "sqlite3", lambda: ["sqlite3", ":memory:", f".read {write('work.sql', sql())}"]),
    Program("gcc", "gcc", lambda: [compiler(), "-quiet", "-O2", write("work.c", c_source()), "-o", "-"]),
    Program("jq", "jq", lambda: ["jq", "-c", "group_by(.name) | map({name: .[0].name, n: length, tags: (map(.tags[]) | unique), "
                                 "sum: (map(.value) | add)}) | sort_by(-.sum) | .[0:50]", write("work.json", documents())]),
    Program("lua", "lua5.4", lambda: ["lua5.4", given("work.lua")]),
    Program("xz", "xz", lambda: ["xz", "-5", "-T1", "-k", "-c", write("work.txt", text())]),
    Program("git", "git", lambda: ["sh", "-c", "git -c pack.threads=1 gc -q --aggressive && git count-objects -v && git log --stat | cksum"],
            before=copy_of_repository, environment={"GIT_DIR": os.path.join(PLACE, "copy", ".git")}),
    Program("convert", None, lambda: [imagemagick(), image(), "-blur", "0x3", "-resize", "70%", "-rotate", "7", "-quantize", "Lab",
                                      "-colors", "64", "ppm:-"]),
]
OTHERS = [
    Program("php", "php", lambda: ["php", "-d", "memory_limit=-1", given("work.php")], environment={"USE_ZEND_ALLOC": "0"}),
    Program("pytests", "python3", lambda: ["sh", "-c", tests_of_python()], environment={"PYTHONMALLOC": "malloc"}),
]
PATTERNS = ("larson", "alloc-test", "cache-scratch", "xmalloc", "simple", "threads", "rptest", "mstress", "sh6", "sh8", "cfrac", "espresso")
percent_of_patterns = 100  # of their usual work


def pattern(name):
    return Program("like-" + name, None, lambda: [os.path.join(PLACE, "patterns"), name, str(percent_of_patterns)])


OTHERS += [pattern(name) for name in PATTERNS]
SERVERS = [servers.Redis, servers.Nginx, servers.Postgres]
IDLE_LIMIT = 60 << 20  # resident bytes of redis after its rest


def missing(program):
    if isinstance(program, tuple(SERVERS)):
        gone = [name for name in program.needs if not servers.where(name)]
        return f"{', '.join(gone)} not installed" if gone else None
    if program.name == "pytests":
        there = subprocess.run([real_python(), "-c", "import test.test_json, test.test_dict, test.test_threading"], capture_output=True, check=False)
        return None if there.returncode == 0 else "this Python has no tests of its own"
    if program.name == "convert":
        return None if imagemagick() else "ImageMagick is not installed"
    return None if program.needs is None or shutil.which(program.needs) else f"{program.needs} is not installed"


# ---- allocators ----

def library():
    for build in ("bench", "install", "gcc-release"):
        path = os.path.join(ROOT, "build", build, LIBRARY)
        if os.path.exists(path):
            return path
    return None


def allocators(asked):
    """Name -> what is preloaded, and what is missing: name -> reason."""
    found, gone = {"glibc": "-", "tslab": library()}, {}
    listed = {}
    path = os.path.join(ROOT, "build", "peers", "peers.tsv")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                name, _, _, preload, reason = (line.rstrip("\n").split("\t") + [""] * 5)[:5]
                listed[name] = (preload, reason)
    for name in PEERS:
        preload, reason = listed.get(name, ("-", "scripts/get-peers.sh has not fetched it"))
        if preload != "-" and all(os.path.exists(part) for part in preload.split(":")):
            found[name] = preload
        else:
            gone[name] = reason or "its library is gone"
    if found["tslab"] is None:
        sys.exit(f"run.py: no {LIBRARY} under build/: make programs builds it")
    for name in asked:
        if name not in found:
            sys.exit(f"run.py: no allocator {name}: {gone.get(name, 'there are ' + ' '.join(found))}")
    return {name: preload for name, preload in found.items() if not asked or name in asked or name == "glibc"}, gone


# ---- running ----

def surroundings(more):
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("LD_PRELOAD", "TSLAB_OPTIONS", "MALLOC_CONF", "GLIBC_TUNABLES", "MALLOC_ARENA_MAX")}
    return environment | {"LC_ALL": "C.UTF-8", "HOME": PLACE, "GIT_CONFIG_NOSYSTEM": "1"} | more


def measured(report):
    with open(report, encoding="utf-8") as text_of:
        code, wall, cpu, peak, final, faults = text_of.read().split()
    return int(code), {"wall": float(wall), "cpu": float(cpu), "peak": int(peak), "final": int(final), "faults": int(faults)}


def run_server(program, preload):
    report = os.path.join(PLACE, "report")
    if os.path.exists(report):
        os.remove(report)
    if preload == "-" and program.shim:
        preload = os.path.join(PLACE, "libc_malloc.so")
    environment = surroundings({"TSLAB_OPTIONS": OPTIONS} if OPTIONS else {})
    more, out, why = servers.run(program, os.path.join(PLACE, "measure"), report, preload, environment)
    if why is not None:
        return None, why
    if not os.path.exists(report):
        return None, "measure has reported nothing"
    code, figures = measured(report)
    return {"figures": figures | more, "code": code, "output": hashlib.sha256(out).hexdigest()[:16], "bytes": len(out), "messages": ""}, None


def run_once(program, preload):
    """Figures, output and exit code of a run; or None and a reason."""
    if isinstance(program, tuple(SERVERS)):
        return run_server(program, preload)
    report = os.path.join(PLACE, "report")
    environment = surroundings(program.environment)
    if program.before:
        program.before()
    if os.path.exists(report):
        os.remove(report)
    command = [os.path.join(PLACE, "measure"), report, preload] + program.command()
    try:
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return None, f"took more than {TIMEOUT_SECONDS} s"
    if not os.path.exists(report):
        return None, f"measure: {done.stderr.decode(errors='replace').strip()[-200:]}"
    code, figures = measured(report)
    said = hashlib.sha256(done.stdout).hexdigest()[:16]
    return {"figures": figures, "code": code, "output": said, "bytes": len(done.stdout),
            "messages": done.stderr.decode(errors="replace")[-300:]}, None


def compare(run, reference):
    """What differs from glibc's run; None: nothing."""
    if run["code"] != reference["code"]:
        return f"exit code {run['code']} instead of {reference['code']}: {run['messages'].strip()[-200:]}"
    if run["output"] != reference["output"]:
        return f"other output: {run['bytes']} bytes, {reference['bytes']} under glibc"
    if run["messages"] != reference["messages"]:
        return f"other messages: {run['messages'].strip()[-200:]}"
    return None


def run_program(program, those, repetitions, failures):
    """Turn by turn: allocator -> figures of each; those that failed have none."""
    results = {name: [] for name in those}
    names = list(those)
    failed = set()
    reference = None
    for turn in range(repetitions):
        order = names[turn % len(names):] + names[:turn % len(names)]
        if turn == 0:
            order = ["glibc"] + [name for name in names if name != "glibc"]
        for name in order:
            if name in failed:
                continue
            run, why = run_once(program, those[name])
            if run is not None and name == "glibc":
                reference = reference or run
            why = why or compare(run, reference)
            if why is not None:
                failures.append(f"{program.name} under {name}: {why}")
                failed.add(name)
                if name == "glibc":
                    return {}
                continue
            results[name].append(run["figures"])
    return {name: rows for name, rows in results.items() if name not in failed}


def ratios(results, name, figure):
    return [row[figure] / max(base[figure], 1e-9) for row, base in zip(results[name], results["glibc"])]


def geometric_mean(numbers):
    return math.exp(sum(math.log(n) for n in numbers) / len(numbers))


# ---- saying ----

def table(all_results, those):
    """The median ratios to glibc of each program, and their geometric means."""
    for figure in FIGURES:
        print(f"\n{figure}, relative to glibc")
        print(f"{'':10}{'glibc':>12}" + "".join(f"{name:>10}" for name in those if name != "glibc"))
        columns = {name: [] for name in those}
        for program, results in all_results.items():
            base = statistics.median(row[figure] for row in results["glibc"])
            shown = f"{base:.2f} s" if figure in ("wall", "cpu") else f"{base / 2 ** 20:.1f} MiB" if figure != "faults" else f"{base:.0f}"
            line = f"{program:10}{shown:>12}"
            for name in those:
                if name == "glibc":
                    continue
                if name not in results:
                    line += f"{'failed':>10}"
                    continue
                ratio = statistics.median(ratios(results, name, figure))
                columns[name].append(ratio)
                line += f"{ratio:>10.2f}"
            print(line)
        print(f"{'mean':10}{'':>12}" + "".join(f"{geometric_mean(columns[name]):>10.2f}" if len(columns[name]) == len(all_results) else f"{'-':>10}"
                                               for name in those if name != "glibc"))
    for program, results in all_results.items():
        if "idle" in results["glibc"][0]:
            print(f"\n{program}, resident MiB loaded and at rest: " + "; ".join(
                f"{name} {statistics.median(r['loaded'] for r in rows) / 2 ** 20:.1f}, {statistics.median(r['idle'] for r in rows) / 2 ** 20:.1f}"
                for name, rows in results.items()))


def verdict(all_results):
    """Lines, and whether one is a miss."""
    lines, missed = [], False
    for figure, (mean_limit, each_limit) in GOALS.items():
        nine = {p.name for p in PROGRAMS}
        medians = {p: statistics.median(ratios(r, "tslab", figure)) for p, r in all_results.items() if "tslab" in r and p in nine}
        if not medians:
            return ["nothing to judge"], True
        mean = geometric_mean(list(medians.values()))
        bad = mean > mean_limit or len(medians) != len(PROGRAMS)
        missed |= bad
        lines.append(f"{figure}: geometric mean of {len(medians)} programs {mean:.3f}, at most {mean_limit:.2f}: {'MISSED' if bad else 'reached'}")
        for program, median in medians.items() if each_limit else ():
            all_of_it = ratios(all_results[program], "tslab", figure)
            if min(all_of_it) <= each_limit < max(all_of_it):
                lines.append(f"  {program}: {median:.3f}, from {min(all_of_it):.3f} to {max(all_of_it):.3f}: not judged by {each_limit:.2f}")
            elif median > each_limit:
                missed = True
                lines.append(f"  {program}: {median:.3f}, at most {each_limit:.2f}: MISSED")
    for row in all_results.get("redis", {}).get("tslab", [])[:1]:
        bad = row["idle"] > IDLE_LIMIT
        missed |= bad
        lines.append(f"redis at rest: {row['idle'] / 2 ** 20:.1f} MiB, at most {IDLE_LIMIT >> 20}: {'MISSED' if bad else 'reached'}")
    return lines, missed


def machine():
    """What pages of results say of a run: the commit, the day and the machine."""
    done = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=False)
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        processor = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "?")
    return {"commit": done.stdout.strip() or "?", "date": time.strftime("%Y-%m-%d", time.gmtime()), "kernel": platform.release(),
            "libc": " ".join(platform.libc_ver()), "processor": processor, "cpus": os.cpu_count()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reps", type=int, default=7, help="repetitions (7)")
    parser.add_argument("--program", action="append", default=[], help="run this one; may be given again")
    parser.add_argument("--allocator", action="append", default=[], help="run under this one and glibc; may be given again")
    parser.add_argument("--options", default="", help="TSLAB_OPTIONS of the preload library")
    parser.add_argument("--idle", type=float, default=60, help="seconds that redis rests after FLUSHALL (60)")
    parser.add_argument("--small", action="store_true", help="little load for servers and patterns, to see that they run")
    parser.add_argument("--json", metavar="FILE", help="write every figure there")
    parser.add_argument("--goals", action="store_true", help="judge the goals")
    o = parser.parse_args()
    if o.options:
        global OPTIONS
        OPTIONS = o.options
    if o.small:
        global percent_of_patterns
        percent_of_patterns = 2
    all_programs = PROGRAMS + OTHERS + [kind(PLACE, o.idle, o.small) for kind in SERVERS]
    known = [p.name for p in all_programs]
    for name in o.program:
        if name not in known:
            parser.error(f"no program {name}; there are {' '.join(known)}")
    if o.reps < 1:
        parser.error("--reps takes 1 or more")
    os.makedirs(PLACE, exist_ok=True)
    subprocess.run(["cc", "-std=gnu11", "-O2", os.path.join(HERE, "measure.c"), "-o", os.path.join(PLACE, "measure")], check=True)
    subprocess.run(["cc", "-std=gnu11", "-O2", "-shared", "-fPIC", "-fno-builtin", os.path.join(HERE, "libc_malloc.c"), "-o",
                    os.path.join(PLACE, "libc_malloc.so")], check=True)
    subprocess.run(["cc", "-std=gnu11", "-O2", "-fno-builtin", "-pthread", os.path.join(HERE, "patterns.c"), "-o", os.path.join(PLACE, "patterns")], check=True)
    those, gone = allocators(o.allocator)
    for name, reason in gone.items():
        if not o.allocator:
            print(f"without {name}: {reason}")
    load = os.getloadavg()[0]
    print(f"{platform.node()}: {os.cpu_count()} processors, load {load:.1f}, {platform.libc_ver()[0]} {platform.libc_ver()[1]}, {o.reps} repetitions")
    if load > 0.5:
        print("the machine does other work meanwhile: times are not to be relied on")
    failures, all_results, skipped = [], {}, []
    for program in all_programs:
        if o.program and program.name not in o.program:
            continue
        reason = missing(program)
        if reason:
            skipped.append(f"{program.name}: {reason}")
            continue
        print(f"{program.name} ...", end=" ", flush=True)
        if o.options and isinstance(program, Program):
            program.environment["TSLAB_OPTIONS"] = o.options  # nobody else reads it
        results = run_program(program, those, o.reps, failures)
        print(f"{statistics.median(row['wall'] for row in results['glibc']):.2f} s" if results.get("glibc") else "failed", flush=True)
        if results.get("glibc"):
            all_results[program.name] = results
    for line in skipped:
        print(f"left out: {line}")
    if all_results:
        table(all_results, those)
    missed = False
    if o.goals:
        lines, missed = verdict(all_results)
        print("\n" + "\n".join(lines))
    for line in failures:
        print(f"FAILED: {line}")
    if o.json:
        with open(o.json, "w", encoding="utf-8") as out:
            json.dump({"program": "bench/programs", "format": 1, "load": load, "cpus": os.cpu_count(), "repetitions": o.reps,
                       "left_out": skipped, "failures": failures, "results": all_results}, out, indent=1)
            out.write("\n")
    if not all_results:
        return 2
    return 1 if failures or missed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
