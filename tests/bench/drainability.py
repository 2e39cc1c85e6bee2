"""Counts of `tslab_drainability --quick`, from its files: python3 drainability.py FILE.json FILE.csv

Everything here follows from the loads and the seed, or from theory with a bound so wide that the seed decides it.
"""

import csv
import json
import platform
import sys

STEPS = [0, 0.01, 0.05, 0.1, 0.25, 0.5, 1]
HEAD = ["section", "arm", "replaced_per_request", "requests_per_epoch", "requests"]

failures = 0


def check(holds, what):
    global failures
    if not holds:
        print("FAILED:", what)
        failures += 1


def falls(values):
    return all(a >= b for a, b in zip(values, values[1:]))


def check_arm(arm):
    name = "%(name)s, p %(p)g, %(replaced_per_request)g replaced" % arm
    check(arm["finished"] and arm["defects"] == 0, name + ": not finished, or defects")
    if arm["name"] == "glibc":
        check(arm["closes"] == 0 and arm["dsr"] is None, name + ": glibc closes nothing")
        return
    check(arm["closes"] == arm["epochs"] - arm["lag"] or arm["lag"] == 0, name + ": closes")
    check(arm["dsr"] == round(arm["drainable"] / arm["closes"], 6), name + ": DSR is not what was counted")
    check(arm["left_slabs"] <= arm["escaped_objects"], name + ": more slabs than objects")
    check((arm["left_slabs"] == 0) == (arm["slab_dsr"] == 1), name + ": slab DSR")
    for key in "dsr", "theory_dsr", "slab_dsr", "theory_slab_dsr", "label_drainability":
        check(0 <= arm[key] <= 1, "%s: %s is %g" % (name, key, arm[key]))
    for sample in arm["course"]:
        check(sample["live_bytes"] <= sample["committed_bytes"], name + ": live above committed")
        check(sample["closed_slabs"] <= min(sample["slabs"], document["pool"]), name + ": slabs of closed epochs")
    if arm["p"] == 0:
        check(arm["dsr"] == 1 and arm["slab_dsr"] == 1 and arm["label_drainability"] == 1, name + ": must drain")
        check(all(s["closed_slabs"] == 0 for s in arm["course"]), name + ": closed epochs hold slabs")


def check_groups(groups):
    """Of mixed, isolated and glibc at one lifetime."""
    for mixed, isolated, glibc in groups:
        lengths = {arm["course"][-1]["requests"] for arm in (mixed, isolated, glibc)}
        check(lengths == {document["requests"]}, "arms of unequal length: %s" % lengths)
        # Where theory leaves no doubt.
        for sure in 0, 1:
            if abs(mixed["theory_dsr"] - sure) < 1e-6:
                check(mixed["dsr"] == sure, "mixed, %(replaced_per_request)g replaced: DSR" % mixed)
    worst, beside = groups[-1][0]["course"][-1], groups[-1][1]["course"][-1]
    check(worst["closed_slabs"] > 900, "one session an epoch pins nearly a slab an epoch")
    check(worst["committed_bytes"] > 5 * beside["committed_bytes"], "the worst that routing can do is seen")


def check_sweep(arms):
    for first in range(0, len(arms), len(STEPS)):
        steps = arms[first : first + len(STEPS)]
        name = steps[0]["name"]
        check([arm["p"] for arm in steps] == STEPS, name + ": steps of p")
        dsr = [arm["dsr"] for arm in steps]
        check(dsr[0] == 1 and dsr[-1] == 0 and falls(dsr), "%s: DSR %s" % (name, dsr))
        check(all(abs(arm["dsr"] - arm["theory_dsr"]) < 0.15 for arm in steps), name + ": far from theory")
        close = all(abs(arm["slab_dsr"] - arm["theory_slab_dsr"]) < 0.05 for arm in steps)
        check(close, name + ": slabs, far from theory")
        if steps[0]["lag"] == 0:  # nothing is freed between the end of an epoch and its close
            same = all(arm["label_drainability"] == arm["slab_dsr"] for arm in steps)
            check(same, name + ": the label tells something else than the slabs")
    if platform.libc_ver()[0] == "glibc":  # whose rand() routes the first kind, and routed the published one
        check([arm["dsr"] for arm in arms[: len(STEPS)]] == document["published_dsr"], "not the published numbers")


def check_granules(granules):
    for g in granules:
        name = "%(objects_per_slab)d objects a slab, p %(p)g" % g
        check(g["defects"] == 0, name + ": defects")
        check(g["slab_dsr"] == g["label_drainability"], name + ": the label tells something else")
        check(abs(g["theory_slab_dsr"] - (1 - g["p"]) ** g["objects_per_slab"]) < 1e-6, name + ": theory")
        check(abs(g["slab_dsr"] - g["theory_slab_dsr"]) < 0.06, name + ": far from theory")
        check(g["p"] != 0 or g["slab_dsr"] == 1, name)
        check(g["p"] != 1 or g["slab_dsr"] == 0, name)
    sizes = [granules[i : i + len(STEPS)] for i in range(0, len(granules), len(STEPS))]
    check([s[0]["objects_per_slab"] for s in sizes] == [1, 4, 8, 64], "objects of a slab")
    for size in sizes:
        check(falls([g["slab_dsr"] for g in size]), "slab DSR rises with p")


def check_csv(path, arms):
    with open(path, newline="") as file:
        lines = list(csv.reader(file))
    check(lines[0][: len(HEAD)] == HEAD, "head of the CSV file")
    check(all(len(line) == len(lines[0]) for line in lines), "columns of the CSV file")
    check(len(lines) - 1 == sum(len(arm["course"]) for arm in arms), "lines of the CSV file")
    last = dict(zip(lines[0], lines[-1]))
    check(int(last["requests"]) == document["requests"] and last["arm"] == "glibc", "last line of the CSV file")


with open(sys.argv[1]) as file:
    document = json.load(file)
check(document["complete"] and document["defects"] == 0 and document["failures"] == 0, "the run as a whole")
arms = document["routing"] + document["lifetimes"]
check(len(document["routing"]) == 3 and len(document["lifetimes"]) == 9, "arms")
check(len(document["sweep"]) == 3 * len(STEPS) and len(document["granules"]) == 4 * len(STEPS), "sweep and granules")
for arm in arms + document["sweep"]:
    check_arm(arm)
check_groups([arms[i : i + 3] for i in range(0, len(arms), 3)])
check_sweep(document["sweep"])
check_granules(document["granules"])
check_csv(sys.argv[2], arms)
sys.exit(failures != 0)
