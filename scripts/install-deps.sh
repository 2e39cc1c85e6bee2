#!/bin/sh
# Says which Debian packages a make target needs and lacks, and installs them where that was asked for.
# Usage: install-deps.sh [--name | --root] WORD...
#   WORD    a make target: demo server test test-all bench programs packages install soak mutants fuzz drainability site platforms; or a part of what
#           they need: build libraries clang tools browser adapters daemon plot peers; or a platform of scripts/platforms.sh
#   (none)  installs what is missing, by sudo where the caller is not root: what `make deps` does
#   --root  installs as root only; for anybody else like --name: what `make demo` and `make test` do
#   --name  installs nothing: what `make install` does
# Exit status: 0 nothing is missing, 1 something is, and the command that installs it was printed, 2 wrong words.
# A system without dpkg is told the packages and goes on: the build finds out. The script waits for another apt or dpkg
# that is at work, for ten minutes at most.
set -eu

# The package with the tests of Debian's python3: its name has the version.
tests_of_python() { /usr/bin/python3 -c 'import sys; print("libpython%d.%d-testsuite" % sys.version_info[:2])' 2>/dev/null || echo libpython3.11-testsuite; }

packages_of() {
    case $1 in
    build | install | drainability) echo gcc libc6-dev make cmake ninja-build pkg-config ;;
    libraries) echo g++ binutils musl-tools libmicrohttpd-dev liblua5.4-dev libcjson-dev ;;
    test | soak) packages_of build && packages_of libraries ;;
    mutants) packages_of test && echo python3 ;;
    fuzz) packages_of test && packages_of clang ;;
    demo) packages_of build && echo liblua5.4-dev libcjson-dev iso-codes ;;
    bench) packages_of build && echo g++ valgrind ;;
    programs)
        packages_of build && echo python3 perl sqlite3 jq lua5.4 xz-utils git imagemagick
        echo php-cli "$(tests_of_python)" redis-server redis-tools nginx-light apache2-utils postgresql util-linux
        ;;
    # lintian comes with a hundred packages of Perl: only `make packages` and `make check` want it
    packages) packages_of build && packages_of daemon && echo dpkg-dev debhelper lintian ;;
    daemon) echo pkg-config libmicrohttpd-dev ;;
    clang) echo clang-14 libclang-rt-14-dev lld-14 ;;
    tools) echo clang-format-14 spin tcc valgrind gdb strace abigail-tools curl util-linux python3-jsonschema prometheus systemtap-sdt-dev bpftrace ;;
    # the browser that one test drives, unless there is one: the smallest package of it
    browser) command -v chromium >/dev/null || command -v google-chrome >/dev/null || echo chromium-headless-shell ;;
    # what include/temporal_slab is for, and what its tests read
    adapters) echo pkg-config liblua5.4-dev libcjson-dev libsqlite3-dev libxml2-dev libnghttp2-dev libpcre2-dev iso-codes ;;
    # servers of other people's libraries: the second demo and its load, and one that gets phases as it is
    server) packages_of demo && echo python3 libevent-dev wrk libmicrohttpd-dev libxml2-dev libjson-c-dev libsqlite3-dev libcurl4-openssl-dev ;;
    plot) echo python3-matplotlib ;;
    site) echo python3 python3-venv doxygen ;;
    # what programs come from, docs/coming-from; not the headers of PostgreSQL, which bring 270 MB of llvm-14-dev
    peers) echo g++ libapr1-dev libtalloc-dev libmimalloc-dev libjemalloc-dev ;;
    # other compilers, C libraries, processors
    gcc-[0-9]* | clang-[0-9]*) packages_of build && echo "$1" ;;
    musl) packages_of build && echo musl-tools ;;
    arm64) packages_of build && echo gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user ;;
    pages-16k | pages-64k) packages_of gcc-12 ;;
    narrow) packages_of build ;;
    headers) echo g++-11 g++-12 clang-14 clang-16 clang-19 ;;
    platforms) for part in gcc-11 gcc-12 clang-14 clang-16 clang-19 musl arm64 pages-64k headers; do packages_of $part; done ;;
    test-all) for part in test clang tools browser demo adapters server plot site peers; do packages_of $part; done ;;
    check) packages_of test-all && packages_of packages ;;
    *)
        echo "install-deps.sh: nothing here is called '$1'; the head of scripts/install-deps.sh has the words" >&2
        exit 2
        ;;
    esac
}

how=install
case ${1:-} in
--name | --root) how=${1#--} && shift ;;
-*)
    echo "install-deps.sh: no option is called '$1'; the head of scripts/install-deps.sh has them" >&2
    exit 2
    ;;
esac
[ $# -gt 0 ] || {
    echo "install-deps.sh: for which target? For example: make deps FOR=demo" >&2
    exit 2
}

wanted=""
for word in "$@"; do
    packages=$(packages_of "$word")
    for package in $packages; do
        case " $wanted " in *" $package "*) ;; *) wanted="$wanted $package" ;; esac
    done
done

if ! command -v dpkg-query >/dev/null; then
    echo "$* needs what these Debian packages have:$wanted" >&2
    exit 0
fi

# dpkg-query sees only real names, and a program may have come another way: the command counts, too.
installed() {
    dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null | grep -q '^installed' || [ -x "/usr/bin/$1" ]
}

missing=""
for package in $wanted; do
    installed "$package" || missing="$missing $package"
done
if [ -z "$missing" ]; then
    [ $how != install ] || echo "$*: all packages are installed"
    exit 0
fi

as_root=""
if [ "$how" = name ] || { [ "$how" = root ] && [ "$(id -u)" -ne 0 ]; }; then
    how=name
elif [ "$(id -u)" -ne 0 ]; then
    as_root=sudo
    command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; } || how=name
fi
if [ $how = name ]; then
    echo "$* needs packages that are not installed:$missing" >&2
    echo "To install them:   make deps FOR=\"$*\"" >&2
    echo "or, as root:       apt-get update && apt-get install -y --no-install-recommends$missing" >&2
    exit 1
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
apt_get() { # apt-get has an option for the lock of dpkg, but none for those of its own lists and archives
    tries=0
    until $as_root env LC_ALL=C DEBIAN_FRONTEND=noninteractive \
        apt-get -qq -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3 "$@" </dev/null >"$scratch/said" 2>"$scratch/errors"; do
        tries=$((tries + 1))
        if [ $tries -ge 200 ] || ! grep -qE 'Could not get lock|Unable to (acquire|lock)' "$scratch/errors"; then
            tail -n 20 "$scratch/said" >&2
            cat "$scratch/errors" >&2
            return 1
        fi
        [ $tries -gt 1 ] || echo "waiting for another apt or dpkg"
        sleep 3
    done
}

echo "$* needs these packages, which are installed now:$missing"
apt_get update
# shellcheck disable=SC2086  # a list of words
apt_get install -y --no-install-recommends $missing
