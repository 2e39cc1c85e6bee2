#!/bin/bash
# Ports of the protocols to Rust, explored by loom under C11's memory model: each holds in every execution that it finds, and each
# of the mutants fails in one. Not below scale 1 (scripts/run-tests.sh): loom alone takes half a minute to compile.
set -u
. "$TSLAB_SOURCE_DIR/tests/rust/kit.bash"
scale_reaches 1 || skip "loom is run at scale 1 and above, as in make test-all: this is $TSLAB_TEST_SCALE"
need_cargo tests/loom
run() { "$@" >"$CARGO_TARGET_DIR.log" 2>&1 || complain "$*: $(tail -n 60 "$CARGO_TARGET_DIR.log")"; }

if cargo fmt --version >/dev/null 2>&1; then run cargo fmt --check; else echo "skipped: no rustfmt"; fi
if cargo clippy --version >/dev/null 2>&1; then run cargo clippy --locked --quiet -- -D warnings; else echo "skipped: no clippy"; fi
run cargo build --locked --quiet
protocols=$CARGO_TARGET_DIR/debug/protocols
run "$protocols"
cat "$CARGO_TARGET_DIR.log"
[ "$(grep -c ': ok, [0-9]* executions$' "$CARGO_TARGET_DIR.log")" -eq 14 ] || complain "not all of fourteen checks were run"
[ "$(grep -c ' caught$' "$CARGO_TARGET_DIR.log")" -ge 39 ] || complain "fewer mutants than there were"

# Words that it does not know are errors, with those that it does.
"$protocols" lines >"$CARGO_TARGET_DIR.log" 2>&1
[ $? = 2 ] && grep -q 'no check is called lines; there are line-reuse' "$CARGO_TARGET_DIR.log" || complain "an unknown check: $(cat "$CARGO_TARGET_DIR.log")"
"$protocols" token NOTHING >"$CARGO_TARGET_DIR.log" 2>&1
[ $? = 2 ] && grep -q 'token has no mutant NOTHING; it has ARM_NO_RECOUNT' "$CARGO_TARGET_DIR.log" || complain "an unknown mutant: $(cat "$CARGO_TARGET_DIR.log")"
finish
