#!/bin/sh
# Incident 2: resident memory grows and does not come back. One route of a server keeps one object in a hundred.
# Which one? Phases that have ended and still hold objects are added up by label.
#
# Usage: leak.sh [--no-fault]              Exit status: 0 the route is named, 1 it is not, 2 something is missing.
# Environment: TSLAB_BUILD_DIR, TSLAB=none (do without tslab), PATIENCE (s until the numbers have to show it)
name=leak.sh
needs="tslabd curl"
# shellcheck source=scripts/incidents/kit.sh
. "$(dirname "$0")/kit.sh"

step "A server; requests are phases, and their routes are labels"
policy=leak:1
[ $fault = yes ] || policy=within_req
begin_with segment=1 "tslabd --listen=127.0.0.1:0 --pattern=leak --free_policy=$policy --leak_threshold_s=1 >address"
(PATIENCE=180; until_seen "grep -q http address") || # however little patience there is for what comes then
     die "tslabd did not begin"
url=$(sed -n 's|^tslabd: \(http://[^ ]*\)/ .*|\1|p' address)
curl="curl -sS --max-time 10"
metric() { $curl "$url/metrics" | sed -n "s/^temporal_slab_$1 //p"; }

step "Memory grows"
first=$(metric committed_bytes)
grown() { now=$(metric committed_bytes) && [ "${now:-0}" -gt $((first + 1048576)) ]; }
show "$curl $url/metrics | grep -E '^temporal_slab_(committed|live|rss)_bytes '"
until_seen grown || echo "it does not grow"
show "$curl $url/metrics | grep -E '^temporal_slab_(committed|live|rss)_bytes '"

step "Which label holds the memory?"
if [ $tslab = yes ]; then
    show "tslab top --pid $pid --labels -n 4"
    show "tslab top --pid $pid --phases --by age_ns -n 3"
else
    rows='"(label|live_objects|committed_bytes|phases_draining)":("[^"]*"|[0-9]+)'
    show "stats_dump --no-text --pid $pid | tr '{' '\n' | grep phases_draining | grep -o -E '$rows' | paste - - - -"
fi

step "Is it a leak? The doctor counts ended phases that hold objects for a second and more"
# shellcheck disable=SC2016  # expanded there
until_seen '[ $fault = no ] || $curl "$url/doctor" | grep -q "leaks [0-9]"' || echo "the doctor sees none"
show "$curl $url/doctor >doctor; sed -n '/^1/,/^2/p' doctor | sed '\$d'"
# What the process shows of itself is a little older than what it says when it is asked.
# shellcheck disable=SC2016  # expanded there
[ $tslab = no ] || [ $fault = no ] || until_seen 'tslab doctor --pid "$pid" --leak-age 1 | grep -q "leaks [0-9]"' ||
    echo "tslab sees none"
[ $tslab = no ] || show "tslab doctor --pid $pid --leak-age 1 >seen; sed -n '/^1/,/^2/p' seen | sed '\$d'"
end "$pid"

culprit='ACTION: "POST /orders" leaks'
if grep -E 'ACTION: ".*" leaks' doctor | grep -v -q "$culprit"; then
    echo "another label is accused" >&2
    exit 1
fi
[ $tslab = no ] || grep -q 'ACTION: "POST /orders"' seen || diagnosis seen "$culprit" "POST /orders (by tslab)"
diagnosis doctor "$culprit" "the route POST /orders leaks"
echo "  Remedy: slab_epoch_walk_era lists what is left of that phase; free it there, or release the phase as a whole."
