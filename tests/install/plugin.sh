#!/bin/bash
# A plugin with the static library inside may be unloaded while threads that have used it live: linked by the CMake package, by
# pkg-config or by hand as docs/production.md says.
set -eu
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
clean first build by_*
cmake --install "$TSLAB_BUILD_DIR" --prefix "$PWD/first" >/dev/null
source=$TSLAB_SOURCE_DIR/tests/install/plugin
lib=$(dirname "$(find first -name libtemporal_slab.a)")
cc -O1 -pthread "$source/host.c" -o host -ldl

cmake -G Ninja -S "$source" -B build -DCMAKE_PREFIX_PATH="$PWD/first" >/dev/null
cmake --build build >/dev/null
cp build/libplugin.so by_cmake.so

# The archive itself: -ltemporal_slab would take the shared library, which is never unloaded anyway.
export PKG_CONFIG_PATH=$lib/pkgconfig
flags=$(pkg-config --cflags --libs --static temporal-slab | sed "s#-ltemporal_slab#-l:libtemporal_slab.a#")
# shellcheck disable=SC2086  # flags are words
cc -O1 -fPIC -shared "$source/plugin.c" -o by_pkg_config.so $flags

cc -O1 -fPIC -shared -pthread -Ifirst/include "$source/plugin.c" "$lib/libtemporal_slab.a" -Wl,-z,nodelete -o by_hand.so

for plugin in by_*.so; do
    echo "$plugin"
    timeout 60 ./host "./$plugin" || { echo "FAILED: $plugin: the host ended with $?" >&2; exit 1; }
    readelf -d "$plugin" | grep -q 'temporal_slab' && { echo "FAILED: $plugin needs the shared library" >&2; exit 1; }
done

# A program that is linked statically as a whole takes the flag without a word.
# shellcheck disable=SC2086  # flags are words
cc -static "$TSLAB_SOURCE_DIR/tests/install/consumer/consumer.c" -o static $flags 2>warnings
[ ! -s warnings ] || { cat warnings >&2; exit 1; }
./static
