#!/bin/bash
# An installed tree, moved elsewhere, serves pkg-config: shared, static and the name of the shared library.
set -eu
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
clean first moved
cmake --install "$TSLAB_BUILD_DIR" --prefix "$PWD/first" >/dev/null
mv first moved
# Relative, so that a blank in the path of the checkout does not end in the flags.
lib=$(dirname "$(find moved -name libtemporal_slab.a)")
export PKG_CONFIG_PATH=$lib/pkgconfig
source=$TSLAB_SOURCE_DIR/tests/install/consumer/consumer.c

# shellcheck disable=SC2046  # flags are words
cc "$source" -o shared $(pkg-config --cflags --libs temporal-slab)
LD_LIBRARY_PATH=$lib ./shared
# A soname of its own for each minor version before 1.0, and for each major one from there on; symbols say the same.
version=$(pkg-config --modversion temporal-slab | cut -d. -f1,2)
case $version in 0.*) ;; *) version=${version%.*} ;; esac
readelf -d shared | grep -q "NEEDED.*\[libtemporal_slab.so.$version\]"
readelf -sW shared | grep -q "slab_malloc.*@TSLAB_$version\b"
readelf -d "$lib/libtemporal_slab.so" | grep -q NODELETE

# shellcheck disable=SC2046  # flags are words
cc "$source" -o static $(pkg-config --cflags temporal-slab) "$lib/libtemporal_slab.a" -pthread
./static
