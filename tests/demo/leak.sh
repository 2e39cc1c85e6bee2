#!/bin/bash
# One request in a hundred of one route leaks: the doctor names that route and no other, with what to do; while requests
# are served the library names it, too. Nothing else changes.
set -u
. "$TSLAB_SOURCE_DIR/tests/demo/kit.bash"
field() { python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$1" "$2"; }

expect 0 --leak --tables --requests 1500 --json stats.json --figures figures.json
whole out
fits out
has err '^round 1 of 1: tslab'
sessions=$(field figures.json '[r["requests"] for r in d["runs"][-1]["routes"] if r["label"] == "POST /session"][0]')
leaked=$(((sessions + 99) / 100))
[ $leaked -gt 1 ] || complain "$sessions requests of the route are too few"
python3 "$TSLAB_SOURCE_DIR/tests/demo/accounts.py" figures.json stats.json out $leaked || complain "accounts"
[ "$(field figures.json 'sum(r["leaked"] for r in d["runs"][0]["routes"])')" -eq $leaked ] || complain "glibc's leak"
has out "^  1. Leaks: $leaked objects, "
has out "ACTION: \"POST /session\" leaks $leaked objects of class 4 (256 B)"
[ "$(sed -n '/^The doctor (/,$p' out | grep -c 'ACTION: "')" -eq 1 ] || complain "the doctor names $(grep 'ACTION: "' out)"
has out "^Leak: $leaked requests of POST /session left an object behind; $leaked with glibc malloc"

# On one screen: the leak, what the doctor says of it, and the commands that find it from outside.
expect 0 --leak --requests 1500 --json stats.json
fits out
sound out
[ "$(wc -l <out)" -le 24 ] || complain "more than a screen: $(wc -l <out) lines"
has out "^Leak: $leaked requests of POST /session left an object behind"
has out "ACTION: \"POST /session\" leaks $leaked objects"
has out '^  build/demo/tslab_demo --backend tslab --leak '
has out '^  build/tslab doctor --pid '
lacks out '^  processor time'

# Long enough to be asked while it serves: objects have to be a second old.
for requests in 4000 16000 64000 256000 1024000; do
    expect 0 --backend tslab --leak --requests $requests
    [ "$(field out '"leak" in d')" = False ] || break
done
[ "$(field out 'd["leak"]["label"]')" = "POST /session" ] || complain "not named while requests were served"
has err 'the library names a leak: POST /session'

finish
