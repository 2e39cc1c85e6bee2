#!/bin/bash
# bench/suite/run.py on two programs: what it writes, peers that are missing, wrong words, ctrl-C. bench/suite/memory_limit.sh:
# a limit that is kept and one that is not.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
need python3
suite=$TSLAB_SOURCE_DIR/bench/suite
clean

run() {
    local wanted=$1
    shift
    expect "$wanted" "$suite/run.py" --build "$TSLAB_BUILD_DIR" "$@"
}

# Without a list of peers: both, and it says so.
run 0 --smoke --only epoch_reclamation_demo churn_fixed --reps 2 --peers nowhere.tsv --out results
has err 'missing: all general peers: no list at nowhere.tsv'
has out '8 runs, 0 failed'
python3 - results <<'CHECK' || complain "what run.py wrote"
import csv, json, os, sys
at = sys.argv[1]
head = json.load(open(f"{at}/run.json"))
assert head["complete"] and head["runs"] == 8 and head["failures"] == [], head
assert head["program"] == "suite" and head["format"] == 2 and head["form"] == "smoke" and head["repetitions"] == 2, head
assert head["cpus"] >= 1 and head["memory_mb"] and head["cpu"] and head["kernel"] and head["system"] and head["compiler"] and head["commit"], head
assert head["command"].startswith("run.py --build ") and head["date"].endswith("Z"), head
assert [a["name"] for a in head["allocators"]] == ["tslab", "glibc"], head
runs = [json.loads(line) for line in open(f"{at}/results.jsonl")]
order = [(r["repetition"], r["program"], r["allocator"]) for r in runs]
assert order == [(0, p, a) for p in ("churn_fixed", "epoch_reclamation_demo") for a in ("tslab", "glibc")] + [
    (1, p, a) for p in ("churn_fixed", "epoch_reclamation_demo") for a in ("glibc", "tslab")], order
assert all(r["status"] == 0 and r["report"]["verified"] for r in runs)
assert all(r["report"]["allocator"] == ("tslab" if r["allocator"] == "tslab" else "malloc") for r in runs)
rows = list(csv.DictReader(open(f"{at}/summary.csv")))
p99 = [r for r in rows if r["metric"] == "latency.alloc_p99_ns"]
assert {r["allocator"] for r in p99} == {"tslab", "glibc"} and all(r["repetitions"] == "2" for r in p99), p99
tables = sorted(os.listdir(f"{at}/csv"))
assert len(tables) == 8, tables
assert open(f"{at}/csv/churn_fixed.glibc.0.csv").read().splitlines()[1].startswith("glibc,1,128,alloc,")
CHECK

# A list: one peer that is there, one that is not, one whose file is gone, one of the other kind, one that does not load.
printf 'glibc\t2\tgeneral\t-\t\nours\t0\tgeneral\t%s\t\nrare\t-\tgeneral\t-\tnot on this machine\n' \
    "$TSLAB_BUILD_DIR/libtemporal_slab.so" >peers.tsv
printf 'gone\t1\tgeneral\t/nowhere/libgone.so\t\nregions\t1\tphase\t-\t\n' >>peers.tsv
run 0 --smoke --only epoch_reclamation_demo --reps 1 --peers peers.tsv --out two
has err 'missing: rare: not on this machine'
has err 'missing: gone: /nowhere/libgone.so does not exist'
has out '3 runs, 0 failed'
has two/results.jsonl '"preload": "libtemporal_slab.so"'
has two/csv/epoch_reclamation_demo.ours.0.csv '^ours,0,'
printf 'broken\t1\tgeneral\t%s\t\n' "$PWD/peers.tsv" >broken.tsv
run 1 --smoke --only epoch_reclamation_demo --reps 1 --peers broken.tsv --out three
has out 'failed: epoch_reclamation_demo broken: the library was not preloaded'

# The same by the benchmark's own program, and facts of the machine in one form.
expect 0 "$TSLAB_BUILD_DIR/tslab_bench" suite --smoke --only epoch_reclamation_demo --reps 1 --peers nowhere.tsv --out four
has out '2 runs, 0 failed'
expect 2 "$TSLAB_BUILD_DIR/tslab_bench" suite --only churn_fixd
has err 'did you mean churn_fixed?'
expect 2 "$TSLAB_BUILD_DIR/tslab_bench" limit --limit-mb none
has err 'takes a number of MiB'
expect 0 "$TSLAB_BUILD_DIR/tslab_bench" --machine
python3 -c '
import json
facts, head = json.load(open("out")), json.load(open("four/run.json"))
assert len(facts) == 7 and {k: head[k] for k in facts} == facts, (facts, head)' || complain "run.py and tslab_bench name different machines"

# Wrong words.
run 2 --only churn_fixd
has err 'did you mean churn_fixed?'
run 2 --only soak --allocators jemaloc --peers nowhere.tsv
has err "there is no allocator 'jemaloc'"
run 2 --reps 0
run 2 --quik
expect 2 "$suite/run.py" --build . --only soak
has err 'no programs in'

# Ctrl-C keeps what is done. (Started by python: a shell's background jobs ignore SIGINT.)
python3 - "$suite/run.py" "$TSLAB_BUILD_DIR" <<'CHECK' || complain "ctrl-C"
import json, signal, subprocess, sys
command = [sys.argv[1], "--build", sys.argv[2], "--smoke", "--only", "epoch_reclamation_demo", "soak", "--reps", "50",
           "--peers", "nowhere.tsv", "--out", "four"]
with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as runner:
    for line in runner.stderr:
        if line.startswith("[3/"):
            runner.send_signal(signal.SIGINT)
            break
    rest = runner.stderr.read()
assert runner.returncode == 130 and "interrupted after" in rest, (runner.returncode, rest)
head = json.load(open("four/run.json"))
runs = [json.loads(line) for line in open("four/results.jsonl")]
assert head["complete"] is False and head["runs"] == len(runs) >= 3, head
assert len(open("four/summary.csv").read().splitlines()) > 10
CHECK

# Memory limits.
limit() {
    local wanted=$1
    shift
    expect "$wanted" "$suite/memory_limit.sh" --build "$TSLAB_BUILD_DIR" --peers nowhere.tsv "$@"
}
small="sustained_phase_shifts 8 4 1 0 1 --phase-kb 2048 --sessions 0"
limit 0 --method watch --load "$small"
has out 'limit: 64 MiB by watch'
has out '^tslab  *survives'
has out '^glibc  *survives'
has out 'no other peers: nowhere.tsv does not exist'
limit 0 --method watch --limit-mb 16 --only glibc --load "sustained_phase_shifts 100 4 1 0 1 --phase-kb 32768 --sessions 0"
has out '^glibc  *killed'
limit 0 --method data --limit-mb 24 --only glibc --load "sustained_phase_shifts 4 4 1 0 1 --phase-kb 32768 --sessions 0"
has out '^glibc  *out of memory'
limit 2 --limit-mb none
limit 2 --methd watch
limit 2 --method cgroup
has err 'cgroup2, cgroup1, systemd, watch or data'
limit 0 --load "$small" # whatever the machine allows
has out '^limit: 64 MiB by '

# The table as JSON: a survivor, one that is killed, one that is missing, one that fails.
printf 'rare\t-\tgeneral\t-\tnot "here"\nours\t0\tgeneral\t%s\t\n' "$TSLAB_BUILD_DIR/libtemporal_slab.so" >peers.tsv
printf 'broken\t1\tgeneral\t%s\t\nregions\t1\tphase\t-\t\n' "$PWD/peers.tsv" >>peers.tsv
expect 1 "$suite/memory_limit.sh" --build "$TSLAB_BUILD_DIR" --peers peers.tsv --method watch --load "$small" --json table.json
python3 -c '
import json
t = json.load(open("table.json"))
assert t["complete"] is True and t["limit_mb"] == 64 and t["method"] == "watch" and t["not"] is None and t["cpus"] and t["compiler"] and t["system"], t
by = {a["name"]: a for a in t["allocators"]}
assert list(by) == ["tslab", "glibc", "rare", "ours", "broken"], list(by)
for name in "tslab", "glibc", "ours":
    assert by[name]["verdict"] == "survives" and by[name]["reason"] is None, by[name]
    assert 0 < by[name]["peak_kb"] < 65536 and by[name]["peak_of"] == "watcher" and by[name]["seconds"] >= 0, by[name]
assert by["rare"]["verdict"] == "missing" and by["rare"]["reason"] == "not \"here\"" and by["rare"]["seconds"] is None
assert by["broken"]["verdict"] == "failed" and by["broken"]["reason"] == "not preloaded", by["broken"]
' || complain "the table of limits as JSON"

# Control groups that cannot be had, each for its reason: a tree of plain folders stands in for the real one.
mkdir -p proc/self groups/us
echo "tree $PWD/groups cgroup2 rw 0 0" >proc/mounts
echo "0::/elsewhere" >proc/self/cgroup
why() { # METHOD REASON
    MEMORY_LIMIT_PROC=$PWD/proc limit 77 --method "$1" --load "$small"
    has out "^not $1: $2"
    has out '^skipped: no way to limit memory'
}
why cgroup2 "our group is not below $PWD/groups"
echo "0::/us" >proc/self/cgroup
why cgroup2 'our group has no memory controller in cgroup v2'
echo "cpu memory pids" >groups/us/cgroup.controllers
why cgroup2 'our group does not pass its memory controller on'
echo "memory" >groups/us/cgroup.subtree_control
why cgroup2 'the memory of a group of our own cannot be limited'
why cgroup1 'no memory controller of cgroup v1 is mounted'
printf 'v1 %s cgroup rw,cpu 0 0\nv1 %s cgroup rw,relatime,memory 0 0\n' "$PWD/nowhere" "$PWD/groups" >>proc/mounts
printf '3:cpu:/\n2:pids,memory:/us\n' >proc/self/cgroup
why cgroup1 'the memory of a group of our own cannot be limited'
[ "$(find groups -type d | wc -l)" = 2 ] || complain "a group is left: $(find groups)"

# However it is ended half-way, nothing stays, and ctrl-C keeps what is done.
mkdir temporary
TMPDIR=$PWD/temporary python3 - "$suite/memory_limit.sh" "$TSLAB_BUILD_DIR" <<'CHECK' || complain "ended half-way"
import glob, json, os, signal, subprocess, sys, time
def left():
    found = []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            words = open(path, "rb").read()
        except OSError:
            continue
        if os.environ["TMPDIR"].encode() in words and not words.startswith(b"python3\0-\0"):
            found.append(words)
    return found + os.listdir("temporary")
def wait_for(what, holds):
    for _ in range(3600):
        if holds():
            return
        time.sleep(0.05)
    raise SystemExit(f"{what}: {left()}")
for method in "watch", "data":
    for how in signal.SIGINT, signal.SIGTERM, signal.SIGKILL:
        command = [sys.argv[1], "--build", sys.argv[2], "--method", method, "--only", "glibc tslab", "--peers", "nowhere.tsv",
                   "--limit-mb", "512", "--json", "cut.json", "--load", "sustained_phase_shifts 2000 4 1 0 1 --sessions 0"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as script:
            wait_for("no load", lambda: any(b"sustained_phase_shifts\0" in w for w in left() if isinstance(w, bytes)))
            script.send_signal(how)
        wanted = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -9}[how]
        assert script.returncode == wanted, (how, script.returncode)
        if how == signal.SIGKILL:
            wait_for(f"left by {method}, {how}", lambda: not left())
        else:
            assert not left(), (method, how, left())
            table = json.load(open("cut.json"))
            assert table["complete"] is False and table["allocators"] == [], table
CHECK

finish
