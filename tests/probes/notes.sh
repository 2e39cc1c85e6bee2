#!/bin/bash
# The notes in the built libraries are the probes of src/base/probes.h: every one, with its number of arguments, no other,
# each argument in a form that every tool reads (register, constant, or memory behind a register) and in few enough.
set -eu
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
header=$TSLAB_SOURCE_DIR/src/base/probes.h
compiler=$(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' "$TSLAB_BUILD_DIR/CMakeCache.txt")
grep -q '^TSLAB_USDT:BOOL=ON' "$TSLAB_BUILD_DIR/CMakeCache.txt" || skip "built with TSLAB_USDT=OFF"
echo '#include <sys/sdt.h>' | "$compiler" -E -x c - >/dev/null 2>&1 ||
    skip "<sys/sdt.h> is not installed (Debian package systemtap-sdt-dev)"

# NAME COUNT, a line each: from the parameters of tsi_probe_NAME, and what its body is called with.
wanted=$(sed -nE 's/^#define tsi_probe_([a-z_]+)\(([^)]*)\).*/\1 \2/p' "$header" |
    awk '{ name = $1; sub(/^[a-z_]+ /, ""); print name, gsub(/,/, ",") + 1 }' | sort)
[ "$(wc -l <<<"$wanted")" -ge 10 ] || complain "probes.h has a form that this test does not read: $wanted"
if awk '$2 > 6 { exit 1 }' <<<"$wanted"; then :; else complain "a probe has more than six arguments"; fi

# NAME ARGUMENTS of each note of our provider.
notes_of() {
    readelf -n "$1" 2>/dev/null | awk '$1 == "Provider:" { ours = $2 == "temporal_slab" } ours && $1 == "Name:" { name = $2 }
        ours && $1 == "Arguments:" { sub(/^ *Arguments: /, ""); print name " " $0 }'
}
for library in libtemporal_slab.so libtemporal_slab.a; do
    notes=$(notes_of "$TSLAB_BUILD_DIR/$library")
    found=$(awk '{ print $1, NF - 1 }' <<<"$notes" | sort -u)
    diff -u --label src/base/probes.h <(echo "$wanted") --label "$library" <(echo "$found") >&2 || complain "$library: not the probes of probes.h"
    unreadable=$(awk '{ for (n = 2; n <= NF; n++) print $n }' <<<"$notes" |
        grep -vE '^-?[1248]@(\$-?[0-9]+|-?[0-9]*\(%[a-z0-9]+\)|%[a-z0-9]+)$' || true)
    [ "$(uname -m)" != x86_64 ] || [ -z "$unreadable" ] || complain "$library: arguments that tools do not read:" $unreadable
    # Probes of a phase's end are told of only while their semaphores are raised; all places of one have one, and the others have none.
    raised=$(readelf -n "$TSLAB_BUILD_DIR/$library" 2>/dev/null | awk '$1 == "Provider:" { ours = $2 == "temporal_slab" } ours && $1 == "Name:" { name = $2 }
        ours && $1 == "Location:" { print name, ($NF ~ /^0x0*$/ ? "none" : "semaphore") }' | sort -u)
    listed=$(awk '{ print $1, ($1 ~ /^(epoch_close|close_.*|escape)$/ ? "semaphore" : "none") }' <<<"$wanted")
    # In an archive a semaphore's address is not known yet, and reads as 0.
    [ "$library" != libtemporal_slab.so ] || diff -u --label wanted <(echo "$listed") --label "$library" <(echo "$raised") >&2 || complain "$library: semaphores"
    echo "$library: $(wc -l <<<"$notes") places of $(wc -l <<<"$found") probes"
done
finish
