#!/bin/bash
# Lines of src/, include/ and preload/ have 120 columns at most. A table (*.def) has a row to a line, however long.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
cd "$TSLAB_SOURCE_DIR" || exit 1
for file in $(find src include preload -type f ! -name '*.def' ! -name "*.md" ! -name CMakeLists.txt | sort); do
    long=$(awk 'length($0) > 120 { printf "%s%d", sep, FNR; sep = ", " }' "$file")
    [ -z "$long" ] || complain "$file: more than 120 columns in line $long"
done
finish
