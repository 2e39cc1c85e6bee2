#!/bin/bash
# docs/coming-from/bumpalo.md: the program on a bump arena of Rust and the one on phases print the same. cargo is asked for nothing that it
# would have to fetch: `cargo fetch` in a project that uses bumpalo, once, brings the crate.
. "$TSLAB_SOURCE_DIR/tests/coming/kit.bash"
after bumpalo-after.c
command -v cargo >/dev/null || { echo "skipped: no cargo: only the program after was run"; exit 0; }
mkdir -p crate/src
cp "$code/bumpalo-before.rs" crate/src/main.rs
cat >crate/Cargo.toml <<'END'
[package]
name = "before"
version = "0.0.0"
edition = "2021"
[dependencies]
bumpalo = { version = "3", features = ["collections"] }
END
cd crate
cargo metadata --offline --format-version 1 >/dev/null 2>../cargo.err ||
    { echo "skipped: cargo has no crate bumpalo 3 here: only the program after was run"; exit 0; }
RUSTFLAGS="-D warnings" cargo build --quiet --offline --target-dir ../target
cd ..
target/debug/before >before.out || fail "the program before ends with $?"
same_as_after bumpalo-before.rs
