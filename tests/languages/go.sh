#!/bin/bash
# examples/go holds what it claims, with the library as it is installed; go vet has nothing to say.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
go=$("$TSLAB_SOURCE_DIR/scripts/find-go.sh" 2>said) || skip "no Go: $(tail -n 1 said)"
clean
cmake --install "$TSLAB_BUILD_DIR" --prefix "$PWD/first" >/dev/null || fail "no installation"
cp -r "$TSLAB_SOURCE_DIR/examples/go" example
lib=$PWD/$(dirname "$(find first -name libtemporal_slab.so)")
export PKG_CONFIG_PATH=$lib/pkgconfig LD_LIBRARY_PATH=$lib CGO_ENABLED=1 GOTOOLCHAIN=local GOFLAGS=-mod=mod GOPROXY=off CGO_CFLAGS="-O1 -Wall -Werror"
cd example || exit 1
"$go" vet . || fail "go vet"
"$go" build -o ../phases . || fail "it does not build"
[ -z "$("$(dirname "$go")/gofmt" -l . 2>/dev/null)" ] || fail "gofmt"
# A second run has Go check that no Go pointer is where C is: what cgo can see of it.
timeout 120 ../phases && GODEBUG=cgocheck=1 GOMAXPROCS=8 timeout 120 ../phases || fail "it ended with $?"
