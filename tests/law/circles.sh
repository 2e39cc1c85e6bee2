#!/bin/bash
# No file of src/ includes, over others, what includes it: NAME.h and NAME.c are one module, which its tests and its
# readers can take by itself.
set -eu
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
cd "$TSLAB_SOURCE_DIR"

# "FROM TO" for each include of one module by another.
edges() {
    grep -rnE --include='*.c' --include='*.h' '^[ \t]*#[ \t]*include[ \t]*"' src |
        sed -nE 's,^src/([^:]*)\.[ch]:[0-9]+:[^"]*"([^"]*/[^"]*)\.[a-z]+".*,\1 \2,p' | awk '$1 != $2' | sort -u
}
# Prints the modules that are in a circle or between two: those that stay when who includes none that stays, or is
# included by none, is taken away as often as there is one.
circles() {
    awk '{ from[NR] = $1; to[NR] = $2; left[NR] = 1 }
        END {
            for (changed = 1; changed;) {
                changed = 0
                split("", out); split("", in_)
                for (n = 1; n <= NR; n++) if (left[n]) { out[from[n]]++; in_[to[n]]++ }
                for (n = 1; n <= NR; n++)
                    if (left[n] && (!(to[n] in out) || !(from[n] in in_))) { left[n] = 0; changed = 1 }
            }
            for (n = 1; n <= NR; n++) if (left[n]) { print from[n]; print to[n] }
        }' | sort -u
}

[ "$(printf 'a/x a/y\na/y a/z\na/z a/y\na/z b/w\n' | circles | xargs)" = "a/y a/z" ] || fail "circles finds none in one"
edges >"$scratch/edges" || fail "no includes found"
[ "$(wc -l <"$scratch/edges")" -gt 100 ] || fail "too few includes found"
found=$(circles <"$scratch/edges")
[ -z "$found" ] || complain "include each other, over whatever is between: $(xargs <<<"$found")"
finish
