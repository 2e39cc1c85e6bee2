# kit.bash - what the scripts of this folder share.
source=$TSLAB_SOURCE_DIR
skip() {
    echo "skipped: $*"
    exit 77
}
fail() {
    echo "FAILED: $*" >&2
    exit 1
}
# Go that can build tslab, with its modules: $go, or the test is skipped with the reason.
need_go() {
    go=$("$source/scripts/find-go.sh" 2>&1) || skip "$go"
    export GOTOOLCHAIN=local GOFLAGS=-buildvcs=false
    (cd "$source/tslab" && "$go" mod download) >download.log 2>&1 ||
        skip "the Go modules of tslab cannot be fetched: $(tail -n 1 download.log)"
}
build_tslab() { (cd "$source/tslab" && CGO_ENABLED=0 "$go" build -trimpath -o "$1" .) || fail "tslab does not build"; }
# eventually SECONDS COMMAND...: until it succeeds.
eventually() {
    local n=$(($1 * 20))
    shift
    while ! "$@"; do
        [ $((n -= 1)) -gt 0 ] || return 1
        sleep 0.05
    done
}
