#!/bin/bash
# Names the files of src/ that have grown past one comfortable read. A notice only: it never fails.
set -eu
cd "$TSLAB_SOURCE_DIR"
find src -name '*.[ch]' -exec awk 'END { if (NR > 540) print "notice: " FILENAME " has " NR " lines" }' {} \;
