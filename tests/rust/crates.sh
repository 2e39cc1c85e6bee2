#!/bin/bash
# The crates of rust/: formatted, without a word from clippy, with and without their features; their tests, the examples of their
# documentation, and what must not compile; documentation of each item, whose links lead somewhere; the library's version.
set -u
. "$TSLAB_SOURCE_DIR/tests/rust/kit.bash"
need_cargo
part() { sed -n "s/^#define TSLAB_VERSION_$1 //p" ../include/slab_alloc.h; }
version=$(part MAJOR).$(part MINOR).$(part PATCH)
[ "$(sed -n 's/^version = "\([^"]*\)".*/\1/p' Cargo.toml)" = "$version" ] || complain "rust/Cargo.toml is not of version $version"
grep -qF "version = \"=$version\"" Cargo.toml || complain "rust/Cargo.toml does not ask for tslab-sys $version"

run() { "$@" >"$CARGO_TARGET_DIR.log" 2>&1 || complain "$*: $(tail -n 60 "$CARGO_TARGET_DIR.log")"; }
if cargo fmt --version >/dev/null 2>&1; then run cargo fmt --check; else echo "skipped: no rustfmt"; fi
if cargo clippy --version >/dev/null 2>&1; then
    run cargo clippy --locked --quiet --all-targets -- -D warnings
    run cargo clippy --locked --quiet -p tslab --no-default-features -- -D warnings
else
    echo "skipped: no clippy"
fi
run cargo test --locked
grep -q '^test .* ok$' "$CARGO_TARGET_DIR.log" || complain "cargo test ran no test"
grep -E '^(test result|warning)' "$CARGO_TARGET_DIR.log"
grep -q '^warning' "$CARGO_TARGET_DIR.log" && complain "the tests compile with warnings"
RUSTDOCFLAGS="-D warnings" run cargo doc --locked --quiet --no-deps
finish
