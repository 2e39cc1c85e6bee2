#!/bin/sh
# Installs the Debian packages that a group of targets needs and that are missing.
# Usage: install-deps.sh GROUP...
#   groups: build core daemon clang test browser demo adapters bench plot peers; all: what all tests need
# Without root and without sudo it prints the command to run and fails. On a system without dpkg it only names
# the packages and leaves the rest to the build. Another apt or dpkg that is at work is waited for, ten minutes at most.
set -eu

packages_of() {
    case $1 in
    build) echo gcc libc6-dev make cmake ninja-build pkg-config ;;
    # compilers and libraries only
    core) echo g++ binutils musl-tools libmicrohttpd-dev liblua5.4-dev libcjson-dev ;;
    daemon) echo pkg-config libmicrohttpd-dev ;;
    clang) echo clang-14 libclang-rt-14-dev ;;
    test) echo clang-format-14 spin tcc valgrind gdb strace curl util-linux python3-jsonschema prometheus systemtap-sdt-dev bpftrace ;;
    # the browser that one test drives, unless there is one: the smallest package of it
    browser) command -v chromium >/dev/null || command -v google-chrome >/dev/null || echo chromium-headless-shell ;;
    demo) echo pkg-config liblua5.4-dev libcjson-dev iso-codes ;;
    # what include/temporal_slab is for, and what its tests read
    adapters)
        echo pkg-config liblua5.4-dev libcjson-dev libsqlite3-dev libxml2-dev libnghttp2-dev libpcre2-dev iso-codes
        ;;
    bench) echo g++ valgrind ;;
    plot) echo python3-matplotlib ;;
    # what programs come from, docs/coming-from; not the headers of PostgreSQL, which bring 270 MB of llvm-14-dev
    peers) echo g++ libapr1-dev libtalloc-dev libmimalloc-dev libjemalloc-dev ;;
    all) for group in build core clang test browser demo adapters plot peers; do packages_of $group; done ;;
    *)
        echo "install-deps.sh: unknown group '$1'; its head names them" >&2
        exit 2
        ;;
    esac
}

wanted=""
for group in "$@"; do
    packages=$(packages_of "$group")
    wanted="$wanted $packages"
done

if ! command -v dpkg-query >/dev/null; then
    echo "install-deps.sh: not a Debian system; the equivalents of these packages are needed:$wanted" >&2
    exit 0
fi

# "pkg-config" may be provided by pkgconf; dpkg-query sees only real names, so the command counts too.
installed() {
    dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null | grep -q '^installed' || [ -x "/usr/bin/$1" ]
}

missing=""
for package in $wanted; do
    installed "$package" || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

as_root="sudo"
if [ "$(id -u)" -eq 0 ]; then
    as_root=""
elif ! command -v sudo >/dev/null || ! { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
    echo "Packages are missing. As root, run:" >&2
    echo "    apt-get update && apt-get install -y --no-install-recommends$missing" >&2
    exit 1
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
apt_get() { # apt-get has an option for the lock of dpkg, but none for those of its own lists and archives
    tries=0
    until $as_root env LC_ALL=C DEBIAN_FRONTEND=noninteractive \
        apt-get -qq -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3 "$@" </dev/null 2>"$scratch/errors"; do
        tries=$((tries + 1))
        if [ $tries -ge 200 ] || ! grep -qE 'Could not get lock|Unable to (acquire|lock)' "$scratch/errors"; then
            cat "$scratch/errors" >&2
            return 1
        fi
        [ $tries -gt 1 ] || echo "waiting for another apt or dpkg"
        sleep 3
    done
}

echo "installing:$missing"
apt_get update
# shellcheck disable=SC2086  # a list of words
apt_get install -y --no-install-recommends $missing
