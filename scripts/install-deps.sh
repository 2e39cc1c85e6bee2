#!/bin/sh
# Installs the Debian packages that a group of targets needs and that are missing.
# Usage: install-deps.sh GROUP...   groups: build daemon test browser demo bench plot
# Without root and without sudo it prints the command to run and fails. On a system without dpkg it only names
# the packages and leaves the rest to the build.
set -eu

packages_of() {
    case $1 in
    build) echo gcc libc6-dev make cmake ninja-build pkg-config ;;
    daemon) echo pkg-config libmicrohttpd-dev ;;
    test) echo g++ clang-14 libclang-rt-14-dev binutils libcmocka-dev spin tcc valgrind python3-jsonschema prometheus systemtap-sdt-dev bpftrace ;;
    # the browser that one test drives, unless there is one: the smallest package of it
    browser) command -v chromium >/dev/null || command -v google-chrome >/dev/null || echo chromium-headless-shell ;;
    demo) echo pkg-config liblua5.4-dev libcjson-dev iso-codes ;;
    bench) echo g++ valgrind ;;
    plot) echo python3-matplotlib ;;
    *)
        echo "install-deps.sh: unknown group '$1' (build, daemon, test, browser, demo, bench, plot)" >&2
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

echo "installing:$missing"
$as_root apt-get -qq update
# shellcheck disable=SC2086  # a list of words
$as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends $missing </dev/null
