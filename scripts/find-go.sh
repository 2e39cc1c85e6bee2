#!/bin/sh
# Prints the path of a Go that can build tslab/: the one in PATH, else /usr/local/go/bin/go.
# Without one it says what is needed and fails. Debian's own Go is too old; see https://go.dev/dl/.
set -eu
[ $# -eq 0 ] || {
    echo "find-go.sh: takes no argument, not '$1'" >&2
    exit 2
}
cd "$(dirname "$0")/.."

need=$(sed -n 's/^go \([0-9]*\.[0-9]*\).*/\1/p' tslab/go.mod)
found=""
for go in "$(command -v go || true)" /usr/local/go/bin/go; do
    [ -n "$go" ] && [ -x "$go" ] || continue
    has=$(GOTOOLCHAIN=local "$go" env GOVERSION 2>/dev/null | sed 's/^go//; s/[^0-9.].*//')
    oldest=$(printf '%s\n%s\n' "$need" "$has" | sort -V | head -n 1)
    if [ "$oldest" = "$need" ]; then
        echo "$go"
        exit 0
    fi
    found="$found $go is $has;"
done
echo "tslab needs Go $need or newer in PATH or in /usr/local/go;${found:- there is none.} See https://go.dev/dl/" >&2
exit 1
