#!/bin/bash
# cargo packages both crates, and builds each from its package alone, the library's sources included: c/ leads to them, and the
# package has files. What is packaged is what git has.
set -u
. "$TSLAB_SOURCE_DIR/tests/rust/kit.bash"
need git
need_cargo
# Several crates at once, of which one needs the other: since 1.90.
version=$(cargo --version | awk '{ print $2 }')
[ "$(printf '1.90\n%s\n' "$version" | sort -V | head -n 1)" = 1.90 ] || skip "cargo $version does not package crates that need each other"
git -C "$TSLAB_SOURCE_DIR" rev-parse --verify -q HEAD >/dev/null || skip "no git repository: cargo packages what git has"
unset TSLAB_LIB_DIR
# What cargo has unpacked once of a registry it takes again, and that in which it puts the packages has the same name and version each
# time: so its home is a fresh one, with what was fetched. What was built stays.
had=${CARGO_HOME:-$HOME/.cargo} home=${CARGO_TARGET_DIR%/*}/home
rm -rf "$home" "$CARGO_TARGET_DIR/package" "$CARGO_TARGET_DIR"/debug/{deps,.fingerprint,build,incremental}/*tslab*
mkdir -p "$home"/registry/{index,cache}
for kept in "$had"/config "$had"/config.toml "$had"/registry/{index,cache}/*{crates.io,github.com}*; do
    [ ! -e "$kept" ] || ln -s "$kept" "$home${kept#"$had"}"
done
export CARGO_HOME=$home
# Whether the sources compile is asked here; optimised they were before.
export CFLAGS=-O0
cargo package --locked --allow-dirty -p tslab-sys -p tslab >"$CARGO_TARGET_DIR.log" 2>&1 ||
    fail "cargo package: $(tail -n 40 "$CARGO_TARGET_DIR.log")"
for crate in tslab-sys tslab; do
    grep -q "Verifying $crate v" "$CARGO_TARGET_DIR.log" || complain "$crate was not built from its package"
    for package in "$CARGO_TARGET_DIR/package/$crate"-[0-9]*.crate; do tar tzvf "$package"; done >"$CARGO_TARGET_DIR.$crate"
    grep -qE '^l' "$CARGO_TARGET_DIR.$crate" && complain "the package of $crate has links: $(grep '^l' "$CARGO_TARGET_DIR.$crate")"
    has "$CARGO_TARGET_DIR.$crate" '/LICENSE$'
    has "$CARGO_TARGET_DIR.$crate" '/README.md$'
done
for file in include/slab_alloc.h src/heap/alloc.c src/api/domain.c src/stats/metrics.def; do
    has "$CARGO_TARGET_DIR.tslab-sys" "/c/$file\$"
done
sources=$(find "$TSLAB_SOURCE_DIR"/src -mindepth 2 -name '*.[ch]' | wc -l)
[ "$(grep -c '/c/src/.*\.[ch]$' "$CARGO_TARGET_DIR.tslab-sys")" -eq "$sources" ] || complain "the package has not all $sources sources"
finish
