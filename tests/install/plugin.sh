#!/bin/bash
# A plugin with the static library inside may be unloaded while threads that have used it live, and exports no name of the
# library: linked by the CMake package, by pkg-config or by hand, with no flag for either.
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

cc -O1 -fPIC -shared -pthread -Ifirst/include "$source/plugin.c" "$lib/libtemporal_slab.a" -o by_hand.so

for plugin in by_*.so; do
    echo "$plugin"
    ! readelf -d "$plugin" | grep -qE 'NODELETE|temporal_slab' || fail "$plugin is kept by a flag, or needs the shared library"
    timeout 60 ./host "./$plugin" || fail "$plugin: the host ended with $?"
    exported=$(nm -D --defined-only "$plugin" | awk '{ print $3 }')
    [ "$exported" = plugin_use ] || fail "$plugin exports $exported"
done
# Nothing is asked of the loader where nothing can be unloaded: in a program, and in the shared library.
cc -O1 "$TSLAB_SOURCE_DIR/tests/install/consumer/consumer.c" -Ifirst/include "$lib/libtemporal_slab.a" -pthread -o program
LD_DEBUG=files ./program 2>&1 | grep 'opening file=' >opened || true
LD_DEBUG=files LD_PRELOAD=$lib/libtemporal_slab.so ./program 2>&1 | grep 'opening file=' >>opened || true
[ ! -s opened ] || fail "asked for $(cat opened)"
timeout 60 env LD_DEBUG=files ./host ./by_hand.so 2>&1 | grep -q 'opening file=./by_hand.so.*direct_opencount=2' || fail "LD_DEBUG says nothing"

# A program that is linked statically as a whole takes the flag without a word.
# shellcheck disable=SC2086  # flags are words
cc -static "$TSLAB_SOURCE_DIR/tests/install/consumer/consumer.c" -o static $flags 2>warnings
[ ! -s warnings ] || { cat warnings >&2; exit 1; }
./static
