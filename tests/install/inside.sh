#!/bin/bash
# The library inside of another project, by add_subdirectory or FetchContent: one library of the kind that BUILD_SHARED_LIBS asks
# for, static where it does not say, under the same name as that of an installed one. Nothing else is built, and nothing installed.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
clean
inside() { # WAY KIND OPTION...
    local way=$1 kind=$2 build=$1.$2
    shift 2
    cmake -G Ninja -S "$TSLAB_SOURCE_DIR/tests/install/inside" -B "$build" -DSOURCES="$TSLAB_SOURCE_DIR" -DWAY="$way" \
        -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG=$cheap "$@" >said 2>&1 || fail "$build: $(tail said)"
    ninja -C "$build" -t targets all >targets
    lacks targets 'preload\|stats_dump\|tests_\|unit_'
    # The kind is what the program is linked with.
    ninja -C "$build" -t query program >linked
    case $kind in
    shared) has linked 'libtemporal_slab\.so' && lacks linked 'libtemporal_slab\.a' ;;
    static) has linked 'libtemporal_slab\.a' && lacks linked 'libtemporal_slab\.so' ;;
    esac
}
build() { # WAY KIND
    cmake --build "$1.$2" >said 2>&1 || fail "$1.$2 does not build: $(tail said)"
    "$1.$2/program" || fail "$1.$2: the program ended with $?"
    cmake --install "$1.$2" --prefix "$PWD/tree" >said 2>&1 || fail "$1.$2 is not installed: $(tail said)"
    [ "$(cd tree && find . -type f)" = ./bin/program ] || complain "$1.$2 installs $(find tree -type f)"
    [ "$(find "$1.$2" -name 'libtemporal_slab*.so' -o -name 'libtemporal_slab*.a' | wc -l)" -eq 1 ] ||
        complain "$1.$2 has $(find "$1.$2" -name 'libtemporal_slab*')"
}
inside subdirectory static
inside subdirectory shared -DBUILD_SHARED_LIBS=ON
inside fetch static -DBUILD_SHARED_LIBS=OFF
inside fetch shared -DBUILD_SHARED_LIBS=ON
build subdirectory static
if scale_reaches 1; then
    build fetch shared
    build subdirectory shared
    build fetch static
fi

# One kind alone, installed: the same name, by CMake and by pkg-config.
if scale_reaches 1; then kinds="static shared"; else kinds=static; fi
for kind in $kinds; do
    shared=$([ $kind = shared ] && echo ON || echo OFF)
    cmake -G Ninja -S "$TSLAB_SOURCE_DIR" -B one.$kind -DBUILD_SHARED_LIBS="$shared" -DTSLAB_BUILD_PRELOAD=OFF -DCMAKE_BUILD_TYPE=Debug \
        -DCMAKE_C_FLAGS_DEBUG=$cheap >said 2>&1 && cmake --build one.$kind >said 2>&1 || fail "$kind: $(tail said)"
    cmake --install one.$kind --prefix "$PWD/only.$kind" >said
    other=$([ $kind = shared ] && echo .a || echo .so)
    [ -z "$(find only.$kind -name "libtemporal_slab$other*")" ] || complain "$kind: not alone"
    cmake -G Ninja -S "$TSLAB_SOURCE_DIR/tests/install/consumer" -B use.$kind -DCMAKE_PREFIX_PATH="$PWD/only.$kind" -DONLY=ON >said 2>&1 &&
        cmake --build use.$kind >said 2>&1 || fail "$kind: $(tail said)"
    use.$kind/c_temporal_slab && use.$kind/cpp_temporal_slab || fail "$kind: the program fails"
    pc=$(dirname "$(find only.$kind -name temporal-slab.pc)")
    # shellcheck disable=SC2046  # flags are words
    cc "$TSLAB_SOURCE_DIR/tests/install/consumer/consumer.c" -o by_pkg_config $(PKG_CONFIG_PATH=$pc pkg-config --cflags --libs temporal-slab) \
        "-Wl,-rpath,$PWD/$(dirname "$pc")" && ./by_pkg_config || fail "$kind by pkg-config"
done
finish
