#!/bin/bash
# The tests of tslab under AddressSanitizer, which sees objects of phases, and those with threads under ThreadSanitizer, with the
# library compiled for it. Both take a nightly toolchain and compile everything anew, the second the standard library, too: with
# TSLAB_TEST_SCALE above 1.
set -u
. "$TSLAB_SOURCE_DIR/tests/rust/kit.bash"
scale_reaches 2 || skip "the sanitizers of Rust, which run with TSLAB_TEST_SCALE above 1"
need_cargo
export RUSTUP_TOOLCHAIN=nightly
cargo --version >/dev/null 2>&1 || skip "no nightly toolchain of Rust"
target=$(rustc -vV | sed -n 's/^host: //p')
log=$CARGO_TARGET_DIR.log

export RUSTFLAGS=-Zsanitizer=address ASAN_OPTIONS=detect_leaks=0 # phases that are left open on purpose
cargo test --locked -p tslab --target "$target" --test phases --test memory --test tasks --test threads --test global >"$log" 2>&1 ||
    complain "AddressSanitizer: $(grep -v '^test .* ok$' "$log" | tail -n 60)"
grep -cE '^test result: ok\. [1-9]' "$log"
cargo test --locked -p tslab --target "$target" --test phases -- --ignored uses_an_object_after_its_end >"$log" 2>&1 &&
    complain "a use after the end of a phase was not seen"
has "$log" 'AddressSanitizer: heap-use-after-free'

command -v clang-14 >/dev/null || { echo "skipped: no clang-14: ThreadSanitizer was not run" && finish; }
[ -d "$(rustc --print sysroot)/lib/rustlib/src/rust/library" ] || { echo "skipped: no rust-src: ThreadSanitizer was not run" && finish; }
unset TSLAB_LIB_DIR
export RUSTFLAGS=-Zsanitizer=thread CC=clang-14 CFLAGS="-fsanitize=thread -g" TSAN_OPTIONS=halt_on_error=1
CARGO_NET_OFFLINE=false cargo test --locked -Zbuild-std -p tslab --target "$target" --target-dir "$CARGO_TARGET_DIR-thread" \
    --test threads --test tasks >"$log" 2>&1 || complain "ThreadSanitizer: $(grep -v '^test .* ok$' "$log" | tail -n 60)"
grep -cE '^test result: ok\. [1-9]' "$log"
finish
