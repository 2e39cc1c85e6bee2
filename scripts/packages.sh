#!/bin/sh
# Builds the Debian packages of what is committed, from the archive of `make dist`, and has lintian look at them. They are in build/packages
# afterwards. Compiles the library and its tests anew: some minutes.
# Usage: packages.sh [--cli]
#   --cli   the command line tool tslab as well, of Go's modules that are in the cache (go env GOMODCACHE)
set -eu
profiles=""
case $* in
'') ;;
--cli) profiles=pkg.temporal-slab.tslab ;;
*)
    echo "usage: packages.sh [--cli]" >&2
    exit 2
    ;;
esac
cd "$(dirname "$0")/.."
scripts/install-deps.sh --name packages
place=$PWD/build/packages
rm -rf "$place"
scripts/dist.sh "$place" >/dev/null
cd "$place"
tar xzf temporal-slab-*.tar.gz
cd temporal-slab-*/
if [ -n "$profiles" ]; then
    GOMODCACHE=$("$(scripts/find-go.sh)" env GOMODCACHE)
    export GOMODCACHE
fi
dpkg-buildpackage -us -uc -b ${profiles:+-P$profiles} >../build.log 2>&1 || {
    tail -n 40 ../build.log >&2
    echo "packages.sh: dpkg-buildpackage failed; $place/build.log has all of it" >&2
    exit 1
}
cd ..
# No bug of Debian's asks for the package.
lintian --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs ./*.changes
ls -- *.deb
