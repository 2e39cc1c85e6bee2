#!/bin/bash
# The port for vcpkg: its portfile makes a package in which CMake finds the library under the one name.
# vcpkg itself is not here: its functions are stand-ins (vcpkg/run.cmake), so this says what the portfile asks for, and not that
# vcpkg grants it.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
clean
port=$TSLAB_SOURCE_DIR/packaging/vcpkg/temporal-slab
linkages=static
! scale_reaches 1 || linkages="static dynamic"
for linkage in $linkages; do
    # The port is relative to the tree that it lies in.
    cmake -DPORT_DIR="$port" -DPACKAGES="$PWD/$linkage" -DBUILD="$PWD/build.$linkage" -DLINKAGE=$linkage -DFLAGS=$cheap \
        -P "$TSLAB_SOURCE_DIR/tests/package/vcpkg/run.cmake" >said 2>&1 || fail "$linkage: $(tail said)"
    for file in include/slab_alloc.h share/temporal-slab/{copyright,usage,temporal-slabConfig.cmake,temporal-slabTargets.cmake}; do
        [ -s "$linkage/$file" ] || complain "$linkage: no $file"
    done
    # What vcpkg refuses: programs outside of tools/, empty folders, absolute paths, a library of the other kind.
    [ ! -e $linkage/bin ] && [ ! -e $linkage/lib/cmake ] || complain "$linkage: bin or lib/cmake"
    [ -z "$(find $linkage -type d -empty)" ] || complain "$linkage: empty $(find $linkage -type d -empty)"
    grep -rlF "$PWD/$linkage" $linkage --include='*.cmake' --include='*.pc' | grep . && complain "$linkage: absolute paths"
    other=$([ $linkage = static ] && echo so || echo a)
    [ -z "$(find $linkage -name "libtemporal_slab.$other*")" ] || complain "$linkage: a library of the other kind"
    mv $linkage moved.$linkage
    cmake -G Ninja -S "$TSLAB_SOURCE_DIR/tests/install/consumer" -B use.$linkage -DONLY=ON -DCMAKE_PREFIX_PATH="$PWD/moved.$linkage" >said 2>&1 &&
        cmake --build use.$linkage >said 2>&1 && use.$linkage/c_temporal_slab || fail "$linkage: $(tail said)"
done
finish
