#!/bin/bash
# A cdylib of Rust with the library inside may be unloaded while threads that have used it live, with no flag for it, and
# exports what it says itself and nothing of the library.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
need rustc "no rustc"
clean
source=$TSLAB_SOURCE_DIR/tests/install/plugin
cc -O1 -pthread "$source/host.c" -o host -ldl || exit 1
rustc -O --edition 2021 --crate-type cdylib -C panic=abort -L "native=$TSLAB_BUILD_DIR" -l static=temporal_slab \
    "$TSLAB_SOURCE_DIR/tests/rust/plugin.rs" -o libplugin.so || fail "the cdylib does not compile"
! readelf -d libplugin.so | grep -qE 'NODELETE|temporal_slab' || fail "it is kept by a flag, or needs the shared library"
exported=$(nm -D --defined-only libplugin.so | awk '{ print $3 }' | grep -v '^rust_')
[ "$exported" = plugin_use ] || fail "it exports $exported"
timeout 60 ./host ./libplugin.so || fail "the host ended with $?"
