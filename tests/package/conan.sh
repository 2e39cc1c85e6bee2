#!/bin/bash
# The recipe of Conan 2 makes a package of the tree, static or shared, and a program finds it under the one name. It asks no remote.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
conan=$(command -v conan) || skip "no conan, which PyPI has"
"$conan" --version | grep -q ' version 2\.' || skip "not conan 2: $("$conan" --version)"
clean
# A copy: builds of the package's test lie beside its sources.
mkdir -p tree/tests/install
cp -r "$TSLAB_SOURCE_DIR"/{CMakeLists.txt,LICENSE,cmake,common,include,packaging,preload,share,src} tree
cp -r "$TSLAB_SOURCE_DIR/tests/install/consumer" tree/tests/install
export CONAN_HOME=$PWD/home
"$conan" profile detect >said 2>&1 && "$conan" remote disable '*' >said 2>&1 || fail "$(cat said)"
kinds=False
! scale_reaches 1 || kinds="False True"
for shared in $kinds; do
    "$conan" create tree/packaging/conan -o "*:shared=$shared" -s build_type=Debug -c "tools.build:cflags=['$cheap']" >said 2>&1 ||
        fail "shared=$shared: $(tail -n 40 said)"
    has said '^installed$' # what the program prints
    has said "^Package '.*' created$"
done
version=$(sed -n 's/^#define TSLAB_VERSION_[A-Z]* //p' "$TSLAB_SOURCE_DIR/include/slab_alloc.h" | paste -sd .)
"$conan" list "temporal-slab/$version:*" >said 2>&1
[ "$(grep -c 'shared: ' said)" -eq "$(wc -w <<<"$kinds")" ] || complain "packages: $(cat said)"
finish
