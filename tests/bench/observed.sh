#!/bin/bash
# tslab_bench on what being observed costs: the ratio to the same backend unobserved, profilers that are not what they should
# be, looks at a heap. The peer is a stand-in for jemalloc that says of its profiler what MALLOC_CONF told it, and
# never samples every allocation. Timings are never looked at.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
bench=$TSLAB_BUILD_DIR/tslab_bench


cat >profiler.c <<'END'
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
extern void* __libc_malloc(size_t);
extern void __libc_free(void*);
void* malloc(size_t n) { return __libc_malloc(n); }
void free(void* p) { __libc_free(p); }
int mallctl(const char* name, void* old, size_t* old_size, void* new, size_t new_size) {
    const char* conf = getenv("MALLOC_CONF");
    (void)old_size, (void)new_size;
    if (strcmp(name, "opt.lg_prof_sample") == 0) return *(size_t*)old = 19, 0;
    if (strcmp(name, "version") == 0) return *(const char**)old = "9.8.7-stand-in", 0;
    if (strcmp(name, "prof.dump") == 0) return truncate(*(const char**)new, 3072);
    return *(bool*)old = conf && strstr(conf, "prof:true"), 0; /* opt.prof, prof.active */
}
END
${CC:-gcc} -O1 -shared -fPIC -fno-builtin -o profiler.so profiler.c || complain "cannot build profiler.so"
printf '%s\t%s\t%s\t%s\t%s\n' jemalloc-prof 9 profiler "$PWD/profiler.so" "" \
    tcmalloc-prof - profiler - "no package today" >peers.tsv

watched="jemalloc-prof-off jemalloc-prof jemalloc-prof-all tcmalloc-prof-off tcmalloc-prof tcmalloc-prof-all"
backends=""
for b in glibc scudo tslab tslab-sampled tslab-domain tslab-unlabelled $watched; do backends="$backends --backend $b"; done
timeout 300 "$bench" --quick --part 50 --reps 3 --row pair --row threads --row request --row domain --row snapshot $backends --peers peers.tsv \
    --json result.json >out 2>err || complain "exit code $?: $(tail -n 3 out err)"
has out "missing   jemalloc-prof-all: its profiler is 'one in 524288 bytes', not 'every allocation'"
for b in tcmalloc-prof-off tcmalloc-prof tcmalloc-prof-all; do says out "missing   $b: no package today"; done
has out "jemalloc-prof 9.8.7"
has out "^Observed"
has out "^  *tslab  tslab-sampled  tslab-domain  jemalloc-prof$"
has out "^pair  *alloc + free  *[0-9.]*  *[0-9.]*  *[0-9.]*  *[0-9.]*$"

python3 - <<'END' || complain "the JSON is not as documented"
import json, statistics
d = json.load(open("result.json"))
backends = {b["name"]: b for b in d["backends"]}
offs = {name: b["off"] for name, b in backends.items()}
assert offs["tslab-unlabelled"] is None and offs["glibc"] is None and offs["jemalloc-prof-off"] is None, offs
assert offs["tslab"] == "tslab-unlabelled" and offs["tslab-sampled"] == offs["tslab-domain"] == "tslab", offs
assert offs["jemalloc-prof"] == offs["jemalloc-prof-all"] == "jemalloc-prof-off", offs
assert offs["tcmalloc-prof"] == offs["tcmalloc-prof-all"] == "tcmalloc-prof-off", offs
assert backends["jemalloc-prof"]["group"] == "observed" and backends["tslab-domain"]["group"] == "ours"
assert backends["jemalloc-prof"]["profiler"] == "one in 524288 bytes" and backends["glibc"]["profiler"] is None
cells = {(r["row"], r["metric"], c["backend"]): c for r in d["rows"] for c in r["results"]}
compared = 0
for (row, metric, name), c in cells.items():
    if offs[name] is None or not c["values"] or row == "snapshot" or not cells[row, metric, offs[name]]["values"]:
        assert row == "snapshot" or c["ratio_off"] is None, c
        continue
    off = cells[row, metric, offs[name]]["values"]
    cost = [(o / v if row == "threads" else v / o) for v, o in zip(c["values"], off)]
    assert len(cost) == 3 and abs(c["ratio_off"] / statistics.median(cost) - 1) < 1e-4, (row, metric, c, off)
    compared += 1
assert compared == 4 * (1 + 5 + 2), compared
for r in d["rows"]:
    assert r["best_peer"] in ("glibc", None), r
    assert r["winner"] in ("glibc", "tslab", "tslab-sampled", "tslab-domain", "tslab-unlabelled", None), r
assert cells["domain", "without a label", "jemalloc-prof"]["state"] == "none"
look, length = "statistics as text", "their length"
for name in "glibc", "tslab", "tslab-sampled", "tslab-domain":
    assert cells["snapshot", look, name]["median"] > 0 and cells["snapshot", length, name]["median"] > 0, name
assert cells["snapshot", length, "tslab-domain"]["median"] > cells["snapshot", length, "tslab"]["median"] # labels
assert cells["snapshot", "heap profile by call path", "tslab"]["state"] == "none"
profile = cells["snapshot", "its length", "jemalloc-prof"]
assert profile["values"] == [3, 3, 3], profile # KiB
assert cells["snapshot", look, "jemalloc-prof-off"]["state"] == "cannot" # the stand-in has no statistics
END
[ -z "$(ls /dev/null.* 2>/dev/null)" ] || complain "a profiler left a file"

# ---- nobody to compare with: no table of ratios
timeout 300 "$bench" --quick --part 50 --reps 1 --row pair --backend tslab --backend glibc --peers peers.tsv >out 2>err ||
    complain "exit code $?: $(tail -n 3 out err)"
! grep -q "^Observed" out || complain "ratios of nobody: $(head -c 600 out)"

finish
