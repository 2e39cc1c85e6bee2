#!/bin/bash
# A server of other people's libraries, none of them changed: libmicrohttpd, libxml2, json-c, sqlite, libcurl. `tslab shim` puts a
# phase around its handler, by path. Objects and usable bytes of each phase are what an interposer in front of malloc counts;
# escapes are told for each route; answers are those that the server gives alone; and the gate finds the route that leaks.
set -u
. "$TSLAB_SOURCE_DIR/tests/cli/kit.bash"
need_go
need python3
need pkg-config
[ "$(uname -m)" = x86_64 ] || skip "wrappers are for x86-64"
libraries=(libmicrohttpd json-c libxml-2.0 sqlite3 libcurl)
for library in "${libraries[@]}"; do pkg-config --exists $library || skip "no $library: make deps FOR=server"; done
unset TSLAB_OPTIONS NO_COLOR LD_PRELOAD
build_tslab "$PWD/tslab"
preload=$TSLAB_BUILD_DIR/libtemporal_slab_preload.so
[ -f "$preload" ] || skip "no libtemporal_slab_preload.so in this build"
from=$TSLAB_SOURCE_DIR/tests/cli/server

# shellcheck disable=SC2046  # flags are words
cc -O1 -g -fno-builtin -fno-omit-frame-pointer "$from/server.c" $(pkg-config --cflags --libs "${libraries[@]}") -pthread -o server || fail "server.c does not compile"
! nm -D --undefined-only server | grep -i tslab || complain "the server knows us"
./tslab shim --callback MHD_start_daemon:5 --label-argument 3 -o shim.c && cc -O2 -shared -fPIC shim.c -o shim.so || fail "no shim"
cc -O1 -shared -fPIC -pthread -I"$TSLAB_SOURCE_DIR/include" "$TSLAB_SOURCE_DIR/tests/preload/counted/counts.c" -ldl -o counts.so || fail "counts.c"

cat >asks.py <<'END'
import http.client, sys
port, rounds, routes = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
c = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
for n in range(rounds):
    for route in routes:
        c.request("GET", route)
        r = c.getresponse()
        body = r.read()
        if r.status != 200 or not body:
            sys.exit("%s: %d" % (route, r.status))
        if n == 1 and route != "/sql":
            print(route, body)
END
routes=(/json /xml /sql /curl /std /cache)
rounds=40
! scale_reaches 1 || rounds=200

begin() { # ARGUMENT of the server; variables are those of the caller
    rm -f hold port && mkfifo hold
    env "${variables[@]}" ./server "$@" <hold >port 2>err &
    pid=$!
    trap 'kill $pid 2>/dev/null' EXIT
    exec {input}>hold
    has_port() { [ -s port ]; }
    eventually 120 has_port || fail "the server does not start: $(cat err)"
}
end() {
    exec {input}>&-
    wait $pid || complain "server: exit code $?"
    empty err
}
asks() { python3 asks.py "$(cat port)" "$@" || fail "asks $*: $(cat err)"; }

variables=(PLAIN=1)
begin
asks $rounds "${routes[@]}" >plain
end
variables=(COUNTS=counts.txt TSLAB_OPTIONS=segment=1 LD_PRELOAD="$PWD/shim.so:$PWD/counts.so:$preload")
begin
asks $rounds "${routes[@]}" >under
told() { # by a publication that has come since: an idle server makes none
    asks 1 "${routes[@]}" >told.log
    ./tslab top --pid $pid --labels --plain >labels || complain "tslab top"
    ./tslab doctor --pid $pid >doctor 2>&1
    for route in "${routes[@]}"; do grep -q "^$route " labels || return 1; done
    grep -q '"/cache": ended phases have let [0-9]* objects .* escape' doctor
}
eventually 60 told || true
end
cmp plain under || complain "other answers under phases"
grep -q '^differ 0 of [0-9]*$' counts.txt || complain "accounts: $(head -n 3 counts.txt)"
for route in "${routes[@]}"; do
    awk -F '\t' -v route="$route" -v least=$rounds '$1 == route && $2 >= least { found = 1 } END { exit !found }' counts.txt ||
        complain "$route has no phases: $(cat counts.txt)"
    has labels "^$route "
done
has doctor '"/cache": ended phases have let [0-9]* objects .* escape so far'
awk -F '\t' '{ print $1, $2, $3, "escaped", $4, $5 }' counts.txt

# What escapes, by the stack that made it: a leak by its function, what libraries keep by theirs.
variables=(TSLAB_OPTIONS=segment=1,escape_stacks=1 LD_PRELOAD="$PWD/shim.so:$preload")
begin leaks
asks 30 "${routes[@]}" /leak >/dev/null
by_stack() {
    asks 1 "${routes[@]}" /leak >/dev/null
    ./tslab profile --pid $pid --escapes -n 0 --json >escapes.json 2>advice && python3 -c '
import json, sys
rows = json.load(open("escapes.json"))["escapes"]
leak = [e for e in rows if e["label"] == "/leak" and e["stack"][:2] == ["leak", "answer"] and e["live_objects"] >= 30]
named = all(e["stack"] and e["stack"][0] != "" and "temporal_slab" not in e["stack"][0] for e in rows)
sys.exit(not (leak and named and {"/json", "/xml", "/cache"} <= {e["label"] for e in rows}))'
}
eventually 60 by_stack || complain "escapes by stack: $(cat escapes.json advice)"
end

# A leak that somebody puts in, found from outside.
variables=(TSLAB_OPTIONS=segment=1 LD_PRELOAD="$PWD/shim.so:$preload")
begin leaks
asks 40 /json /xml /sql /curl /std /leak /leak >/dev/null
status=0
./tslab gate --pid $pid --rounds 6 python3 asks.py "$(cat port)" 5 /json /xml /leak >gate 2>&1 || status=$?
[ $status = 1 ] || complain "gate: exit code $status: $(cat gate)"
has gate '^"/leak" retains '
end
begin
asks 40 /json /xml /sql /curl /std /leak /leak >/dev/null
status=0
./tslab gate --pid $pid --objects 4 --bytes 4096 --rounds 6 python3 asks.py "$(cat port)" 5 /json /xml /leak >gate 2>&1 || status=$?
[ $status = 0 ] || complain "gate without a leak: exit code $status: $(cat gate)"
end
finish
