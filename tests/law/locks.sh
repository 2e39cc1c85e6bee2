#!/bin/bash
# Locks: docs/ARCHITECTURE.md lists what src/os/locks.def has; each kind of lock is given its place in the order, and each function whose name
# ends in _locked says which lock it wants held.
set -eu
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
cd "$TSLAB_SOURCE_DIR"

scripts/locks.sh --check >&2 || complain "docs/ARCHITECTURE.md does not list the locks of src/os/locks.def"
for name in $(sed -nE 's/^TSI_LOCK\(([A-Z_]+), .*/\1/p' src/os/locks.def); do
    grep -rqE "TSI_LOCK_OF\($name\)|TSI_LOCK_$name\)" src --include=*.c || complain "no lock is a $name"
done

# Definitions: a name at the start of a line, after its type, and a brace at the end of its head.
bare=$(awk '
    FNR == 1 { head = ""; name = "" }
    /^[A-Za-z].*_locked\(/ && !/;$/ { head = FILENAME ":" FNR; name = $0; open = 0 }
    head != "" && /\{$/ && !open { open = 1; next }
    head != "" && /\{.*\}$/ && !open { print head ": " name; head = ""; next } # on one line: nothing is held there
    head != "" && open { if (!/TSI_HOLDS\(/) print head ": " name; head = ""; seen++ }
    END { if (seen < 50) print "only " seen + 0 " functions found" }' $(find src -name '*.c'))
[ -z "$bare" ] || complain "_locked, and does not begin with TSI_HOLDS: $bare"
finish
