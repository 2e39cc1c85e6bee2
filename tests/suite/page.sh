#!/bin/bash
# tools/suite_page.py: the page in docs/results is what the kept results say; a run is kept, made into a page and found again; what
# must be found: a number, a page or a reason that differs. Then who is ahead, on numbers made up (page.py).
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
need python3
clean
export PYTHONDONTWRITEBYTECODE=1
tool=$TSLAB_SOURCE_DIR/tools/suite_page.py
published=$TSLAB_SOURCE_DIR/docs/results

page() { # STATUS ARGUMENT...
    local wanted=$1
    shift
    expect "$wanted" python3 "$tool" "$@"
}

page 0 --check
for file in "$published"/suite/*; do
    [ -e "$file" ] || continue # nothing has been published
    [ "$(stat -c %s "$file")" -lt 300000 ] || complain "$file has 300,000 bytes or more"
done

expect 0 "$TSLAB_SOURCE_DIR/bench/suite/run.py" --build "$TSLAB_BUILD_DIR" --smoke --reps 2 --peers nowhere.tsv --out run \
    --only epoch_reclamation_demo churn_fixed benchmark_threads threads_shared
has out '14 runs, 0 failed' # of threads_shared there is none with glibc
mkdir results
page 0 --results results # no run yet: a page that says so
has results/tables/suite.md 'No run of it has been published'
page 0 --check --results results
echo >>results/tables/suite.md
page 1 --check --results results
cp "$published/suite-why.tsv" results
printf '%s\n' 'By hand.' '' '<!-- verdict -->' '<!-- end -->' >results/suite.md
page 0 run --results results --no-pictures
has results/suite.md '^Against glibc: .* won'
has results/suite.md '^By hand'
for text in '^## Verdict' '^## Figures of the founding papers' 'Run with --smoke' 'TSLAB_OPTIONS=shared=1 benchmark_threads' \
    'locks an operation, CoV' 'soak was not run' 'no list at nowhere.tsv'; do
    has results/tables/suite.md "$text"
done
[ -z "$(grep -n "$PWD" results/tables/suite.md results/suite/*)" ] || complain "a folder of this machine is told"
cp results/tables/suite.md first.md
cp results/suite.md by-hand.md
page 0 --results results --no-pictures
cmp first.md results/tables/suite.md || complain "the page made again is another one"
page 0 --check --results results

sed -i 's/^\(\["epoch_reclamation_demo","tslab",[0-9]*\),[0-9.]*/\1,77/' results/suite/numbers.json # its first column: resident KiB
page 1 --check --results results
has err '77'
page 0 --results results --no-pictures
page 0 --check --results results
sed -i '0,/ won, /s// lost, /' results/tables/suite.md
page 1 --check --results results
page 0 --results results --no-pictures
sed 's/ won, / lost, /' by-hand.md >results/suite.md
page 1 --check --results results
has err ' lost, '
echo 'By hand.' >results/suite.md
page 1 --check --results results
has err 'no place for the verdict'
cp by-hand.md results/suite.md
printf 'churn_fixed\tlatency.nothing_ns\tthere is no such thing\n' >>results/suite-why.tsv
page 1 --results results --no-pictures
has err 'suite-why.tsv: line'
echo '{"format": 1' >results/suite/curves.json
page 1 --check --results results
page 1 run/nowhere --results results
page 2 --check run
page 2 --chek

expect 0 python3 "$TSLAB_SOURCE_DIR/tests/suite/page.py"
if /usr/bin/python3 -c 'import matplotlib' 2>none; then
    rm results/suite-why.tsv
    expect 0 /usr/bin/python3 "$tool" run --results results
    for name in overview tails scaling waiting memory; do
        [ -s "results/suite/$name.png" ] || complain "there is no picture $name"
    done
    [ ! -e results/suite/http.png ] || complain "a picture of what was not run"
    cp results/suite/overview.png first.png
    expect 0 /usr/bin/python3 "$tool" --results results
    cmp first.png results/suite/overview.png || complain "the picture drawn again is another one"
fi
finish
