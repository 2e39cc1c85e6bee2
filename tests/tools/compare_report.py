"""compare_report.py: what it writes of short runs, wrong words, ctrl-C, runs that fail. See compare_report.sh."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

from synthetic_kit import BENCH, SOURCE, check, finish

SCRIPT = os.path.join(SOURCE, "tools", "compare_report.py")
ALLOCATORS = {"malloc", "tslab", "tslab-domain"}


def start(*arguments, bench=BENCH):
    shutil.rmtree("out", ignore_errors=True)
    os.mkdir("out")
    return subprocess.Popen([sys.executable, SCRIPT, "--bench", bench, "--out", "out/r", *arguments], text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def end(run, wanted):
    out, err = run.communicate(timeout=900)
    check(run.returncode == wanted, run.args[4:], "exit", run.returncode, "not", wanted, err[-500:])
    return out, err


def files():
    with open("out/r.json", encoding="utf-8") as text:
        report = json.load(text)
    with open("out/r.md", encoding="utf-8") as text:
        return report, text.read()


def holds(report, claim):
    return next(c for c in report["claims"] if claim in c["claim"])


def whole():
    out, err = end(start("--quick", "--reps=1", "--seconds=0.1", "--pattern=leak", "--pattern=steady", "--preload=other=" + LIBC), 0)
    report, text = files()
    check(report["runs_done"] == report["runs_planned"] == 2 * 2 * 4 + 3 and not report["failed"], report["runs_done"])
    for mode in ("unpaced", "paced"):
        for pattern in ("steady", "leak"):
            check(set(report["summary"][mode][pattern]) == ALLOCATORS | {"other"}, mode, pattern)
            for allocator, result in report["runs"]["cells"][mode][pattern][0].items():
                s = result["settings"]
                check((s["req_rate"] == 0) == (mode == "unpaced"), mode, pattern, s)
                check(result["allocator"] == ("tslab" if "tslab" in allocator else "malloc"), allocator, result["allocator"])
                check(s["phases"] == ("domain" if allocator == "tslab-domain" else "ring"), allocator, s)
    check(len(report["claims"]) == 5 and out.count("holds") + out.count("does not hold") + out.count("not measured") >= 5, out)
    check(holds(report, "leak named")["holds"] is True, holds(report, "leak named"))
    check(len(holds(report, "resident size")["rows"]) == 2, holds(report, "resident size"))
    # With objects that outlive their phase by eight requests of sixteen, closes find hardly a slab empty.
    bad = [r for r in holds(report, "yield")["rows"] if not r["holds"]]
    check("steady" in [r["what"] for r in bad] and holds(report, "yield")["holds"] is False, bad)
    for word in ("# malloc against", "Unpaced", "Paced", "no result", "does not hold", "| leak | tslab |", "other"):
        check(word in text, "the page has no", word)
    check(err.count("[") >= 19, "progress", err[:200])
    check(sorted(os.listdir("out")) == ["r.json", "r.md"], os.listdir("out"))


def interrupted():
    run = start("--reps=50", "--seconds=0.3", "--pattern=burst", "--quick")
    seen = ""
    while "paced burst" not in seen:
        seen = run.stderr.readline()
        if not seen:
            break
    time.sleep(0.1)
    run.send_signal(signal.SIGINT)
    _, err = end(run, 130)
    report, text = files()
    check("what is done is kept" in err and "Interrupted after" in text, err[-200:])
    check(report["interrupted"] and 0 < report["runs_done"] < report["runs_planned"], report["runs_done"])
    check(holds(report, "leak named")["holds"] is True, "the run that was done is lost")
    runs = [r for turns in report["runs"]["cells"].values() for ts in turns.values() for t in ts for r in t.values()]
    check(not any(r["interrupted"] for r in runs), "half a run is a result")


def failing():
    with open("broken", "w", encoding="utf-8") as script:
        script.write('#!/bin/sh\necho "$LD_PRELOAD" >>out/preloads\ncase "$*" in *"allocator tslab"*) echo counts do not agree >&2; exit 1;; esac\nexec "%s" "$@"\n' % BENCH)
    os.chmod("broken", 0o755)
    out, _ = end(start("--quick", "--reps=1", "--seconds=0.1", "--pattern=burst", "--preload=other=" + LIBC, bench="./broken"), 1)
    with open("out/preloads", encoding="utf-8") as text:
        check(text.read().split() == [LIBC] * 2, "not preloaded: unpaced and paced")
    report, text = files()
    check(len(report["failed"]) == 7 and "Runs that failed" in text and "counts do not agree" in text, report["failed"])
    check(all(c["holds"] is None for c in report["claims"]) and out.count("not measured") == 5, out)


WRONG = (
    (2, "did you mean --quick?", "--qick"),
    (2, "did you mean --pattern?", "--patern=leak"),
    (2, "see --help", "stray"),
    (2, "invalid choice: 'laek'", "--pattern=laek"),
    (2, "a number from 1 to 99, not '0'", "--reps=0"),
    (2, "a number from 0.05 to 3600", "--seconds=nan"),
    (2, "expected one argument", "--seconds"),
    (2, "NAME=LIBRARY", "--preload=jemalloc"),
    (2, "NAME=LIBRARY", "--preload=tslab=x"),
    (2, "there is no library", "--preload=a=/no/such/library.so"),
    (1, "cannot write in", "--out=no/such/folder/r"),
)


def wrong_words():
    for status, said, *arguments in WRONG:
        out, err = end(start(*arguments), status)
        check(said in err and out == "" and err.count("\n") == 1, arguments, "says", err)
        check(os.listdir("out") == [], arguments, "writes")
    _, err = end(start("--quick", bench="./no-such-program"), 2)
    check("there is no synthetic_bench at './no-such-program'" in err, err)
    out, _ = end(start("--help"), 0)
    for word in ("--quick", "--reps", "--seconds", "--pattern", "--preload", "--out", "--bench", "ctrl-C"):
        check(word in out, "--help has no", word)


with open("/proc/self/maps", encoding="utf-8") as maps:
    LIBC = next((line.split()[-1] for line in maps if "libc.so" in line or "libc-" in line), BENCH)
for test in (whole, interrupted, failing, wrong_words):
    test()
finish()
