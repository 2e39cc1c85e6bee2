#!/bin/bash
# tslab_server, one binary under several mallocs: answers are the same, of forty connections at once, with requests that wait,
# change threads, are refused, and that nobody waits for. Under the preload library each request is a phase: counted by route,
# its objects and usable bytes those that an interposer counts, and nothing escapes. Then a second of the runner's load.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
server=$TSLAB_BUILD_DIR/tslab_server preload=$TSLAB_BUILD_DIR/libtemporal_slab_preload.so
[ -x "$server" ] || skip "no tslab_server in this build: make deps FOR=server, and configure again"
[ -f "$preload" ] || skip "no libtemporal_slab_preload.so in this build"
need python3
need wrk "no wrk: make deps FOR=server"
clean
unset TSLAB_OPTIONS LD_PRELOAD
export PYTHONDONTWRITEBYTECODE=1
asks=$TSLAB_SOURCE_DIR/tests/demo/server_asks.py
! nm -D --undefined-only "$server" | grep -iE 'slab_|epoch_' | grep -v ' w tslab_preload_' || complain "the server is linked with us"
cc -O1 -shared -fPIC -pthread -I"$TSLAB_SOURCE_DIR/include" "$TSLAB_SOURCE_DIR/tests/preload/counted/counts.c" -ldl -o counts.so || fail "counts.c"

begin() { # ARGUMENT of the server; variables are those of the caller
    rm -f hold port shop.db* && mkfifo hold
    env "${variables[@]}" "$server" --database shop.db --handlers "$TSLAB_SOURCE_DIR/demo/server/handlers" "$@" <hold >port 2>err &
    pid=$!
    trap 'kill $pid 2>/dev/null' EXIT
    exec {input}>hold
    has_port() { [ -s port ]; }
    eventually 120 has_port || fail "the server does not start: $(cat err)"
}
end() { # NAME: answers, counts and figures to files of that name
    exec {input}>&-
    wait $pid || complain "$1: exit code $?"
    empty err
    tail -n 1 port >"$1.figures"
}
served() { # NAME [ARGUMENT]
    local name=$1
    shift
    begin "$@"
    python3 "$asks" "$(head -n 1 port)" "$name.answers" >"$name.asked" 2>asks.err || fail "$name: $(cat asks.err err)"
    empty asks.err
    end "$name"
    cmp glibc.answers "$name.answers" || complain "$name: other answers than under glibc"
}

variables=(PLAIN=1)
served glibc
served loops --loops 3
for library in libjemalloc.so.2 libmimalloc.so.2; do
    path=$(ldconfig -p | awk -v name=$library '$1 == name { print $NF; exit }')
    [ -n "$path" ] || continue
    variables=(LD_PRELOAD="$path")
    served ${library%%.*}
done
variables=(LD_PRELOAD="$preload")
served without --no-phases
variables=(LD_PRELOAD="$preload" TSLAB_OPTIONS=misuse_fatal=1)
served phases
served phases3 --loops 3
variables=(LD_PRELOAD="$PWD/counts.so:$preload" COUNTS=counts.txt)
served counted --loops 2
has counts.txt '^differ 0 of [0-9]*$'

cat >figures.py <<'END'
import json, sys
def read(name):
    return json.load(open(name + ".figures")), json.load(open(name + ".asked"))
keys = ("objects_allocated", "bytes_allocated", "objects_freed", "bytes_freed", "objects_escaped", "bytes_escaped")
for name in sys.argv[1:]:
    f, asked = read(name)
    phases = name in ("phases", "phases3", "counted")
    assert f["library"] == (phases or name == "without"), name
    assert f["refused"] == 0 and f["open"] == 0, f
    assert f["open_max"] >= 1 and f["sessions"] > 0, f
    for label, r in f["routes"].items():
        assert r["requests"] == asked[label] > 0, (name, label, r, asked)
        assert r["failures"] == 0, (name, label, r)
        assert r["phases"] == (r["requests"] if phases else 0), (name, label, r)
        if phases:
            assert r["objects_allocated"] >= 100 * r["phases"] and r["bytes_allocated"] > 32 * r["objects_allocated"], (name, label, r)
            assert r["objects_escaped"] == r["bytes_escaped"] == 0, (name, label, r)
            assert r["objects_allocated"] == r["objects_freed"] and r["bytes_allocated"] == r["bytes_freed"], (name, label, r)
        else:
            assert all(r[key] == 0 for key in keys), (name, label, r)
# What the interposer has counted between the same begins and ends.
f, asked = read("counted")
rows = {}
for line in open("counts.txt"):
    words = line.rstrip("\n").split("\t")
    if words[0] in f["routes"]:
        rows[words[0]] = [int(n) for n in words[1:]]
assert set(rows) == set(f["routes"]), rows
for label, counted in rows.items():
    r = f["routes"][label]
    assert counted == [r[key] for key in ("objects_allocated", "bytes_allocated", "objects_escaped", "bytes_escaped")], (label, counted, r)
assert open("counts.txt").readline() == "differ 0 of %d\n" % sum(r["phases"] for r in f["routes"].values())
END
python3 figures.py $(ls ./*.figures | xargs -n 1 basename -s .figures) || complain "figures"

# The library's own table of labels, from outside, is what the ends have told.
variables=(LD_PRELOAD="$preload" TSLAB_OPTIONS=segment=1)
begin
python3 "$asks" "$(head -n 1 port)" label.answers >label.asked || fail "labels: $(cat err)"
cat >labels.py <<'END'
import http.client, json, subprocess, sys
c = http.client.HTTPConnection("127.0.0.1", int(sys.argv[2]), timeout=120)
c.request("POST", "/session", '{"user": "one more"}') # an idle process publishes nothing
c.getresponse().read()
c.request("GET", "/figures")
f = json.load(c.getresponse())
d = json.loads(subprocess.run([sys.argv[1], "--pid", sys.argv[3], "--no-text"], capture_output=True, check=True).stdout)
labels = {row["label"]: row for row in d["labels"]}
for label, r in f["routes"].items():
    if label == "POST /session":
        continue
    row = labels[label]
    for of, key in (("phases_ended", "phases"), ("objects_allocated",) * 2, ("bytes_allocated",) * 2, ("objects_freed",) * 2):
        assert row[of] == r[key], (label, of, row[of], r[key])
    assert row["live_objects"] == 0 and r["phases"] > 0, (label, row)
END
has_labels() { python3 labels.py "$TSLAB_BUILD_DIR/stats_dump" "$(head -n 1 port)" $pid 2>labels.err; }
if [ -x "$TSLAB_BUILD_DIR/stats_dump" ]; then eventually 60 has_labels || complain "labels: $(tail -n 2 labels.err)"; fi
end labels

# The runner: load of wrk on two servers, one after the other and together, and what it writes.
for how in "" --together; do
    python3 "$TSLAB_SOURCE_DIR/demo/server/measure.py" --program "$server" --preload "$preload" --seconds 2 --cycle 2 --rest 0 --scale 0.02 \
        --allocator glibc --allocator phases $how --json run.json >run.out 2>run.err || complain "measure.py $how: exit $?: $(cat run.err)"
    empty run.err
    has run.out '^phases .* reads calm p50 [0-9.]* p99 '
    python3 - "$TSLAB_SOURCE_DIR" <<'END' || complain "run.json $how"
import json, sys
sys.path.insert(0, sys.argv[1] + "/demo/server")
import measure
d = json.load(open("run.json"))
assert [r["allocator"] for r in d["results"]] == ["glibc", "phases"] and d["failures"] == []
for r in d["results"]:
    assert {s["kind"] for s in r["segments"]} == {"calm", "burst"} and r["samples"] and r["rest"]["rss"] > 0
    for s in r["segments"]:
        reads = s["reads"]
        assert reads["requests"] == sum(n for _, n in reads["latency"]) > 0 and s["served"] >= reads["requests"]
        assert max(us for us, _ in reads["latency"]) == reads["max"], (reads["max"], reads["latency"][-3:])
assert measure.percentiles([{"latency": [[1000, 98], [2000, 1], [9000, 1]]}, {"latency": [[500, 100]]}]) == [0.5, 1.0, 9.0, 9.0]
END
done
status=0
python3 "$TSLAB_SOURCE_DIR/demo/server/measure.py" --allocator nobody >run.out 2>run.err || status=$?
[ $status -ne 0 ] || complain "measure.py takes an allocator that is none"
has run.err 'no allocator nobody; there are glibc'
expect_wrong() { # ARGUMENT...
    status=0
    "$server" "$@" >out 2>err </dev/null || status=$?
    [ $status -eq 2 ] || complain "tslab_server $*: exit $status"
}
expect_wrong
has err '^tslab_server: --database FILE is needed'
expect_wrong --database
expect_wrong --loop 2
finish
