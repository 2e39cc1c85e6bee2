#!/bin/bash
# docs/results/server.md is what tools/server_page.py makes of docs/results/server.json, and a page that says something else is told
# of. Then goals on numbers made up: which are reached, missed or not judged.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
need python3
clean
export PYTHONDONTWRITEBYTECODE=1
results=$TSLAB_SOURCE_DIR/docs/results
mkdir -p tree/docs/results tree/tools tree/demo/server tree/bench/programs
cp "$results"/server.{md,json} tree/docs/results/
cp "$TSLAB_SOURCE_DIR"/tools/server_page.py tree/tools/
cp "$TSLAB_SOURCE_DIR"/demo/server/measure.py tree/demo/server/
cp "$TSLAB_SOURCE_DIR"/bench/programs/*.py tree/bench/programs/
check() { # STATUS
    local status=0
    python3 tree/tools/server_page.py --check 2>err || status=$?
    [ $status -eq "$1" ] || complain "exit $status instead of $1: $(head -c 300 err)"
}
check 0
sed 's/"peak":\([0-9]\)/"peak":9\1/' tree/docs/results/server.json >other && mv other tree/docs/results/server.json
check 1
cp "$results"/server.json tree/docs/results/
echo >>tree/docs/results/server.md
check 1
for picture in "$results"/server-*.png; do
    [ "$(stat -c %s "$picture")" -lt $((300 << 10)) ] || complain "$picture is over 300 KB"
done
python3 - tree <<'END' || complain "pages of numbers made up"
import sys
sys.path.insert(0, sys.argv[1] + "/tools")
import server_page as p
def segment(kind, latency, rss):
    part = {"latency": latency}
    return {"kind": kind, "reads": part, "orders": part, "served": 100, "cpu": 0.01, "faults": 50, "resident": {"rss": rss}}
def result(name, rss, cpu):
    segments = [segment("calm", [[1000, 99], [5000, 1]], rss), segment("burst", [[2000, 100]], 2 * rss), segment("calm", [[1000, 100]], rss)]
    for s in segments:
        s["cpu"] = cpu
    routes = {"GET /a": {"phases": 4, "objects_allocated": 40, "bytes_allocated": 4096, "objects_escaped": 0}}
    return {"allocator": name, "turn": 0, "segments": segments, "samples": [[0.5, rss, "calm"], [1.0, 3 * rss, "burst"]], "rest": {"rss": rss},
            "figures": {"open_max": 7, "routes": routes}}
run = {name: 1 for name in p.FACTS} | {"seconds": 60, "cycle": 60, "scale": 1, "together": False, "load": 0.1, "failures": [],
       "results": [result("glibc", 100 << 20, 0.01), result("tslab", 90 << 20, 0.01), result("phases", 50 << 20, 0.0105)]}
kept = p.reduced(run)
text = "\n".join(p.verdict(kept))
assert text.count("reached") == 5 and "missed" not in text and "| 1.05 |" in text and "| 0.50 times as much as glibc |" in text, text
page = p.page([kept])
assert "| glibc | 300.0 | 200.0 | 100.0 | 100.0 | 7 | 0.50 | 100 |" in page, page
assert "| glibc | 1.0 | 1.0 | 5.0 | 5 | 2.0 | 2.0 | 2.0 | 2 | 300 |" in page, page
assert "| GET /a | 4 | 10 | 1.0 | 0 |" in page and '`make server ARGS="--seconds 60"`' in page, page
run["load"], run["results"][2] = 3.0, result("phases", 110 << 20, 0.02)
text = "\n".join(p.verdict(p.reduced(run)))
assert text.count("missed") == 4 and text.count("not judged: the machine did other work") == 1, text
run["failures"] = ["phases: lost"]
assert "- failed: phases: lost" in p.page([p.reduced(run)])
END
finish
