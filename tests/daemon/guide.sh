#!/bin/bash
# docs/which-route.md holds: its program leaks, the label and the age of its phases are seen from outside, the profile names the
# line that allocates what stays, and a budget stops it.
set -eu
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
clean
source=$TSLAB_SOURCE_DIR/docs/which-route.c
cc -std=gnu11 -Wall -Wextra -Wpedantic -Werror -Og -g -fno-omit-frame-pointer -pthread -I"$TSLAB_SOURCE_DIR/include" "$source" \
    "$TSLAB_BUILD_DIR/libtemporal_slab.a" -o which-route

TSLAB_OPTIONS=segment=1,profile_bytes=4k ./which-route 2000 &
server=$!
trap 'kill $server 2>/dev/null || true' EXIT
leaks() { # as the page reads the row; the numbers may be of the middle of a request
    "$TSLAB_BUILD_DIR/stats_dump" --pid $server --no-text >stats.json 2>errors && python3 - stats.json <<'P'
import json, sys
labels = {l["label"]: l for l in json.load(open(sys.argv[1]))["labels"]}
orders, other = labels.get("POST /orders"), labels.get("GET /search")
sys.exit(not (orders and other and orders["phases_draining"] > 9 and orders["drainability"] < 1 and other["drainability"] == 1
              and 0 <= orders["live_objects"] - orders["phases_draining"] <= 2 and other["phases_draining"] <= 1
              and abs(orders["objects_escaped"] - orders["phases_draining"]) <= 1))
P
}
seen=""
while kill -0 $server 2>/dev/null; do
    if leaks; then seen=yes && break; fi
    sleep 0.1
done
[ -n "$seen" ] || fail "the label does not show the leak: $(grep -o '"label":"POST /orders".*' stats.json | head -c 900) $(cat errors)"
wait $server

PATH=$PATH:/usr/local/go/bin
export CGO_ENABLED=0 # as the other tests do with Go
if command -v go >/dev/null && timeout 600 go tool pprof -h 2>&1 | grep -q '^usage'; then
    line=$(grep -n 'this is the fault' "$source" | cut -d: -f1)
    timeout 300 go tool pprof -symbolize=local -lines -top '-tagfocus=label=^POST /orders$' ./which-route heap.pb >top 2>errors
    awk -v want="which-route.c:$line" '$2 == "100%" && $6 == "log_order" && index($7, want) { found = 1 } END { exit !found }' top ||
        fail "the profile does not name line $line: $(cat top errors)"
    grep -q "which-route.c:$line" "$TSLAB_SOURCE_DIR/docs/which-route.md" || fail "docs/which-route.md names another line than $line"
    ! grep -q parse top || fail "what was freed is in the profile: $(cat top)"
else
    echo "skipped: go tool pprof is not there, so the profile was not opened"
fi

./which-route 400 262144 >said
grep -Eq '^[1-9][0-9]* lines of the log found no room$' said || fail "the budget refused nothing: $(cat said)"
