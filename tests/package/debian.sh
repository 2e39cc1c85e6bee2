#!/bin/bash
# debian/ agrees with the tree: the library's soname, and each file that is installed is in one package. From scale
# 2 on the packages are built, lintian has nothing against them, and a program is compiled and runs with what they have.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
clean
source=$TSLAB_SOURCE_DIR
debian=$source/debian
version=$(sed -n 's/^#define TSLAB_VERSION_[A-Z]* //p' "$source/include/slab_alloc.h" | paste -sd .)
soname=$(readelf -d "$TSLAB_BUILD_DIR/libtemporal_slab.so" | sed -n 's/.*soname: \[libtemporal_slab\.so\.\(.*\)\]/\1/p')
has "$debian/control" "^Package: libtemporal-slab$soname\$"
[ -e "$debian/libtemporal-slab$soname.install" ] || complain "no list of what is in libtemporal-slab$soname"

cmake --install "$TSLAB_BUILD_DIR" --prefix "$PWD/tree/usr" >said || fail "$(tail said)"
lib=$(dirname "$(find tree -name libtemporal_slab.a)")
mkdir "$lib/temporal-slab" && mv "$lib/libtemporal_slab_preload.so" "$lib/temporal-slab" # as debian/rules
# The words of each list, with the library folder of this build: FILE of the tree, PACKAGE.
claimed() { # LIST
    local pattern path
    while read -r pattern; do
        pattern=${pattern/#usr\/lib\/\*/${lib#tree/}}
        # shellcheck disable=SC2086  # a pattern
        for path in tree/$pattern; do
            [ -e "$path" ] || [ -L "$path" ] || { [ "$1" = not-installed ] || complain "$1: no $pattern"; continue; }
            find "$path" ! -type d | sed "s|\$| $1|"
        done
    done <"$debian/$1"
}
for list in libtemporal-slab"$soname" libtemporal-slab-dev temporal-slab-tools; do claimed $list.install; done >owned
claimed not-installed >left
find tree ! -type d | sort >files
cut -d' ' -f1 owned | sort | uniq -d >twice
empty twice
cut -d' ' -f1 owned left | sort -u | comm -13 - files >of_nobody
empty of_nobody
[ "$(wc -l <owned)" -gt 40 ] || complain "only $(wc -l <owned) files in packages"

scale_reaches 2 || finish
need dpkg-buildpackage
need lintian
[ -e "$source/.git" ] || skip "no git repository: the packages are made of a commit"
"$source/scripts/packages.sh" >said 2>&1 || fail "$(tail -n 60 said)"
for package in "$source"/build/packages/*.deb; do
    case $package in *dbgsym*) ;; *) dpkg-deb -x "$package" root || fail "$package" ;; esac
done
lib=$PWD/$(dirname "$(find root -name libtemporal_slab.a)")
# shellcheck disable=SC2046  # flags are words
cc "$source/tests/install/consumer/consumer.c" -o program $(PKG_CONFIG_PATH=$lib/pkgconfig pkg-config --cflags --libs temporal-slab) &&
    LD_LIBRARY_PATH=$lib ./program || fail "a program does not work with what is in the packages"
for program in root/usr/bin/*; do
    "$program" --version | grep -q " $version\$" || complain "$program is not of $version"
    page=root/usr/share/man/man1/$(basename "$program").1.gz
    [ -e "$page" ] || complain "$program has no page"
done
finish
