# shellcheck shell=bash
# kit.bash - what the scripts that run cargo share.
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
unset TSLAB_OPTIONS RUSTFLAGS RUSTDOCFLAGS CARGO_BUILD_TARGET
# need_cargo [FOLDER]: cargo that can build the crates there, normally those of rust/, with what they need; or the test is skipped
# with the reason. What it builds is linked with the static library of this build, which is there already.
need_cargo() {
    need cargo "no cargo"
    export TSLAB_LIB_DIR=$TSLAB_BUILD_DIR CARGO_TARGET_DIR=$PWD/target CARGO_TERM_COLOR=never CARGO_INCREMENTAL=0
    cd "$TSLAB_SOURCE_DIR/${1:-rust}" || exit 1
    local version least
    version=$(cargo --version | awk '{ print $2 }')
    least=$(sed -n 's/^rust-version = "\([0-9.]*\)".*/\1/p' Cargo.toml)
    [ "$(printf '%s\n' "$least" "$version" | sort -V | head -n 1)" = "$least" ] || skip "cargo $version is older than $least"
    # Without the network cargo has what it fetched before, or nothing.
    local fetch="cargo fetch --locked --quiet --target $(rustc -vV | sed -n 's/^host: //p')"
    $fetch >"$CARGO_TARGET_DIR.log" 2>&1 || $fetch --offline >"$CARGO_TARGET_DIR.log" 2>&1 ||
        skip "the crates that tslab's tests use cannot be fetched: $(tail -n 1 "$CARGO_TARGET_DIR.log")"
    export CARGO_NET_OFFLINE=true
}
