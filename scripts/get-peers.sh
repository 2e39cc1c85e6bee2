#!/bin/sh
# Gets the allocators that the benchmarks compare with into build/peers: fetches, builds in release form, tries, lists.
# Usage: get-peers.sh [--again] [NAME...]     NAME: a peer of the list below (default: all); --again builds anew
#
# Writes build/peers/peers.tsv, one line a peer, tab separated:
#   name   version   kind   library   reason
# kind: "general" (the library overrides malloc), "checked" (so does it, and it refuses a doubled free), "profiler" (so does
# it; what its profiler costs is compared, nothing else) or "phase" (it is preloaded into a worker made for it). library: what
# LD_PRELOAD takes, colon separated where a library needs another before it; "-" when there is none: then the
# reason says why the peer is missing, and an empty reason that it needs no library of its own.
#
# Nothing outside build/ changes: distribution packages that are not installed are downloaded and unpacked there,
# sources come as crates (cargo), prebuilt wheels by pip. A peer that cannot be had costs its own
# line only; the exit code is 0 then too. Logs: build/peers/log.
set -u
cd "$(dirname "$0")/.." || exit 1
top=$PWD/build/peers
jobs=$(nproc 2>/dev/null || echo 2)

names="glibc mimalloc mimalloc2 jemalloc tcmalloc tbbmalloc snmalloc rpmalloc
       snmalloc-checks mimalloc-secure scudo hardened-malloc hardened-malloc-light
       mi-heap je-arena rp-heap apr talloc pmr obstack arena
       jemalloc-prof tcmalloc-prof"

again=no wanted=""
for word in "$@"; do
    case $word in
    --again) again=yes ;;
    -*)
        echo "usage: get-peers.sh [--again] [NAME...]; names:" $names >&2
        exit 2
        ;;
    *)
        case " $(echo $names) " in
        *" $word "*) wanted="$wanted $word" ;;
        *)
            echo "get-peers.sh: there is no peer '$word'; there are:" $names >&2
            exit 2
            ;;
        esac
        ;;
    esac
done
[ -n "$wanted" ] || wanted=$names

cc=${CC:-gcc}
mkdir -p "$top/lib" "$top/log" "$top/line" "$top/src" || exit 1
say() { echo "peers: $*"; }
have() { command -v "$1" >/dev/null 2>&1; }

# ---- the list: one file a peer in build/peers/line, put together at the end ---------------

# list NAME VERSION KIND LIBRARY REASON
list() { printf '%s\t%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$4" "$5" >"$top/line/$1"; }

missing() { # NAME KIND REASON
    list "$1" - "$2" - "$3"
    say "$1 is missing: $3"
}

# accept NAME KIND LIBRARY VERSION: tries the library in a process of its own and lists what it said.
accept() {
    if ! said=$(LD_PRELOAD=$3 timeout 20 "$top/probe" "$2" "${3##*:}" 2>"$top/log/$1.probe"); then
        missing "$1" "$2" "does not work here: $({ echo "$said"; cat "$top/log/$1.probe"; } | tr '\t\n' '  ' | cut -c1-120)"
        return
    fi
    version=${said:-$4}
    list "$1" "$version" "$2" "$3" ""
    say "$1 $version"
}

# ---- where things come from ---------------------------------------------------------------

# crate NAME VERSION: its source in $top/src/NAME; on failure prints why.
crate() {
    [ -f "$top/src/$1/vendor/$1/Cargo.toml" ] && return 0
    have cargo || {
        echo "cargo, which fetches its source, is not installed"
        return 1
    }
    mkdir -p "$top/src/$1/src" && : >"$top/src/$1/src/lib.rs"
    printf '[package]\nname = "fetch"\nversion = "0.0.0"\nedition = "2021"\n[dependencies]\n%s = "=%s"\n[workspace]\n' \
        "$1" "$2" >"$top/src/$1/Cargo.toml"
    (cd "$top/src/$1" && timeout 300 cargo vendor vendor) >"$top/log/$1.fetch" 2>&1 </dev/null || {
        rm -rf "$top/src/$1/vendor"
        echo "cargo could not fetch crate $1 $2"
        return 1
    }
}

# wheel NAME VERSION: unpacked in $top/src/NAME.
wheel() {
    [ -d "$top/src/$1/cmeel.prefix" ] && return 0
    have pip3 && have python3 || {
        echo "pip3, which fetches it, is not installed"
        return 1
    }
    mkdir -p "$top/src/$1"
    timeout 200 pip3 download -q --no-deps -d "$top/src/$1" "$1==$2" >"$top/log/$1.fetch" 2>&1 </dev/null &&
        (cd "$top/src/$1" && python3 -m zipfile -e ./*.whl .) >>"$top/log/$1.fetch" 2>&1 || {
        rm -rf "$top/src/$1"
        echo "pip could not fetch $1 $2"
        return 1
    }
}

# debian PACKAGE PATTERN: prints the path of the file of that name, installed or unpacked under $top/root.
debian() {
    have dpkg-deb && have apt-get || {
        echo "Debian's package $1 is not to be had on this system"
        return 1
    }
    found=$(dpkg -L "$1" 2>/dev/null | grep "/$2\$" | head -n 1)
    if [ -z "$found" ]; then
        if [ ! -d "$top/root/$1" ]; then
            mkdir -p "$top/debs/$1"
            (
                cd "$top/debs/$1" || exit 1
                apt-get -q download "$1" || {
                    [ "$(id -u)" -eq 0 ] && apt-get -qq update && apt-get -q download "$1"
                }
            ) >"$top/log/$1.fetch" 2>&1 </dev/null
            for deb in "$top/debs/$1"/*.deb; do
                [ -f "$deb" ] && mkdir -p "$top/root/$1" && dpkg-deb -x "$deb" "$top/root/$1"
            done
        fi
        found=$(find "$top/root/$1" -name "$2" 2>/dev/null | sort | head -n 1)
    fi
    [ -n "$found" ] && echo "$found" && return 0
    echo "apt-get could not fetch package $1"
    return 1
}

debian_version() {
    v=$(dpkg-query -W -f '${Version}' "$1" 2>/dev/null)
    for deb in "$top/debs/$1"/*.deb; do
        [ -n "$v" ] || v=$(dpkg-deb -f "$deb" Version 2>/dev/null)
    done
    echo "$v" | sed 's/^[0-9]*://; s/[-+].*//'
}

# ---- building -----------------------------------------------------------------------------

# with_cmake NAME SOURCE TARGET FILE FLAGS...: builds the target and copies FILE to lib/NAME.so.
with_cmake() {
    name=$1 source=$2 target=$3 file=$4
    shift 4
    have cmake && have ninja || {
        echo "cmake and ninja are needed to build it"
        return 1
    }
    { cmake -G Ninja -S "$source" -B "$top/obj/$name" -DCMAKE_BUILD_TYPE=Release "$@" &&
        cmake --build "$top/obj/$name" --target "$target" -j "$jobs" &&
        cp -L "$top/obj/$name"/$file "$top/lib/$name.so"; } >"$top/log/$name.build" 2>&1 </dev/null || {
        echo "does not build; see build/peers/log/$name.build"
        return 1
    }
}

# one_file NAME SOURCE FLAGS...: a library that is one C file, built into lib/NAME.so.
one_file() {
    name=$1 source=$2
    shift 2
    "$cc" -std=gnu11 -O3 -DNDEBUG -D_GNU_SOURCE -fPIC -shared -pthread -ftls-model=initial-exec "$@" \
        -o "$top/lib/$name.so" "$source" >"$top/log/$name.build" 2>&1 || {
        echo "does not build; see build/peers/log/$name.build"
        return 1
    }
}

mimalloc_from_crate() { # NAME v2|v3 FLAGS...
    crate libmimalloc-sys 0.1.49 || return 1
    name=$1 source=$top/src/libmimalloc-sys/vendor/libmimalloc-sys/c_src/mimalloc/$2
    shift 2
    one_file "$name" "$source/src/static.c" -I"$source/include" -I"$source/src" -DMI_MALLOC_OVERRIDE -DMI_SHARED_LIB \
        -DMI_SHARED_LIB_EXPORT -DMI_BUILD_RELEASE -DMI_DEBUG=0 -fvisibility=hidden -fno-builtin-malloc "$@"
}

# The newest release is a wheel; without pip, the one in the crate.
build_mimalloc() {
    if why=$(wheel cmeel-mimalloc 3.4.3); then
        cp "$(find "$top/src/cmeel-mimalloc" -name 'libmimalloc.so' | head -n 1)" "$top/lib/mimalloc.so"
    else
        mimalloc_from_crate mimalloc v3
    fi
}
build_mimalloc2() { mimalloc_from_crate mimalloc2 v2; }
build_mimalloc_secure() { mimalloc_from_crate mimalloc-secure v2 -DMI_SECURE=4; }

jemalloc_with() { # NAME FLAGS...
    crate tikv-jemalloc-sys 0.7.1 || return 1
    source=$top/src/tikv-jemalloc-sys/vendor/tikv-jemalloc-sys name=$1
    shift
    mkdir -p "$top/obj/$name"
    { cp -r "$source/jemalloc/." "$top/obj/$name" && cp "$source/configure/configure" "$top/obj/$name/" &&
        cd "$top/obj/$name" && sh ./configure --with-version=5.3.1-0-g0 --disable-cxx --enable-doc=no --disable-static "$@" \
        CFLAGS="-O3 -DNDEBUG" && make -j "$jobs" build_lib_shared && cp -L lib/libjemalloc.so "$top/lib/$name.so"; } \
        >"$top/log/$name.build" 2>&1 </dev/null || {
        echo "does not build; see build/peers/log/$name.build"
        return 1
    }
}
build_jemalloc() { jemalloc_with jemalloc; }
build_jemalloc_prof() { jemalloc_with jemalloc-prof --enable-prof; }

snmalloc_target() { # NAME TARGET
    crate snmalloc-sys 0.7.6 &&
        with_cmake "$1" "$top/src/snmalloc-sys/vendor/snmalloc-sys/upstream" "$2" "lib$2.so" -DSNMALLOC_BUILD_TESTING=OFF
}
build_snmalloc() { snmalloc_target snmalloc snmallocshim; }
build_snmalloc_checks() { snmalloc_target snmalloc-checks snmallocshim-checks; }

rpmalloc_with() { # NAME FLAGS...
    crate rpmalloc-sys 0.2.3 || return 1
    name=$1
    shift
    one_file "$name" "$top/src/rpmalloc-sys/vendor/rpmalloc-sys/rpmalloc/rpmalloc/rpmalloc.c" "$@"
}
build_rpmalloc() { rpmalloc_with rpmalloc -DENABLE_OVERRIDE=1 -DENABLE_PRELOAD=1; }

# ---- the peers ----------------------------------------------------------------------------

# built NAME KIND VERSION: what build_NAME makes, unless it is there already.
built() {
    if [ "$again" = yes ] || [ ! -f "$top/lib/$1.so" ]; then
        say "building $1"
        rm -f "$top/lib/$1.so"
        if ! why=$("build_$(echo "$1" | tr - _)"); then
            missing "$1" "$2" "$why"
            return
        fi
    fi
    accept "$1" "$2" "$top/lib/$1.so" "$3"
}

# packaged NAME KIND PACKAGE FILE: a library of a distribution package.
packaged() {
    if file=$(debian "$3" "$4"); then accept "$1" "$2" "$file" "$(debian_version "$3")"; else missing "$1" "$2" "$file"; fi
}

tbbmalloc() {
    if base=$(debian libtbbmalloc2 'libtbbmalloc\.so\.2') || base=$(debian libtbbmalloc2 'libtbbmalloc.so.2'); then
        accept tbbmalloc general "$base:$(dirname "$base")/libtbbmalloc_proxy.so.2" "$(debian_version libtbbmalloc2)"
    else
        missing tbbmalloc general "$base"
    fi
}

# The full gperftools. It walks stacks with libunwind, which need not be installed.
tcmalloc_prof() {
    if unwind=$(debian libunwind8 'libunwind.so.8') && file=$(debian libgoogle-perftools4 'libtcmalloc.so.4'); then
        accept tcmalloc-prof profiler "$unwind:$file" "$(debian_version libgoogle-perftools4)"
    else
        missing tcmalloc-prof profiler "${file:-$unwind}"
    fi
}

# The allocator of GrapheneOS, whose sources are C23; a compiler that does not know its words gets them from headers.
hardened_malloc=16.0.2026071503
hardened_from_crate() { # NAME CONFIGURATION
    crate hardened-malloc-sys "$hardened_malloc" || return 1
    name=$1 config=$top/src/hardened-malloc-sys/vendor/hardened-malloc-sys
    source=$config/vendor/hardened-malloc
    flags=$(sed -nE 's/^([A-Z_0-9]+) *= *(.*)$/-D\1=\2/p' "$config/config-$2.conf")
    # shellcheck disable=SC2086 # words
    "$cc" -std=gnu2x -O3 -DNDEBUG -D_GNU_SOURCE -fPIC -shared -pthread -include stdalign.h -include stdbool.h -include assert.h \
        -include threads.h $flags -I"$source/include" -I"$source/third_party" -o "$top/lib/$name.so" "$source/chacha.c" \
        "$source/h_malloc.c" "$source/memory.c" "$source/pages.c" "$source/random.c" "$source/util.c" >"$top/log/$name.build" 2>&1 || {
        echo "does not build; see build/peers/log/$name.build"
        return 1
    }
}
build_hardened_malloc() { hardened_from_crate hardened-malloc default; }
build_hardened_malloc_light() { hardened_from_crate hardened-malloc-light light; }
scudo() {
    file=libclang_rt.scudo_standalone-$(uname -m).so
    for release in 19 16 14; do
        if path=$(debian libclang-rt-$release-dev "$file"); then
            accept scudo checked "$path" "$(debian_version libclang-rt-$release-dev)"
            return
        fi
    done
    missing scudo checked "$path"
}

# A phase peer in the library of a general one.
borrowed() { # NAME GENERAL
    line=$(cat "$top/line/$2" 2>/dev/null)
    [ -n "$line" ] || { get "$2" && line=$(cat "$top/line/$2"); }
    library=$(printf '%s\n' "$line" | cut -f 4)
    if [ "$library" = - ]; then
        missing "$1" phase "$2: $(printf '%s\n' "$line" | cut -f 5)"
    else
        list "$1" "$(printf '%s\n' "$line" | cut -f 2)" phase "$library" ""
    fi
}

build_rp_heap() { rpmalloc_with rp-heap -DENABLE_OVERRIDE=0 -DENABLE_PRELOAD=1 -DRPMALLOC_FIRST_CLASS_HEAPS=1; }

get() {
    case $1 in
    glibc) list glibc "$(getconf GNU_LIBC_VERSION 2>/dev/null | cut -d ' ' -f 2)" general - "" ;;
    mimalloc) built mimalloc general 3 ;;
    mimalloc2) built mimalloc2 general 2 ;;
    jemalloc) built jemalloc general 5.3.1 ;;
    tcmalloc) packaged tcmalloc general libtcmalloc-minimal4 'libtcmalloc_minimal.so.4' ;;
    tbbmalloc) tbbmalloc ;;
    snmalloc) built snmalloc general 0.7.6 ;;
    rpmalloc) built rpmalloc general 1.4 ;;
    snmalloc-checks) built snmalloc-checks checked 0.7.6 ;;
    mimalloc-secure) built mimalloc-secure checked 2 ;;
    hardened-malloc) built hardened-malloc checked "$hardened_malloc" ;;
    hardened-malloc-light) built hardened-malloc-light checked "$hardened_malloc" ;;
    scudo) scudo ;;
    mi-heap) borrowed mi-heap mimalloc ;;
    je-arena) borrowed je-arena jemalloc ;;
    rp-heap) built rp-heap phase 1.4 ;;
    apr) packaged apr phase libapr1 'libapr-1.so.0' ;;
    talloc) packaged talloc phase libtalloc2 'libtalloc.so.2' ;;
    pmr) if have g++ || have clang++; then list pmr C++17 phase - ""; else missing pmr phase "there is no C++ compiler"; fi ;;
    obstack) list obstack "$(getconf GNU_LIBC_VERSION 2>/dev/null | cut -d ' ' -f 2)" phase - "" ;;
    arena) list arena own phase - "" ;;
    jemalloc-prof) built jemalloc-prof profiler 5.3.1 ;;
    tcmalloc-prof) tcmalloc_prof ;;
    esac
}

if ! have "$cc" || ! "$cc" -std=gnu11 -O1 -Ibench -o "$top/probe" bench/peers/probe.c -ldl 2>"$top/log/probe.build"; then
    say "the probe does not build, so no peer can be tried; see build/peers/log/probe.build"
    : >"$top/peers.tsv"
    exit 0
fi
for name in $wanted; do get "$name"; done

for name in $names; do
    [ -f "$top/line/$name" ] && cat "$top/line/$name"
done >"$top/peers.tsv.new"
mv "$top/peers.tsv.new" "$top/peers.tsv"
say "$(awk -F '\t' '$5 == ""' "$top/peers.tsv" | wc -l) of $(wc -l <"$top/peers.tsv") peers are here: build/peers/peers.tsv"
