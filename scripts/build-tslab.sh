#!/bin/sh
# Builds the command line tool of tslab/: build/tslab, a static program, and beside it in build/tslab-share what
# `make install` installs with it, manual pages and shell completions.
set -eu
[ $# -eq 0 ] || {
    echo "build-tslab.sh: takes no argument, not '$1'" >&2
    exit 2
}
cd "$(dirname "$0")/.."

go=$(scripts/find-go.sh)
part() { sed -n "s/^#define TSLAB_VERSION_$1 //p" include/slab_alloc.h; }
version=$(part MAJOR).$(part MINOR).$(part PATCH)
out=$PWD/build/tslab
share=$PWD/build/tslab-share

mkdir -p build
(cd tslab && CGO_ENABLED=0 GOTOOLCHAIN=local "$go" build -trimpath \
    -ldflags "-s -w -X temporal-slab/tslab/internal/cli.Version=$version" -o "$out" .)
rm -rf "$share"
mkdir -p "$share/bash-completion/completions" "$share/zsh/site-functions" "$share/fish/vendor_completions.d"
"$out" man "$share/man/man1" >/dev/null
"$out" completion bash >"$share/bash-completion/completions/tslab"
"$out" completion zsh >"$share/zsh/site-functions/_tslab"
"$out" completion fish >"$share/fish/vendor_completions.d/tslab.fish"
echo "build/tslab $version"
