#!/bin/bash
# Each mutant of tests/mutants still applies: its file and its tests are there, its old text is in the sources exactly
# once. Whether the tests notice is for `make mutants`.
set -eu
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
need python3
# What each build needs is copied; folders of programs that are built on demand are not.
for folder in $(sed -nE 's,^file\(GLOB [a-z_]+ CONFIGURE_DEPENDS ([a-z]+)/.*,\1,p' "$TSLAB_SOURCE_DIR/CMakeLists.txt" | sort -u); do
    grep -q "^COPIED = .*\"$folder\"" "$TSLAB_SOURCE_DIR/tests/mutants/run.py" || fail "tests/mutants/run.py does not copy $folder"
done
exec python3 "$TSLAB_SOURCE_DIR/tests/mutants/run.py" --check
