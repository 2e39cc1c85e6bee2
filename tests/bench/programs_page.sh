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
sed 's/"peak":\([0-9]\)/"peak":9\1/' tree/docs/results/programs.json >other && mv other tree/docs/results/programs.json
check 1
[ "$(stat -c %s "$TSLAB_SOURCE_DIR/docs/results/programs.png")" -lt $((300 << 10)) ] || complain "the picture is over 300 KB"
finish
