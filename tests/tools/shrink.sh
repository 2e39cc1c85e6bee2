#!/bin/bash
# tests/model/shrink.py finds the three operations of a run that lead to a fault that was planted, as few as there can be, and
# what it prints fails by itself, and can be saved and replayed; a run that does not fail, wrong words and bad files are told.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
unset TSLAB_OPTIONS
program=$TSLAB_BUILD_DIR/tests/model/model_test
[ -x "$program" ] || skip "there is no model_test in $TSLAB_BUILD_DIR"
shrink=$TSLAB_SOURCE_DIR/tests/model/shrink.py

for threads in 1 4; do
    "$shrink" "$program" --seed 77 --ops 4000 --threads $threads --planted --save saved.run >said 2>errors || fail "status $?: $(tail -n 3 said errors)"
    grep -q '^FAILED .*the fault that was planted' said || fail "the failure is another one: $(cat said)"
    grep -q '^3 of [0-9]* operations fail, found in [0-9]* attempts:$' said || fail "not the three operations: $(tail -n 2 said)"
    tail -n 1 said >command
    bash command >again 2>errors && fail "what was found does not fail: $(cat command)"
    grep -q 'the fault that was planted' errors || fail "what was found fails in another way: $(cat errors)"
    [ "$(awk '$1 == "op" { print $3 }' saved.run | paste -sd' ')" = 'misuse domain_drain realloc' ] || fail "saved: $(cat saved.run)"
    "$program" --replay saved.run >again 2>errors || fail "what was saved fails without the fault: $(cat errors)"
    grep -q "^seed 77: .*, $threads threads" errors || fail "another run was replayed: $(cat errors)"
done

"$shrink" "$program" --seed 77 --ops 300 --threads 1 >said 2>errors
[ $? -eq 1 ] && grep -q 'does not fail' errors || fail "a run that passes: $(cat said errors)"
for line in "op 3 nonsense" "op 9 alloc" "nonsense" "threads 99"; do
    printf 'seed 1\nops 9\n%s\n' "$line" >bad.run
    "$program" --replay bad.run >said 2>errors
    [ $? -eq 2 ] && grep -q '^model_test: bad.run' errors || fail "a file with '$line': $(cat said errors)"
done
for words in "--keep 3" "--keep 3-1 --seed 1 --ops 9" "--keep x --seed 1 --ops 9" "--threads 99"; do
    # shellcheck disable=SC2086 # words
    "$program" $words >said 2>errors
    [ $? -eq 2 ] && grep -q '^usage: model_test' errors || fail "model_test $words: $(cat said errors)"
done
