#!/bin/bash
# bench/programs: measure tells how a command ended, what it held and what it took; run.py compares output and exit code,
# runs a program beside glibc, and judges by medians, ranges and means.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
clean
need python3
[ -f "$TSLAB_BUILD_DIR/libtemporal_slab_preload.so" ] || skip "no libtemporal_slab_preload.so in this build"
cc -std=gnu11 -O1 -Wall -Wextra -Werror "$TSLAB_SOURCE_DIR/bench/programs/measure.c" -o measure || fail "measure.c does not compile"

ends() { # CODE COMMAND...
    local code=$1
    shift
    rm -f report
    ./measure report - "$@" >out 2>err || { cat err >&2; fail "measure $*"; }
    read -r got wall cpu peak final faults <report
    [ "$got" = "$code" ] || complain "$*: $got instead of $code"
}
./measure report - true 2>err || skip "processes cannot be traced here: $(cat err)"
ends 0 echo said
has out '^said$'
ends 7 sh -c 'exit 7'
ends 139 sh -c 'kill -SEGV $$'
ends 127 ./nothing-of-this-name
ends 0 sh -c 'sleep 0.3; sh -c "exit 3" || exit 0' # children, and their ends
awk -v w="$wall" -v c="$cpu" 'BEGIN { exit !(w >= 0.3 && c < w) }' || complain "0.3 s of sleep: wall $wall, processor $cpu"
# 50 MB that are there at the end, in a child, and twice as much before.
cat >holds.c <<'END'
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
static char* take(size_t n) { return memset(mmap(0, n, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1, n); }
int main(void) {
    int status;
    if (fork() == 0) {
        munmap(take(50 << 20), 50 << 20);
        take(50 << 20);
        munmap(take(40 << 20), 40 << 20);
        _exit(4);
    }
    wait(&status);
    return WEXITSTATUS(status);
}
END
cc -O1 holds.c -o holds || fail "holds.c does not compile"
ends 4 ./holds
[ "$final" -ge $((50 << 20)) ] && [ "$final" -lt $((70 << 20)) ] || complain "50 MiB at the end are told as $final"
[ "$peak" -ge $((90 << 20)) ] || complain "90 MiB at the most are told as $peak"
[ "$faults" -ge 20000 ] || complain "$faults faults"

python3 - "$TSLAB_SOURCE_DIR/bench/programs" <<'END' || complain "run.py judges wrongly"
import sys
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
import run
base = {"wall": 1.0, "cpu": 1.0, "peak": 100, "final": 100, "faults": 100}
def results(*walls):
    return {"glibc": [base] * len(walls), "tslab": [base | {"wall": w} for w in walls]}
fine = {p.name: results(0.8, 0.9, 0.7) for p in run.PROGRAMS}
assert not run.verdict(fine)[1]
lines, missed = run.verdict(fine | {"jq": results(0.8, 0.9, 1.2)})
assert not missed and any("jq" in line and "not judged" in line for line in lines)
lines, missed = run.verdict(fine | {"jq": results(1.2, 1.3, 1.1)})
assert missed and any("jq" in line and "MISSED" in line for line in lines)
assert run.verdict({p.name: results(0.95) for p in run.PROGRAMS})[1]
assert run.verdict({name: r for name, r in fine.items() if name != "xz"})[1]  # one was not run
same = {"code": 0, "output": "x", "bytes": 1, "messages": ""}
assert run.compare(same, same) is None
for change in ({"code": 139}, {"output": "y"}, {"messages": "z"}):
    assert run.compare(same | change, same)
END

need perl
status=0
"$TSLAB_SOURCE_DIR/bench/programs/run.py" --reps 1 --allocator tslab --program perl --json figures.json >out 2>err || status=$?
[ $status = 0 ] || complain "run.py: exit code $status: $(cat out err)"
has out '^perl .* s  '
python3 -c 'import json; d = json.load(open("figures.json")); r = d["results"]["perl"]; assert not d["failures"] and len(r["tslab"]) == len(r["glibc"]) == 1 and r["tslab"][0]["peak"] > 0' || complain "figures.json: $(cat figures.json)"

# Programs that do little but allocate: the same sums under both, and other sums where other objects were made.
patterns=$(python3 -c 'import sys; sys.path.insert(0, sys.argv[1]); import run; print(" ".join("--program like-" + p for p in run.PATTERNS))' \
    "$TSLAB_SOURCE_DIR/bench/programs")
status=0
"$TSLAB_SOURCE_DIR/bench/programs/run.py" --reps 1 --allocator tslab $patterns --small --json patterns.json >out 2>err || status=$?
[ $status = 0 ] || complain "run.py $patterns: exit code $status: $(cat out err)"
python3 -c 'import json; d = json.load(open("patterns.json")); assert not d["failures"] and len(d["results"]) == 12' || complain "patterns.json: $(head -c 500 patterns.json)"
place=$TSLAB_SOURCE_DIR/build/programs
"$place/patterns" sh6 2 >sum || complain "patterns sh6: exit code $?"
"$place/patterns" sh6 3 >other || complain "patterns sh6: exit code $?"
cmp -s sum other && complain "sums do not depend on what was made"
"$place/patterns" nothing >out 2>err && complain "patterns takes any name"

# Servers, where they are installed: they come up, answer as under glibc, and rest.
servers=""
command -v redis-server redis-cli redis-benchmark redis-check-rdb >/dev/null 2>&1 && servers="--program redis"
python3 -c 'import sys; sys.path.insert(0, sys.argv[1]); import servers; sys.exit(not all(servers.where(n) for n in servers.Postgres.needs))' \
    "$TSLAB_SOURCE_DIR/bench/programs" && servers="$servers --program pgbench"
command -v nginx >/dev/null 2>&1 && command -v ab >/dev/null 2>&1 && servers="$servers --program nginx"
[ -n "$servers" ] || finish
status=0
"$TSLAB_SOURCE_DIR/bench/programs/run.py" --reps 1 --allocator tslab $servers --small --idle 0.2 --json servers.json >out 2>err || status=$?
[ $status = 0 ] || complain "run.py $servers: exit code $status: $(cat out err)"
python3 - "$servers" <<'END' || complain "servers.json: $(cat servers.json)"
import json, sys
d = json.load(open("servers.json"))
assert not d["failures"]
for name in sys.argv[1].split()[1::2]:
    assert d["results"][name]["tslab"][0]["peak"] > 0 and d["results"][name]["tslab"][0]["loaded"] > 0
if "redis" in d["results"]:
    assert all(row["idle"] > 0 for rows in d["results"]["redis"].values() for row in rows)
END
finish
