#!/bin/bash
# docs/results/programs.md is what tools/programs_page.py makes of docs/results/programs.json: numbers, means and verdicts. And
# a page that says something else is told of.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
need python3
clean
export PYTHONDONTWRITEBYTECODE=1
mkdir -p tree/docs/results tree/tools tree/bench/programs
cp "$TSLAB_SOURCE_DIR"/docs/results/programs.{md,json} tree/docs/results/
cp "$TSLAB_SOURCE_DIR"/tools/programs_page.py tree/tools/
cp "$TSLAB_SOURCE_DIR"/bench/programs/*.py tree/bench/programs/
check() { # STATUS
    local status=0
    python3 tree/tools/programs_page.py --check 2>err || status=$?
    [ $status -eq "$1" ] || complain "exit $status instead of $1: $(head -c 300 err)"
}
check 0
sed 's/geometric mean: at most 1.05 | [0-9.]*/geometric mean: at most 1.05 | 0.500/' tree/docs/results/programs.md >other
cmp -s other tree/docs/results/programs.md && complain "the page has no row of that goal"
cp other tree/docs/results/programs.md
check 1
cp "$TSLAB_SOURCE_DIR"/docs/results/programs.md tree/docs/results/
sed 's/"peak":\([0-9]\)/"peak":9\1/g' tree/docs/results/programs.json >other && mv other tree/docs/results/programs.json
check 1
# A page of patterns and servers beside the nine: each has its row, and the goals are those of the nine.
cp "$TSLAB_SOURCE_DIR"/docs/results/programs.json tree/docs/results/
python3 - tree <<'END' || complain "a page with further programs is not made"
import json, sys
sys.path.insert(0, sys.argv[1] + "/tools")
import programs_page
data = json.load(open(sys.argv[1] + "/docs/results/programs.json"))
before = programs_page.verdict(data)
row = {"wall": 1.0, "cpu": 1.0, "peak": 1 << 20, "final": 1 << 20, "faults": 10}
for name in ("like-larson", "pgbench"):
    data["results"][name] = {"glibc": [row], "tslab": [row | {"peak": 7 << 20}]}
data["left_out"].append("php: php is not installed")
page = programs_page.page(data)
assert programs_page.verdict(data) == before
assert "| like-larson | 1.0 MiB | 7.00 |" in page and "| pgbench | 1.0 MiB | 7.00 |" in page and "patterns.c" in page
assert "- php: php is not installed" in page
END
[ "$(stat -c %s "$TSLAB_SOURCE_DIR/docs/results/programs.png")" -lt $((300 << 10)) ] || complain "the picture is over 300 KB"
finish
