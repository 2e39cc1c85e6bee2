"""verdicts.py BUILD: see verdicts.sh."""
import json
import os
import re
import subprocess
import sys
import time

BUILD = sys.argv[1]
SCENARIOS = ["many", "old", "harmless", "labels", "ring", "thirty"]
failures = 0


def check(ok, *what):
    global failures
    if not ok:
        failures += 1
        print("FAILED:", *what)


class Program:
    def __init__(self, name):
        environment = {k: v for k, v in os.environ.items() if k != "TSLAB_OPTIONS"}
        self.name = name
        self.run = subprocess.Popen([BUILD + "/tests/truth/truth_scenarios", name], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                    text=True, env=environment)
        self.truth = self.until("ready")

    def until(self, last):
        lines = []
        for line in self.run.stdout:
            if line.rstrip("\n") == last:
                return lines
            lines.append(line)
        raise SystemExit("%s ended after %r" % (self.name, lines[-3:]))

    def ask(self, word, last="end"):
        self.run.stdin.write(word + "\n")
        self.run.stdin.flush()
        return self.until(last)

    def end(self):
        self.run.stdin.close()
        check(self.run.wait() == 0, self.name, "ends with", self.run.returncode)


def by_hand(lines):
    """{label: (phases, objects)}"""
    found = (re.fullmatch(r"label (.+) phases (\d+) objects (\d+)\n", line) for line in lines)
    return {m[1]: (int(m[2]), int(m[3])) for m in found if m}


def told(document):
    return {label["label"]: (label["draining_phases"], label["draining_objects"]) for label in document["labels"] if label["draining_objects"]}


def outside(p):
    said = subprocess.run([BUILD + "/stats_dump", "--no-text", "--pid", str(p.run.pid)], capture_output=True, text=True, check=True)
    return json.loads(said.stdout)


def verdicts(p, truth, when):
    where = "%s, %s:" % (p.name, when)
    p.ask("publish", "published yes")
    inside, segment, text = json.loads("".join(p.ask("json"))), outside(p), "".join(p.ask("doctor 0"))
    check(told(inside) == truth, where, "inside", told(inside), "by hand", truth)
    check(told(segment) == truth, where, "outside", told(segment), "by hand", truth)
    for document in inside, segment:
        check(len(document["phases"]) <= 512 and len(document["epochs"]) <= 512, where, "rows", len(document["phases"]))
        for label in document["labels"]:
            check(sum(label["draining_age_ns"]) == label["draining_phases"], where, label["label"], "ages of other phases")
            check((label["worst_eras"][0] != 0) == (label["draining_phases"] != 0), where, label["label"], "worst", label["worst_eras"])
    check(segment["publication"] > 0 and inside["publication"] == 0 and segment["process_state"] == "running", where, "publication")
    check(("Leaks: none found" in text) == (not truth), where, "doctor:", text.split("2. Slow")[0])
    objects = sum(n for _, n in truth.values())
    check(not truth or "1. Leaks: %d objects," % objects in text, where, "doctor:", text.split("2. Slow")[0])
    shown = sum(1 for phase in inside["phases"] if phase["state"] == "CLOSING")
    check(shown + inside["phases_left_out"] >= sum(n for n, _ in truth.values()), where, "phases that are neither shown nor left out")
    rows(inside, truth, p.name, where + " inside")
    segment = walked(p)
    rows(segment, truth, p.name, where + " outside")
    return segment["publication"]


def walked(p):
    """A publication whose rows of phases are as new as its figures: walks are rarer."""
    for _ in range(600):
        p.ask("publish", "published yes")
        document = outside(p)
        if document["phases_ns"] == document["figures_ns"]:
            return document
        time.sleep(0.1)
    check(False, p.name, "no walk")
    return document


OPEN = {"many": "session", "old": "session"}  # more of them than rows, older and in `old` larger than what drains


def rows(document, truth, scenario, where):
    """The largest and the oldest phases have rows, and so have some that drain, whatever else is open."""
    phases, draining = document["phases"], [p for p in document["phases"] if p["state"] == "CLOSING"]
    check(truth == {} or draining, where, "no row of a phase that drains, of", truth)
    if document["phases_left_out"] == 0:
        return
    if scenario in OPEN:
        check(any(p["label"] == OPEN[scenario] for p in phases), where, "no row of an open phase")
    if scenario == "old":
        check(len(draining) >= min(64, sum(n for n, _ in truth.values())), where, "too few rows of phases that drain", len(draining))
    largest = max(p["committed_bytes"] for p in phases)
    check(all(label["worst_bytes"][0] <= largest for label in document["labels"]), where, "no row of the largest phase", largest)


def ended(p):
    """What an allocator that was destroyed has left: figures, and that they are the last."""
    p.ask("destroy")
    said = subprocess.run([BUILD + "/stats_dump", "--pid", str(p.run.pid)], capture_output=True, text=True)
    check(said.returncode == 0 and json.loads(said.stdout or "{}").get("process_state") == "ended", p.name, "ended:", said.stdout[:300], said.stderr)
    check(re.match(r"process %d, allocator 0: ended; publication \d+, figures of \d+\.\d s ago\n" % p.run.pid, said.stderr), p.name, said.stderr[:300])


for name in SCENARIOS:
    p = Program(name)
    truth = by_hand(p.truth)
    check((truth == {}) == (name == "harmless"), name, "leaks", truth)
    first = verdicts(p, truth, "first")
    for word in "free", "more", "free":
        truth = by_hand(p.ask(word, "ready"))
        second = verdicts(p, truth, "after " + word)
        check(second > first, name, "publication", second, "after", first)
        first = second
    if name == "harmless":
        ended(p)
    p.end()
print("%d failed" % failures)
sys.exit(failures != 0)
