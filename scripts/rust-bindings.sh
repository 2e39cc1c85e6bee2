#!/bin/sh
# Writes rust/tslab-sys/src/bindings.rs from include/*.h, with bindgen (`cargo install bindgen-cli`), after a header has changed.
# Usage: rust-bindings.sh
# The file is committed, so nobody else needs bindgen; the test rust/bindings compares it with the headers by gcc.
set -eu
[ $# -eq 0 ] || {
    echo "usage: rust-bindings.sh, see its head" >&2
    exit 2
}
cd "$(dirname "$0")/.."
command -v bindgen >/dev/null || {
    echo "rust-bindings.sh: no bindgen in PATH: cargo install bindgen-cli" >&2
    exit 1
}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for header in epoch_domain slab_diagnostics slab_lane slab_segment slab_stats; do
    echo "#include <$header.h>"
done >"$scratch/headers.h"
bindgen "$scratch/headers.h" --disable-header-comment --no-doc-comments --use-core --rust-target 1.81 --rust-edition 2021 \
    --raw-line '// Written by scripts/rust-bindings.sh; do not edit. The C headers have the words.' \
    --default-enum-style consts --no-prepend-enum-name --merge-extern-blocks --sort-semantically --with-derive-default \
    --allowlist-file '(.*/)?include/(epoch_domain|slab_[a-z]*)\.h' --blocklist-item '[a-z_]*_' --blocklist-item '[A-Z_]*_' \
    --rustfmt-configuration-file "$PWD/rust/rustfmt.toml" -o "$scratch/bindings.rs" -- -Iinclude
mv "$scratch/bindings.rs" rust/tslab-sys/src/bindings.rs
