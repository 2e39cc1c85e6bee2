#!/usr/bin/env python3
"""Rounds of requests to a program that exists, with `tslab gate` in front of them: does a further round leave more behind?

    gate.py jq TSLAB JQ                 JQ with phases, as a filter that stays; a round is 40 documents
    gate.py tinyproxy TSLAB PROXY LOAD [LIBRARY...]     a round is 40 requests by LOAD (load.c), one after the other;
                                        LIBRARIES are preloaded: then PROXY need not know anything of phases
    gate.py documents IN OUT COUNT      one round of jq, through two pipes

prints what the gate says and exits as it does: 0 passed, 1 something is left behind.
"""

import os
import subprocess
import sys
import tempfile

import kit

REQUESTS = 40


def gate(tslab, pid, command, *flags):
    """The gate's answer. Figures of a process that has just begun may not be there yet."""
    for _ in range(100):
        if subprocess.run([tslab, "stats", "--pid", str(pid)], capture_output=True).returncode == 0:
            break
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    run = subprocess.run([tslab, "gate", "--pid", str(pid), *flags, *command], capture_output=True, text=True, timeout=600)
    print(run.stdout.strip() or run.stderr.strip())
    return run.returncode


def documents(into, out, count):
    with open(into, "w") as to, open(out) as answers:
        to.write(kit.lines(kit.documents(count)))
        to.flush()
        for _ in range(count):
            if not answers.readline().startswith("{"):
                sys.exit("no answer")


def jq(tslab, program):
    with tempfile.TemporaryDirectory() as folder:
        into, out = folder + "/in", folder + "/out"
        os.mkfifo(into), os.mkfifo(out)
        keep = [os.open(path, os.O_RDWR) for path in (into, out)] # both stay open between rounds
        run = subprocess.Popen([program, "-c", "--unbuffered", "{id, n: (.items | length)}"], stdin=os.open(into, os.O_RDONLY),
                               stdout=keep[1], env={**os.environ, "TSLAB_OPTIONS": "segment=1"})
        try:
            return gate(tslab, run.pid, [sys.executable, os.path.abspath(__file__), "documents", into, out, str(REQUESTS)])
        finally:
            os.close(keep[0]) # the end of its input
            run.wait(60)


def tinyproxy(tslab, program, load, libraries):
    variables = ["TSLAB_OPTIONS=segment=1"] + ["LD_PRELOAD=" + ":".join(libraries)] * bool(libraries)
    proxy = kit.Proxy(program, before=["env", *variables])
    try:
        # What a request before has left of its thread may go a moment later.
        return gate(tslab, proxy.process.pid, [load, str(proxy.port), str(REQUESTS), "1", "4000"], "--objects", "8", "--bytes", "8192")
    finally:
        proxy.end()


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] == "jq":
        sys.exit(jq(*sys.argv[2:]))
    if len(sys.argv) >= 5 and sys.argv[1] == "tinyproxy":
        sys.exit(tinyproxy(*sys.argv[2:5], sys.argv[5:]))
    if len(sys.argv) == 5 and sys.argv[1] == "documents":
        sys.exit(documents(*sys.argv[2:4], int(sys.argv[4])))
    sys.exit(__doc__)
