# kit.bash - what the scripts of this folder share.
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
source=$TSLAB_SOURCE_DIR
# Go that can build tslab, with its modules: $go, or the test is skipped with the reason.
need_go() {
    go=$("$source/scripts/find-go.sh" 2>&1) || skip "$go"
    export GOTOOLCHAIN=local GOFLAGS=-buildvcs=false CGO_ENABLED=0 # the same for all: Go's own packages are compiled once
    (cd "$source/tslab" && "$go" mod download) >download.log 2>&1 ||
        skip "the Go modules of tslab cannot be fetched: $(tail -n 1 download.log)"
}
build_tslab() { (cd "$source/tslab" && "$go" build -o "$1" .) || fail "tslab does not build"; }
