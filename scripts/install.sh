#!/bin/sh
# Builds the libraries and programs where something is missing or out of date, and installs them. Downloads nothing and
# calls no package manager. `scripts/uninstall.sh` takes back what it has installed, by the list that it leaves in
# PREFIX/share/temporal-slab/installed.
# Usage: install.sh build|install|install-lib PREFIX
#   build        builds only
#   install-lib  the component `library` alone: no program is built or installed (cmake/install.cmake)
# Environment: DESTDIR goes in front of PREFIX. TSLAB_BUILD_DIR is a folder to install from as it is, in place of
# build/install: nothing is built.
set -eu
case ${1:-} in build | install | install-lib) ;; *)
    echo "usage: install.sh build|install|install-lib PREFIX" >&2
    exit 2
    ;;
esac
prefix=${2:-}
while [ "${prefix%/}" != "$prefix" ] && [ "$prefix" != / ]; do prefix=${prefix%/}; done
[ -n "$prefix" ] || {
    echo "install.sh: PREFIX is empty: where to? For example: make install PREFIX=/usr/local" >&2
    exit 2
}
case $prefix in /*) ;; *) prefix=$PWD/$prefix ;; esac
cd "$(dirname "$0")/.."

from=${TSLAB_BUILD_DIR:-}
if [ -z "$from" ]; then
    from=build/install
    scripts/install-deps.sh --name install
    tools=ON daemon=ON
    if [ "$1" = install-lib ]; then
        tools=OFF daemon=OFF
    elif ! pkg-config --exists libmicrohttpd; then
        daemon=OFF
        echo "without tslabd, which needs libmicrohttpd: make deps FOR=daemon"
    fi
    scripts/build.sh install "-DTSLAB_BUILD_TOOLS=$tools" "-DTSLAB_BUILD_DAEMON=$daemon"
fi
component=""
[ "$1" != install-lib ] || component=library
[ "$1" != build ] || {
    echo "built in build/install; make install PREFIX=$prefix installs it"
    exit 0
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cmake --install "$from" --prefix "$prefix" ${component:+--component $component} >"$scratch/said" 2>&1 || {
    grep . "$scratch/said" | tail -n 4 >&2
    echo "install.sh: nothing, or not all, was installed in ${DESTDIR:-}$prefix" >&2
    exit 1
}
# Whatever an earlier version has installed there stays on the list.
list=${DESTDIR:-}$prefix/share/temporal-slab/installed
{
    cat "$list" 2>/dev/null || true
    sed -n "s|^$prefix/||p" "$from/install_manifest${component:+_$component}.txt"
    printf '\nshare/temporal-slab/installed\n'
} | grep . | sort -u >"$scratch/list"
cp "$scratch/list" "$list"
echo "installed in ${DESTDIR:-}$prefix: $(wc -l <"$list") files, listed in $list"

# A shared library is found after ldconfig has seen it, in a folder that ldconfig looks at.
if [ -z "${DESTDIR:-}" ]; then
    PATH=$PATH:/usr/sbin:/sbin
    folder=$prefix/$(sed -n 's|/libtemporal_slab\.so$||p' "$list" | head -n 1)
    if ! ldconfig -v -N 2>/dev/null | grep -q "^$folder:"; then
        echo "the system does not look for libraries in $folder: programs need LD_LIBRARY_PATH=$folder, or -Wl,-rpath,$folder"
    elif [ "$(id -u)" -ne 0 ] || ! ldconfig; then
        echo "for programs to find the shared library, run as root: ldconfig"
    fi
fi
[ -n "$component" ] || [ -x build/tslab ] || echo "without tslab, the command line tool: make tslab builds it, with Go; then install again"
