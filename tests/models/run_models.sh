#!/bin/bash
# Runs the protocol models of models.list exhaustively and fails unless each ends as the list says: "ok" without an
# error, "caught" with one. One line per run. Needs spin and a C compiler; without spin it is skipped (77).
#
#   run_models.sh [PATTERN]   only lines of the list that match the extended regular expression
#   TSLAB_TEST_SCALE=n        n > 1: also those marked `check`, which take longest and have smaller ones beside them; n < 1: of the
#                             mutants one of each model, and nothing marked `one`
#   LONG=1                    these, and the larger bounds marked `long` (minutes, gigabytes)
#   JOBS=n  RUN_SECONDS=n     runs at a time; limit of one run
set -u
here=${TSLAB_SOURCE_DIR:+$TSLAB_SOURCE_DIR/tests/models}
here=${here:-$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)}
. "$here/../kit.bash"
need spin "spin is not installed"

long=${LONG:-0}
if [ "$long" = 1 ]; then seconds=${RUN_SECONDS:-1200} megabytes=8000 table=26
else seconds=${RUN_SECONDS:-400} megabytes=2000 table=22; fi
depth=20000 # a deeper search says so: truncated
[ "$long" = 0 ] || depth=1000000
quick="${CC:-gcc} -O0" # tcc's search is a tenth slower, and it compiles in a thirtieth of the time
if command -v tcc >/dev/null; then quick=tcc; fi
build=$(mktemp -d) || exit 1
trap 'rm -rf "$build"' EXIT

# whether a line of the list is to be run, by its mark and what is expected
wanted() { # MARK FILE EXPECTED
    case $1 in
        # Mutants show that a model can fail: below scale 1 one of each model does.
        '') [ "$3" = ok ] || [ "$long" = 1 ] || scale_reaches 1 || [[ $mutated != *" $2 "* ]] ;;
        one) [ "$long" = 1 ] || scale_reaches 1 ;;
        check) [ "$long" = 1 ] || scale_reaches 2 ;;
        long) [ "$long" = 1 ] ;;
        *) echo "models.list: no line can be '$1'" >&2; exit 1 ;;
    esac
}

# run NUMBER FILE DEFINES MUTANT EXPECTED [long]: leaves one line in $build/NUMBER.out; status 0 when as expected
run() {
    local dir=$build/$1 compiler=$quick file=$2 defines=$3 mutant=$4 expected=$5 flags=() d result states reached start=$SECONDS status
    [ "$defines" = - ] || for d in ${defines//,/ }; do flags+=("-D$d"); done
    [ "$mutant" = - ] || flags+=("-D$mutant")
    [ "${6:-}" != long ] || compiler="${CC:-gcc} -O1" # otherwise compiling takes longer than the search
    mkdir "$dir" && cd "$dir" || return 1
    states=- reached=-
    # shellcheck disable=SC2086  # $compiler is a command and its flags
    # spin looks for included files beside the model; -a writes pan.* here
    if ! timeout 300 spin -a "${flags[@]}" "$here/$file" >spin.log 2>&1 || grep -qi '^spin:.*error' spin.log; then
        result=broken-model
    elif ! timeout 300 $compiler -w -DSAFETY -DMEMLIM=$megabytes -o pan pan.c >cc.log 2>&1; then
        result=no-compile
    else
        timeout "$seconds" ./pan -m$depth -w$table >pan.log 2>&1
        status=$?
        states=$(sed -nE 's/^ *([0-9.e+]+) states, stored.*/\1/p' pan.log)
        reached=$(sed -nE 's/.*depth reached ([0-9]+).*/\1/p' pan.log)
        if [ $status = 124 ]; then result=timeout
        elif grep -q 'max search depth too small' pan.log; then result=truncated
        elif grep -qE 'pan:[0-9]+: *(assertion violated|invalid end state)' pan.log; then result=caught
        elif grep -qE 'Search not completed|reached -DMEMLIM|out of memory' pan.log; then result=incomplete
        elif [ $status = 0 ] && grep -q 'errors: 0' pan.log; then result=ok
        else result=failed; fi
    fi
    { printf '%-8s expected %-7s %11s states  depth %-7s %4ds  %s %s %s\n' "$result" "$expected" "${states:--}" \
        "${reached:--}" $((SECONDS - start)) "$file" "$defines" "$mutant"
      [ "$result" = "$expected" ] || { echo "    NOT AS EXPECTED"; grep -h '^pan:1' pan.log 2>/dev/null; tail -n 5 spin.log; }
    } >"$build/$1.out"
    cat "$build/$1.out" # one write: lines of parallel runs do not mix
    rm -rf "$dir"
    [ "$result" = "$expected" ]
}

# Which memory models each model is explored with, from the list, or why not, from memory.list; 1 if one has neither.
memory_models() {
    local file runs short way reason status=0
    for file in "$here"/*.pml; do
        file=${file##*/}
        grep -q "^$file " "$here/models.list" || continue # included by others
        runs=$(grep -cE "^$file ([^ ]+,)?PSO(,[^ ]+)? - ok" "$here/models.list")
        short=$(grep -cE "^$file ([^ ]+,)?PSO(,[^ ]+)? - ok( one)?$" "$here/models.list")
        read -r _ way reason < <(grep "^$file " "$here/memory.list")
        if grep -q '^#include "mm.pml"' "$here/$file" && [ "$runs" -gt 0 ] && [ -z "$way" ]; then
            printf '%-16s store buffers, partial store order: %s runs that must be ok, %s of them not only in longer forms\n' "$file" "$runs" "$short"
        elif [ "$runs" = 0 ] && [[ $way =~ ^(none|own|open)$ ]] && [ -n "$reason" ]; then
            printf '%-16s %s: %s\n' "$file" "$way" "$reason"
        else
            printf '%-16s NOT AS EXPECTED: %s runs with PSO, memory.list says "%s"\n' "$file" "$runs" "$way $reason"
            status=1
        fi
    done
    while read -r file _; do
        [[ $file == \#* ]] || [ -f "$here/$file" ] || { echo "memory.list: no $file"; status=1; }
    done <"$here/memory.list"
    return $status
}

n=0 left=0 failed=0 jobs=${JOBS:-2} running=0 mutated=""
while read -r file defines mutant expected only; do
    case $file in '' | '#'*) continue ;; esac
    [ $# = 0 ] || grep -qE -- "$1" <<<"$file $defines $mutant" || continue
    wanted "${only:-}" "$file" "${expected:-}" || { left=$((left + 1)); continue; }
    [ "${expected:-}" = ok ] || mutated="$mutated $file "
    case ${expected:-} in ok | caught) ;; *) echo "models.list: '$file $defines $mutant $expected'" >&2; exit 1 ;; esac
    [ -f "$here/$file" ] || { echo "models.list: no $file" >&2; exit 1; }
    if [ $running -ge "$jobs" ]; then
        wait -n || failed=$((failed + 1))
        running=$((running - 1))
    fi
    n=$((n + 1)) running=$((running + 1))
    (trap - EXIT; run $n "$file" "$defines" "$mutant" "$expected" "${only:-}") &
done <"$here/models.list"
for (( ; running > 0; running--)); do wait -n || failed=$((failed + 1)); done

memory_models || failed=$((failed + 1))
echo "$n runs, $failed not as expected, ${SECONDS}s; $left left to longer forms (make check, LONG=1)"
[ $n -gt 0 ] && [ $failed = 0 ]
