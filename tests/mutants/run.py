#!/usr/bin/env python3
"""Breaks the library on purpose, one small patch at a time, and says whether the tests that should notice do.

  run.py [options] [PATTERN...]   only mutants whose name matches one of these regular expressions
    -j N, --jobs N    so many at a time (default: number of processors)
    --check           builds nothing: each file can be read and applies to the sources; what `ctest -R law/mutants` runs
    --list            names them, and what each is about
    --again           forgets earlier results of those that it runs
    --all             where no named test notices, asks every unit, contract and misuse program, and says which do
    --limit SECONDS   of one test (default 400); a test that takes longer has noticed

A mutant is a file NAME.mutant beside this one:

  why: what breaks, and what that would do. Goes on in lines that begin with a blank.
  tests: unit/test_sweep contract/shared_epochs      in this order; the first that fails ends it
  build: release                                     optional; debug (-O1, assertions on) when it is not there
  @file src/heap/sweep.c
  @old
  text that the file has exactly once
  @new
  text that takes its place
  @end                                               more of @file ... @end may follow

Each is a copy of src and include with the patch under build/mutants; only what depends on the patched files is compiled, beside one
build of the unpatched tree. Results are kept there, too, by what the patch and the sources say: a run that was
interrupted goes on where it was.

Exit code: 0 when all are caught, 1 when one survives, 2 when one does not apply, does not compile or cannot be judged.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time

BUILDS = {
    "debug": ["-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_C_FLAGS=-O1 -g0 -w"],
    "release": ["-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_C_FLAGS=-w"],
}
COPIED = ["CMakeLists.txt", "cmake", "common", "daemon", "include", "src", "tests"]
OUTPUT_MAX = 64 << 20
children, children_lock, stopping = set(), threading.Lock(), threading.Event()


class Broken(Exception):
    """A mutant that cannot be judged, and why."""


class Interrupted(Exception):
    pass


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def read_bytes(path):
    with open(path, "rb") as f:
        return f.read()


def write_whole(path, text):
    """Never half a file, and never through a hard link into another tree."""
    with open(path + ".new", "w", encoding="utf-8") as f:
        f.write(text)
    os.replace(path + ".new", path)


# ---- the files ----

class Mutant:
    def __init__(self, path):
        self.name = os.path.basename(path)[: -len(".mutant")]
        self.text = read(path)
        self.edits = []  # (file, old, new)
        head, *parts = re.split(r"^@file ", self.text, flags=re.M)
        fields = {key: " ".join(value.split()) for key, value in re.findall(r"^(\S+):((?:.*\n)(?:[ \t]+.*\n)*)", head, flags=re.M)}
        unknown = set(fields) - {"why", "tests", "build"}
        if unknown or re.sub(r"^\S+:.*\n(?:[ \t]+.*\n)*", "", head, flags=re.M).strip():
            raise Broken(f"its head has more than why, tests and build: {', '.join(unknown) or 'other lines'}")
        self.why, self.tests, self.build = fields.get("why", ""), fields.get("tests", "").split(), fields.get("build", "debug")
        for part in parts:
            match = re.fullmatch(r"(\S+)\n@old\n(.*?)\n@new\n(.*?)\n?@end\s*", part, flags=re.S)
            if match is None:
                raise Broken("no @file, @old, @new and @end in this order")
            self.edits.append(match.groups())
        if not self.why or not self.tests or not self.edits:
            raise Broken("it needs why, tests and a change")
        if self.build not in BUILDS:
            raise Broken(f"no build is called {self.build}; there are {', '.join(BUILDS)}")

    def apply(self, root):
        """The patched files: path below root -> text."""
        now = {}
        for file, old, new in self.edits:
            if not file.startswith(("src/", "include/")) or not os.path.isfile(os.path.join(root, file)):
                raise Broken(f"there is no {file} in src or include")
            text = now.get(file) or read(os.path.join(root, file))
            n = text.count(old)
            if n != 1:
                raise Broken(f"{file} has its old text {n} times instead of once: {old.strip().splitlines()[0].strip()[:90]}")
            if old == new:
                raise Broken(f"{file}: the new text is the old one")
            now[file] = text.replace(old, new)
        return now

    def check(self, root):
        for test in self.tests:
            if not os.path.isfile(os.path.join(root, program_of(test)[0])):
                raise Broken(f"there is no test {test}")
        self.apply(root)


def program_of(test):
    """(source, target, environment) of a test as ctest names it."""
    folder, _, name = test.partition("/")
    environment = {}
    for prefix, options in ("shared_", "shared=1"), ("classes_", "bump=3"):
        if name.startswith(prefix) and folder != "model":
            name, environment = name[len(prefix):], {"TSLAB_OPTIONS": options}
    if name in ("test_between", "test_ended_steps", "test_lane", "test_lent"):
        environment = {**environment, "TSLAB_TEST_SCALE": "3"} # everywhere
    return f"tests/{folder}/{name}.c", f"{folder}_{name}", environment


def load(folder, patterns):
    """(mutants, errors by name)"""
    mutants, errors = [], {}
    for file in sorted(os.listdir(folder)):
        name, dot, _ = file.partition(".mutant")
        if not dot or (patterns and not any(re.search(p, name) for p in patterns)):
            continue
        try:
            mutants.append(Mutant(os.path.join(folder, file)))
        except (Broken, UnicodeDecodeError) as why:
            errors[name] = str(why)
    return mutants, errors


# ---- commands ----

def limit_child():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (OUTPUT_MAX, OUTPUT_MAX))


def kill(child):
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def wait(child, seconds, log, until):
    """Exit status; None at the time limit; 1 as soon as the log has what `until` looks for."""
    end = None if seconds is None else time.monotonic() + seconds
    while True:
        try:
            return child.wait(None if end is None else min(0.5, max(0, end - time.monotonic())))
        except subprocess.TimeoutExpired:
            if until is not None and until.search(said_in(log)):
                return 1
            if time.monotonic() >= end:
                return None


def command(args, cwd, log, seconds=None, until=None, environment=None):
    """As wait. What it says goes to the file `log`. Its whole group of processes ends."""
    with open(log, "w", encoding="utf-8") as out, children_lock:
        if stopping.is_set():
            raise Interrupted
        child = subprocess.Popen(args, cwd=cwd, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True,
                                 preexec_fn=limit_child, env={**os.environ, **(environment or {})})
        children.add(child)
    try:
        status = wait(child, seconds, log, until)
    finally:
        kill(child)
        child.wait()
        with children_lock:
            children.discard(child)
    if stopping.is_set():
        raise Interrupted
    return status


def stop_all():
    stopping.set()
    with children_lock:
        for child in children:
            kill(child)


def said_in(log):
    return read_bytes(log).decode("utf-8", "replace")


def tail(log, lines=12):
    return "\n".join("    " + line for line in said_in(log).splitlines()[-lines:])


FAILED = re.compile(r"^ *FAILED: (\w+)|^FAILED (?:\S*/)?(.*)", re.M)


def complaint(log, status):
    """What a test that failed says of it, in one line: the case, and the signal that ended it."""
    text = said_in(log)
    case = FAILED.search(text)
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [""]
    said = next(filter(None, case.groups())) if case else lines[-1]
    return (said[:90] + (f" ({signal.Signals(-status).name})" if status < 0 else "")).strip()


# ---- the unpatched tree ----

class Tree:
    """A copy of the sources; in step with the original by content, so that little is compiled anew."""

    def __init__(self, source, work):
        self.root, self.work = os.path.join(work, "tree"), work
        self.hashes = {}
        for path in self.wanted(source):
            text, copy = read_bytes(os.path.join(source, path)), os.path.join(self.root, path)
            self.hashes[path] = hashlib.sha256(text).hexdigest()
            if not os.path.exists(copy) or read_bytes(copy) != text:
                os.makedirs(os.path.dirname(copy), exist_ok=True)
                shutil.copyfile(os.path.join(source, path), copy)
        for path in self.wanted(self.root):
            if path not in self.hashes:
                os.unlink(os.path.join(self.root, path))

    @staticmethod
    def wanted(source):
        for top in COPIED:
            if os.path.isfile(os.path.join(source, top)):
                yield top
            for folder, folders, files in os.walk(os.path.join(source, top)):
                folders[:] = [f for f in folders if f != "__pycache__"]
                yield from (os.path.relpath(os.path.join(folder, file), source) for file in files)

    def hash(self, tests):
        """Of all that a result of these tests depends on."""
        programs = {program_of(test)[0] for test in tests}
        paths = [p for p in self.hashes if not p.startswith("tests/") or p.endswith(".h") or p == "tests/CMakeLists.txt" or p in programs]
        return hashlib.sha256("\n".join(f"{p} {self.hashes[p]}" for p in sorted(paths)).encode()).hexdigest()


class Build:
    """One build of the unpatched tree: its objects, how each was made, and from what."""

    def __init__(self, tree, name, tests):
        self.tree, self.name, self.at = tree, name, os.path.join(tree.work, name)
        targets = sorted({program_of(t)[1] for t in tests})
        log = os.path.join(tree.work, name + ".log")
        configure = ["cmake", "-S", tree.root, "-B", self.at, "-G", "Ninja", "-DCMAKE_C_COMPILER=gcc",
                     "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", "-DTSLAB_BUILD_TESTS=ON", "-DTSLAB_BUILD_PRELOAD=OFF", "-DTSLAB_INSTALL=OFF",
                     *BUILDS[name]]
        if command(configure, tree.root, log) != 0 or command(["ninja", "temporal_slab_static", *targets], self.at, log) != 0:
            raise Broken(f"the unpatched tree does not build ({name}):\n{tail(log)}")
        self.compile, self.depends = {}, {}
        for entry in json.loads(read(os.path.join(self.at, "compile_commands.json"))):
            args = shlex.split(entry["command"])
            self.compile[args[args.index("-o") + 1]] = args
        for part in self.ninja("deps").split("\n\n"):
            head, *lines = part.splitlines() or [""]
            files = {os.path.relpath(os.path.join(self.at, line.strip()), tree.root) for line in lines}
            self.depends[head.partition(":")[0]] = files
        self.link = {t: self.link_of(t) for t in targets}

    def ninja(self, *tool):
        return subprocess.run(["ninja", "-t", *tool], cwd=self.at, capture_output=True, text=True, check=True).stdout

    def link_of(self, target):
        return [a for a in shlex.split(self.ninja("commands", target).strip().splitlines()[-1]) if a not in (":", "&&")]

    def program(self, test):
        folder, _, name = program_of(test)[1].partition("_")
        return os.path.join(self.at, "tests", folder, name)

    def objects_of(self, patched, target):
        """Objects of the library, and of the program, that the patched files are in."""
        for obj, files in self.depends.items():
            ours = obj.startswith("CMakeFiles/tslab_objects.dir/") or f"/{target}.dir/" in obj
            if ours and files & patched:
                yield obj


class Overlay:
    """A mutant's own src and include, and the objects that differ because of it."""

    def __init__(self, build, mutant):
        self.build, self.at = build, os.path.join(build.tree.work, "work", mutant.name)
        shutil.rmtree(self.at, ignore_errors=True)
        for folder in filter(lambda f: os.path.isdir(os.path.join(build.tree.root, f)), ("src", "include")):
            shutil.copytree(os.path.join(build.tree.root, folder), os.path.join(self.at, folder), copy_function=os.link)
        self.patched = mutant.apply(build.tree.root)
        for file, text in self.patched.items():
            write_whole(os.path.join(self.at, file), text)
        self.log, self.made = os.path.join(self.at, "log"), {}

    def object(self, obj):
        if obj not in self.made:
            made = os.path.join(self.at, f"{len(self.made)}.o")
            src = re.compile(f"^(-I)?{re.escape(self.build.tree.root)}/(src|include)(?=/|$)")
            args = [src.sub(lambda m: f"{m[1] or ''}{self.at}/{m[2]}", a) for a in self.build.compile[obj]]
            args[args.index("-o") + 1] = made
            if command(args, self.build.at, self.log) != 0:
                raise Broken(f"it does not compile:\n{tail(self.log)}")
            self.made[obj] = made
        return self.made[obj]

    def program(self, test):
        """Its objects come before the library, which then has nothing to add for what they define."""
        target = program_of(test)[1]
        ours = {obj: self.object(obj) for obj in self.build.objects_of(set(self.patched), target)}
        args = [ours.get(a, a) for a in self.build.link[target]]
        library = next(n for n, a in enumerate(args) if a.endswith("libtemporal_slab.a"))
        args[library:library] = [made for obj, made in ours.items() if obj.startswith("CMakeFiles/tslab_objects.dir/")]
        program = args[args.index("-o") + 1] = os.path.join(self.at, target)
        if command(args, self.build.at, self.log) != 0:
            raise Broken(f"it does not link:\n{tail(self.log)}")
        return program

    def remove(self):
        shutil.rmtree(self.at, ignore_errors=True)


# ---- one mutant ----

class Runner:
    def __init__(self, options, tree):
        self.options, self.tree, self.builds = options, tree, {}
        self.results = os.path.join(tree.work, "results")
        os.makedirs(self.results, exist_ok=True)

    def key(self, mutant):
        return hashlib.sha256((mutant.text + self.tree.hash(mutant.tests)).encode()).hexdigest()

    def kept(self, mutant):
        path = os.path.join(self.results, mutant.name + ".json")
        if self.options.again or not os.path.exists(path):
            return None
        result = json.loads(read(path))
        again = self.options.all and result["verdict"] == "survived"
        return result if result["key"] == self.key(mutant) and not again else None

    def ask(self, test, program, at):
        """None when the test passes, else how it noticed."""
        scratch, log = os.path.join(at, "scratch"), os.path.join(at, "said")
        shutil.rmtree(scratch, ignore_errors=True)
        os.makedirs(scratch)
        status = command([program], scratch, log, self.options.limit, FAILED, program_of(test)[2])
        if status == 77:
            raise Broken(f"{test} skips here, so it cannot tell")
        return None if status == 0 else "time limit" if status is None else complaint(log, status)

    def judge(self, mutant):
        result = self.kept(mutant)
        if result is not None:
            return result
        began = time.monotonic()
        result = {"name": mutant.name, "key": self.key(mutant), "verdict": "survived", "by": "", "how": "", "others": []}
        overlay = None
        try:
            overlay = Overlay(self.builds[mutant.build], mutant)
            for test in mutant.tests:
                how = self.ask(test, overlay.program(test), overlay.at)
                if how is not None:
                    result.update(verdict="caught", by=test, how=how)
                    break
            if result["verdict"] == "survived" and self.options.all:
                result["others"] = list(self.others(mutant, overlay))
        except Broken as why:
            result.update(verdict="error", how=str(why))
        finally:
            if overlay is not None:
                overlay.remove()
        result["seconds"] = round(time.monotonic() - began, 1)
        if result["verdict"] != "error":  # an error may be the machine's
            write_whole(os.path.join(self.results, mutant.name + ".json"), json.dumps(result))
        return result

    def others(self, mutant, overlay):
        for test in every_test(self.tree.root):
            if test in mutant.tests:
                continue
            try:
                how = self.ask(test, overlay.program(test), overlay.at)
            except Broken:
                continue
            if how is not None:
                yield f"{test}: {how}"

    def check_unpatched(self, mutants):
        """A test that fails without a mutant would catch them all. Kept like results."""
        path, at = os.path.join(self.results, "unpatched"), os.path.join(self.tree.work, "work", "unpatched")
        good = set(read(path).split("\n")) if os.path.exists(path) else set()
        for build, test in sorted({(m.build, test) for m in mutants for test in m.tests}):
            key = f"{build} {test} {self.tree.hash([test])}"
            if key in good:
                continue
            how = self.ask(test, self.builds[build].program(test), at)
            if how is not None:
                raise Broken(f"{test} fails on the unpatched tree ({build}): {how}\n{tail(os.path.join(at, 'said'))}")
            good.add(key)
            write_whole(path, "\n".join(sorted(good)))


def every_test(root):
    for folder in ("unit", "contract", "misuse"):
        at = os.path.join(root, "tests", folder)
        yield from (f"{folder}/{file[:-2]}" for file in sorted(os.listdir(at) if os.path.isdir(at) else []) if file.endswith(".c"))


# ---- the whole ----

def report(results):
    by = {v: [r for r in results if r["verdict"] == v] for v in ("caught", "survived", "error")}
    names = {v: ", ".join(r["name"] for r in rows) for v, rows in by.items()}
    tests = {}
    for r in by["caught"]:
        tests[r["by"]] = tests.get(r["by"], 0) + 1
    print(f"\n{len(by['caught'])} of {len(results)} mutants caught" + (f"; SURVIVED: {names['survived']}" if by["survived"] else "")
          + (f"; CANNOT BE JUDGED: {names['error']}" if by["error"] else ""))
    if tests:
        print("caught by " + ", ".join(f"{test} ({tests[test]})" for test in sorted(tests, key=lambda t: (-tests[t], t))))
    print()
    width = max((len(r["name"]) for r in results), default=0)
    for r in results:
        how = f"{r['by']}: {r['how']}" if r["by"] else r["how"]
        print(f"{r['verdict']:9}{r['name']:{width}}{r.get('seconds', 0):7.1f} s  {how}".rstrip())
        for other in r.get("others", []):
            print(f"{'':9}{'':{width}}           is noticed by {other}")
    return 2 if by["error"] else 1 if by["survived"] else 0


def run(options, mutants, errors):
    work = os.path.join(options.source, "build", "mutants")
    os.makedirs(os.path.join(work, "work"), exist_ok=True)
    tree = Tree(options.source, work)
    usable = []
    for mutant in mutants:
        try:
            mutant.check(tree.root)
            usable.append(mutant)
        except Broken as why:
            errors[mutant.name] = str(why)
    results = [{"name": n, "verdict": "error", "by": "", "how": why} for n, why in errors.items()]
    runner = Runner(options, tree)
    left = [m for m in usable if runner.kept(m) is None]
    for name in sorted({m.build for m in left}):
        extra = list(every_test(tree.root)) if options.all else []
        runner.builds[name] = Build(tree, name, [t for m in left if m.build == name for t in m.tests] + extra)
    runner.check_unpatched(left)
    print(f"{len(usable) - len(left)} of {len(usable)} are known from before", flush=True)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        futures = [pool.submit(runner.judge, m) for m in usable]
        try:
            for future in concurrent.futures.as_completed(futures):
                result = future.result()
                results.append(result)
                print(f"{result['verdict']:9}{result['name']}  {result['by']}".rstrip(), flush=True)
        except (KeyboardInterrupt, Interrupted):
            stop_all()
            pool.shutdown(cancel_futures=True)
            raise
    return report(sorted(results, key=lambda r: r["name"]))


def check(options, mutants, errors):
    for mutant in mutants:
        try:
            mutant.check(options.source)
        except Broken as why:
            errors[mutant.name] = str(why)
        if options.list:
            print(f"{mutant.name}\n    {mutant.why}\n    {' '.join(mutant.tests)}")
    for name in sorted(errors):
        print(f"{name}: {errors[name]}", file=sys.stderr)
    if not errors:
        print(f"{len(mutants)} mutants apply")
    return 2 if errors else 0


def interrupt(*_):
    raise KeyboardInterrupt


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--limit", type=float, default=400)
    parser.add_argument("--source", default=os.path.dirname(os.path.dirname(here)), help=argparse.SUPPRESS)
    parser.add_argument("patterns", nargs="*")
    options = parser.parse_args()
    options.source = os.path.abspath(options.source)
    mutants, errors = load(os.path.join(options.source, "tests", "mutants"), options.patterns)
    if not mutants and not errors:
        print("run.py: no mutant is called so", file=sys.stderr)
        return 2
    if options.list or options.check:
        return check(options, mutants, errors)
    signal.signal(signal.SIGTERM, interrupt)
    try:
        return run(options, mutants, errors)
    except Broken as why:
        print(f"run.py: {why}", file=sys.stderr)
        return 2
    except (KeyboardInterrupt, Interrupted):
        stop_all()
        print("run.py: interrupted; what is known is kept", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
