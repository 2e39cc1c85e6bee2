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
    ! scale_reaches 1 || run cargo clippy --locked --quiet -p tslab --no-default-features -- -D warnings
    ! scale_reaches 1 || run cargo clippy --locked --quiet -p tslab-bench -- -D warnings
else
    echo "skipped: no clippy"
fi
run cargo test --locked
grep -q '^test .* ok$' "$CARGO_TARGET_DIR.log" || complain "cargo test ran no test"
grep -E '^(test result|warning)' "$CARGO_TARGET_DIR.log"
grep -q '^warning' "$CARGO_TARGET_DIR.log" && complain "the tests compile with warnings"
# The page for readers: what it shows compiles and runs.
newest() { find "$CARGO_TARGET_DIR/debug/deps" -name "lib$1-*.rlib" -printf '%T@ %p\n' | sort -n | tail -n 1 | cut -d' ' -f2; }
externs=()
for crate in tslab allocator_api2 hashbrown tokio; do externs+=(--extern "$crate=$(newest $crate)"); done
run rustdoc --edition 2021 --test -L dependency="$CARGO_TARGET_DIR/debug/deps" "${externs[@]}" ../docs/rust.md
[ "$(grep -c '^test .* ok$' "$CARGO_TARGET_DIR.log")" -eq 4 ] || complain "docs/rust.md has not four examples: $(cat "$CARGO_TARGET_DIR.log")"
[ "$(find tslab/tests/fail -name '*.rs' | wc -l) such lines" = "$(grep -oE '[0-9]+ such lines' ../docs/rust.md)" ] ||
    complain "docs/rust.md does not say how many lines must not compile"

# So does the line of the README.
{
    printf '```\nfn main() -> Result<(), tslab::Error> {\n    let slab = tslab::Allocator::new()?;\n'
    awk '/^```rust$/ { on = 1; next } /^```$/ { on = 0 } on' ../README.md
    printf '    Ok(())\n}\n```\n'
} >"$CARGO_TARGET_DIR.readme.md"
grep -q 'slab.scope' "$CARGO_TARGET_DIR.readme.md" || complain "the README has no line of Rust"
run rustdoc --edition 2021 --test -L dependency="$CARGO_TARGET_DIR/debug/deps" "${externs[@]}" "$CARGO_TARGET_DIR.readme.md"
[ "$(grep -c '^test .* ok$' "$CARGO_TARGET_DIR.log")" -eq 1 ] || complain "the README's line: $(cat "$CARGO_TARGET_DIR.log")"

RUSTDOCFLAGS="-D warnings" run cargo doc --locked --quiet --no-deps
scale_reaches 1 || finish # the benchmark compiles its peers

# The benchmark does what it says, in a few requests.
run cargo run --locked --quiet -p tslab-bench -- --reps 1 --requests 5
[ "$(grep -cE '^ +[0-9.]+ +[0-9.]+  (Box|mimalloc|bumpalo|tslab|the C)' "$CARGO_TARGET_DIR.log")" -eq 22 ] || complain "tslab-bench says $(cat "$CARGO_TARGET_DIR.log")"
cargo run --locked --quiet -p tslab-bench -- --reps none >"$CARGO_TARGET_DIR.log" 2>&1 && complain "tslab-bench takes --reps none"
finish
