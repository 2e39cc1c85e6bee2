#!/bin/bash
# The crate's own unsafe code under Miri, which is part of nightly toolchains of rustup: no use after an end, no pointer of two owners,
# no leak. What C does is stood in for, see rust/tslab/tests/miri.rs.
set -u
. "$TSLAB_SOURCE_DIR/tests/rust/kit.bash"
need_cargo
export RUSTUP_TOOLCHAIN=nightly
cargo miri --version >/dev/null 2>&1 || skip "no Miri: rustup toolchain install nightly -c miri"
CARGO_NET_OFFLINE=false cargo miri setup >"$CARGO_TARGET_DIR.log" 2>&1 || skip "Miri has no standard library here: $(tail -n 1 "$CARGO_TARGET_DIR.log")"
cargo miri test --locked -p tslab --test miri >"$CARGO_TARGET_DIR.log" 2>&1 || fail "$(tail -n 60 "$CARGO_TARGET_DIR.log")"
grep -E '^test result: ok\. [1-9]' "$CARGO_TARGET_DIR.log" || fail "Miri ran nothing: $(tail -n 20 "$CARGO_TARGET_DIR.log")"
