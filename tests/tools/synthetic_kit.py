"""Runs synthetic_bench for its tests, and counts what is not as it should be."""

import json
import os
import subprocess
import sys

BENCH = os.path.join(os.environ["TSLAB_BUILD_DIR"], "synthetic_bench")
SOURCE = os.environ["TSLAB_SOURCE_DIR"]

_failures = 0


def check(ok, *what):
    """Counts and prints what is not as it should be."""
    global _failures
    if not ok:
        _failures += 1
        print("FAILED:", *what, file=sys.stderr)
    return ok


def finish():
    sys.exit(1 if _failures else 0)


def start(*arguments, environment=None, **streams):
    """A run in the background, with whatever the caller's environment has of options taken out."""
    env = {k: v for k, v in os.environ.items() if k != "TSLAB_OPTIONS"}
    env.update(environment or {})
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    return subprocess.Popen([BENCH, *arguments], env=env, text=True, **streams)


def call(*arguments, wanted=0, **more):
    """(standard output, standard error) of a run that must end with that status."""
    run = start(*arguments, **more)
    try:
        out, err = run.communicate(timeout=300)
    except subprocess.TimeoutExpired:
        run.kill()
        out, err = run.communicate()
        check(False, arguments, "does not end")
    check(run.returncode == wanted, arguments, "exit", run.returncode, "not", wanted, err[:300])
    return out or "", err or ""


def load(name):
    try:
        with open(name, encoding="utf-8") as text:
            return json.load(text)
    except (OSError, ValueError) as error:
        check(False, name, error)
        return None


def result(*arguments, **more):
    """The JSON result of a run, and its standard error; {} when there is none."""
    if os.path.exists("result.json"):
        os.remove("result.json")
    _, err = call("--json=result.json", *arguments, **more)
    return load("result.json") or {}, err


def stats(*arguments, **more):
    """The statistics at the end of a run."""
    if os.path.exists("stats.json"):
        os.remove("stats.json")
    call("--stats-file", "stats.json", *arguments, **more)
    return load("stats.json") or {}
