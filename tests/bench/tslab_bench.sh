#!/bin/bash
# tslab_bench itself: a tiny plan, its JSON and CSV, wrong flags, a peer that is missing, one that is not in force, one
# that corrupts, one that crashes, ctrl-C in the middle. Timings are never looked at.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
bench=$TSLAB_BUILD_DIR/tslab_bench
list=$TSLAB_SOURCE_DIR/build/peers/peers.tsv


tested=(timeout 300 "$bench")


# ---- wrong flags say what is right
expect 2 --qick
has err "'--qick' is not a flag; did you mean --quick?"
expect 2 --row pear
has err "--row takes pair|.*, not 'pear'"
has err "batch_tail"
expect 2 --backend nomalloc
has err "--backend takes glibc|.*, not 'nomalloc'"
has err "tslab-handle"
expect 2 --part 1001
has err "from 1 to 1000, not '1001'"
for n in 0 100 x 3x -1; do
    expect 2 --reps $n
    has err "from 1 to 99, not '$n'"
done
expect 2 --json
has err "--json needs a value: --json FILE"
expect 0 --list
has out "late_frees"
has out "tslab-sampled"

# ---- peers: one that is here when they were fetched, one missing with its reason, one that is named and not in force
printf '%s\t%s\t%s\t%s\t%s\n' mimalloc - general - "no such luck" jemalloc 5 general "$PWD/inert.so" "" \
    rpmalloc 1 general "$PWD/corrupt.so" "" scudo 1 general "$PWD/crash.so" "" >peers.tsv
real=""
if [ -f "$list" ] && grep -q "^tcmalloc	.*	$" "$list"; then
    grep "^tcmalloc" "$list" >>peers.tsv
    real=tcmalloc
else
    echo "skipped: no fetched peer here (scripts/get-peers.sh): the plan runs on glibc and temporal-slab alone"
fi
cat >bad.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>
extern void* __libc_malloc(size_t);
extern void __libc_free(void*);
#ifdef CORRUPT
static _Thread_local void* last;
void* malloc(size_t n) { /* writes into the object before */
    void* p = __libc_malloc(n);
    if (last && n == 128) memset(last, 0x55, 32);
    return last = n == 128 ? p : last, p;
}
void free(void* p) {
    if (p == last) last = NULL;
    __libc_free(p);
}
#elif defined(CRASH)
static int calls;
void* malloc(size_t n) {
    if (n == 128 && ++calls > 2000) *(volatile int*)8 = 1;
    return __libc_malloc(n);
}
void free(void* p) { __libc_free(p); }
#else
int inert;
#endif
END
for kind in corrupt crash inert; do
    ${CC:-gcc} -O1 -shared -fPIC -fno-builtin -D"$(echo $kind | tr a-z A-Z)" -o $kind.so bad.c || complain "cannot build $kind.so"
done

expect 1 --quick --part 50 --reps 2 --row batch --row xthread --row domain --row close_empty --backend glibc --backend tslab --backend arena \
    --backend mimalloc --backend jemalloc --backend rpmalloc --backend scudo ${real:+--backend $real} \
    --peers peers.tsv --json result.json --csv result.csv
has out "missing   mimalloc: no such luck"
has out "missing   jemalloc: its library does not serve malloc"
has out "rpmalloc is not timed, its contents are corrupt: the contents of a live object changed"
has out "scudo failed in 2 of 2 repetitions: signal 11"
has out "Summary"
has err "repetition 2 of 2: batch"

REAL=$real python3 - <<'END' || complain "the JSON or the CSV is not as documented"
import csv, json, os
d = json.load(open("result.json"))
assert d["program"] == "tslab_bench" and d["format"] == 2 and d["form"] == "quick" and d["complete"] is True
assert d["repetitions"] == 2 and d["cpus"] >= 1 and d["kernel"] and d["compiler"] and d["command"]
backends = {b["name"]: b for b in d["backends"]}
assert backends["mimalloc"]["reason"] == "no such luck" and not backends["mimalloc"]["available"]
assert backends["glibc"]["malloc_from"].startswith("libc.so") and backends["tslab"]["group"] == "ours"
cells = {(r["row"], r["metric"], c["backend"]): c for r in d["rows"] for c in r["results"]}
for r in d["rows"]:
    assert r["better"] in ("lower", "higher") and isinstance(r["plain"], bool), r
    assert [c["backend"] for c in r["results"]] == list(backends), r
ok = ["glibc", "tslab"] + ([os.environ["REAL"]] if os.environ["REAL"] else [])
for name in ok:
    c = cells["batch", "alloc + free", name]
    assert c["state"] == "ok" and len(c["values"]) == 2 and all(v > 0 for v in c["values"]), c
    assert c["min"] <= c["median"] <= c["max"] and c["ratio_glibc"] > 0 and c["ratio_best"] > 0, c
assert cells["batch", "alloc + free", "glibc"]["ratio_glibc"] == 1
states = {name: cells["batch", "alloc + free", name]["state"] for name in backends}
assert states["mimalloc"] == states["jemalloc"] == "missing" and states["arena"] == "cannot", states
assert states["rpmalloc"] == "corrupt" and states["scudo"] == "failed", states
assert all(cells["batch", "alloc + free", n]["median"] is None for n in ("rpmalloc", "scudo", "arena", "mimalloc"))
peers = [name for name, b in backends.items() if b["group"] in ("general", "phase")]
for row, metric in ("batch", "alloc + free"), ("xthread", "4 threads"): # one of costs, one of rates
    values = {name: cells[row, metric, name]["values"] for name in backends}
    cost = lambda x, y: y / x if row == "xthread" else x / y
    best = [(max if row == "xthread" else min)(v)
            for v in zip(*(values[p] for p in peers if cells[row, metric, p]["state"] == "ok"))]
    c = cells[row, metric, "tslab"]
    near = lambda a, b: abs(a / b - 1) < 1e-4
    assert near(c["ratio_glibc"], sum(map(cost, c["values"], values["glibc"])) / 2), c
    assert near(c["ratio_best"], sum(map(cost, c["values"], best)) / 2), (c, best)
tslab = cells["domain", "without a label", "tslab"]
assert tslab["state"] == "ok" and tslab["ratio_limit"] > 0, tslab
assert cells["domain", "with a label", "arena"]["state"] == "none"
assert cells["close_empty", "close p50", "glibc"]["state"] == "cannot"
lines = list(csv.DictReader(open("result.csv")))
assert len([x for x in lines if x["backend"] == "tslab" and x["metric"] == "alloc + free"]) == 2
assert [x["repetition"] for x in lines if x["backend"] == "mimalloc" and x["metric"] == "alloc + free"] == ["0"]
END

# ---- each of ours and each peer that needs no library does a row in phases, and what it holds is verified
expect 0 --quick --part 50 --reps 1 --row rss --row request --row request_bulk --row late_frees --backend glibc --backend tslab \
    --backend tslab-handle --backend tslab-single --backend obstack --backend arena --peers peers.tsv

# ---- ctrl-C: what is done is printed and written, and no worker stays
"$bench" --quick --part 1 --reps 99 --row pair --backend glibc --backend tslab --peers peers.tsv --json cut.json >out 2>err &
pid=$!
for _ in $(seq 1200); do
    grep -q "repetition 2 of 99" err && break
    sleep 0.1
done
kill -INT $pid
wait $pid
code=$?
[ $code -eq 130 ] || complain "after ctrl-C the exit code is $code, not 130"
has out "INTERRUPTED"
has out "Summary"
python3 -c '
import json
d = json.load(open("cut.json"))
c = [c for r in d["rows"] for c in r["results"] if c["backend"] == "glibc"][0]
assert d["complete"] is False and c["values"][0] > 0 and c["values"][-1] is None and c["failures"] == 0, c
' || complain "the JSON of an interrupted run"
pgrep -P $pid >/dev/null && complain "a worker outlives the run"

finish
