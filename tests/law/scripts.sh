#!/bin/bash
# Each script of scripts/ refuses an option that it does not have: with status 2, a line on standard error that begins with
# its name or its usage, and nothing done.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
clean
scripts=0
for script in "$TSLAB_SOURCE_DIR"/scripts/*.sh "$TSLAB_SOURCE_DIR"/scripts/incidents/*.sh; do
    [ -x "$script" ] || continue # to be sourced
    scripts=$((scripts + 1)) status=0
    timeout 60 "$script" --nonsense >out 2>err </dev/null || status=$?
    name=$(basename "$script")
    [ $status -eq 2 ] && head -n 1 err | grep -qE "^(usage: )?$name(:|,| |$)" && [ ! -s out ] || complain "$name --nonsense: exit $status, $(head -c 300 out err)"
done
[ $scripts -gt 20 ] || complain "only $scripts scripts"
finish
