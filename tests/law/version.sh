#!/bin/bash
# One file has the version, include/slab_alloc.h. With another one there, everything that is built says that other one; and what is
# written elsewhere, for readers that have no C compiler, says what the header does.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
clean
mkdir tree
cp -r "$TSLAB_SOURCE_DIR"/{CMakeLists.txt,LICENSE,cmake,common,include,preload,scripts,share,src} tree
sed -Ei 's/^(#define TSLAB_VERSION_MAJOR) .*/\1 7/; s/^(#define TSLAB_VERSION_MINOR) .*/\1 8/; s/^(#define TSLAB_VERSION_PATCH) .*/\1 9/' \
    tree/include/slab_alloc.h
cmake -G Ninja -S tree -B build >said 2>&1 || fail "no configure: $(tail said)"
has build/temporal-slab.pc '^Version: 7\.8\.9$'
has build/temporal-slabConfigVersion.cmake 'PACKAGE_VERSION "7\.8\.9"'
has build/man/temporal-slab.7 'temporal\\-slab 7\.8\.9'
ninja -C build -t targets all >targets
has targets '^libtemporal_slab\.so\.7\.8\.9:'
has build/build.ninja 'SONAME = libtemporal_slab\.so\.7$'
[ "$(tree/scripts/public-functions.sh --map | sed -n 2p)" = "TSLAB_7 {" ] || complain "the symbols' version"
echo '#include "slab_alloc.h"' | cc -E -dM -Itree/include - | grep -q 'define TSLAB_VERSION_MAJOR 7$' || fail "the header has it otherwise"

cd "$TSLAB_SOURCE_DIR" || exit 1
version=$(sed -n 's/^#define TSLAB_VERSION_[A-Z]* //p' include/slab_alloc.h | paste -sd .)
has rust/Cargo.toml "^version = \"$version\""
has packaging/vcpkg/temporal-slab/vcpkg.json "^  \"version\": \"$version\","
[ "$(sed -nE '1s/^temporal-slab \(([^-]*)-[0-9]+\).*/\1/p' debian/changelog)" = "$version" ] || complain "debian/changelog is not of $version"
# Whoever writes it down elsewhere is named here, and compared.
others=$(grep -rnE '(version|VERSION)[A-Z_a-z]*["'\'' ]*[:=]+ *["'\'']?[0-9]+\.[0-9]+\.[0-9]+' CMakeLists.txt cmake common daemon demo include packaging preload scripts src tools \
    tslab --include='*.[ch]' --include='*.txt' --include='*.cmake' --include='*.sh' --include='*.py' --include='*.go' --include='*.json' 2>/dev/null |
    grep -F "$version" | grep -v '^packaging/vcpkg/')
[ -z "$others" ] || complain "a version of its own: $others"
finish
