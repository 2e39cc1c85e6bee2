#!/bin/bash
# Two programs of Debian's sources before and after their patches to phases (adoption/): fetches, verifies, builds, runs
# the programs' own tests on either, checks that nothing is used after its phase, puts a leak into each and has `tslab gate`
# find it, measures, writes docs/results/adoption.md.
# Usage: adoption.sh [--checks | --gate] [REPETITIONS]     --checks: measure nothing, write no page; --gate: the leaks alone;
#                                                          default: 5 repetitions
#
# Sources come from the Debian mirror that apt is configured with. Where there is none, put the archives named below
# into build/adoption/archives. Needs cmake, a C compiler with AddressSanitizer, make, perl, python3; Go for the gate; valgrind
# for counts of instructions. Nothing outside of build/adoption changes but the page. Loopback only. Some ten minutes.
set -u
cd "$(dirname "$0")/.." || exit 1
source_dir=$PWD build=$PWD/build/adoption
cc=${CC:-cc} measure=yes tests=yes reps=5
for word in "$@"; do
    case $word in
    --checks) measure=no ;;
    --gate) measure=no tests=no ;;
    [1-9] | [1-9][0-9]) reps=$word ;;
    *)
        echo "usage: adoption.sh [--checks | --gate] [REPETITIONS, 1 to 99]" >&2
        exit 2
        ;;
    esac
done
mkdir -p "$build/archives" "$build/log" || exit 1
: >"$build/checks"

say() { echo "adoption: $*"; }
die() {
    echo "adoption: $*" >&2
    exit 1
}
# What is true, for the page.
# checked LINE, or PROGRAM | VARIANT | INPUT | OUTCOME: a line of the page, or a row of its table.
checked() {
    say "$*"
    echo "$*" >>"$build/checks"
}

# fetch PATH-IN-POOL SHA256: the archive, in archives/.
fetch() {
    local file=$build/archives/${1##*/} from
    if [ ! -f "$file" ]; then
        for from in $(apt-get indextargets --format '$(REPO_URI)' 2>/dev/null | sort -u); do
            /usr/lib/apt/apt-helper download-file "$from$1" "$file" "SHA256:$2" >>"$build/log/fetch" 2>&1 && break
            rm -f "$file"
        done
    fi
    [ -f "$file" ] || die "cannot fetch ${1##*/}; put it into ${file%/*}"
    echo "$2  $file" | sha256sum --check --quiet || die "${1##*/} is not what it was: its SHA-256 differs"
}

# changed_lines NAME: how many its patch adds and removes.
changed_lines() { grep -E '^[+-]' "adoption/$1.patch" | grep -vcE '^(\+\+\+|---) '; }

unpack() { # SIDE ARCHIVE [PATCH]
    mkdir -p "$build/$1" && tar -x -f "$build/archives/$2" -C "$build/$1" || die "cannot unpack $2"
    [ -z "${3:-}" ] || patch -s -p1 -d "$build/$1/$4" <"adoption/$3.patch" || die "adoption/$3.patch does not apply"
}

# ---- building: build_NAME SIDE OPTIMISATION [LIBRARY] ---------------------------------------

# As its Makefile does, which needs autoconf: the functions of libm, the builtins as a string.
build_jq() {
    (
        cd "$build/$1/jq-jq-1.6" || exit 1
        defines="-D_GNU_SOURCE -DIEEE_8087=1"
        for have in ISATTY MEMMEM MKSTEMP STRPTIME STRFTIME TIMEGM GMTIME_R GMTIME LOCALTIME_R LOCALTIME GETTIMEOFDAY \
            TM_TM_GMT_OFF __THREAD ALLOCA_H $(sed -n 's/^#if.*HAVE_\([A-Z0-9_]*\).*$/\1/p' src/libm.h | grep -vx POW10 | sort -u); do
            defines="$defines -DHAVE_$have=1"
        done
        sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/"/' -e 's/$/\\n"/' src/builtin.jq >src/builtin.inc
        echo '#define JQ_VERSION "1.6"' >src/version.h
        # shellcheck disable=SC2086,SC2046
        "$cc" $2 -w -std=gnu99 $defines -I. -Isrc -I"$source_dir/include" -o jq \
            $(find src -name '*.c' ! -name inject_errors.c | sort) ${3:-} -pthread -lm
    ) >"$build/log/jq.$1" 2>&1 || die "jq ($1) does not build: see $build/log/jq.$1"
}

build_tinyproxy() {
    (
        cd "$build/$1/tinyproxy-1.11.1" &&
            ./configure --disable-manpage_support CC="$cc" CFLAGS="$2" CPPFLAGS="-I$source_dir/include" LIBS="${3:-}" &&
            make -j 2
    ) >"$build/log/tinyproxy.$1" 2>&1 </dev/null || die "tinyproxy ($1) does not build: see $build/log/tinyproxy.$1"
}

# ---- their own tests ------------------------------------------------------------------------

# All that need neither ruby (the manual's) nor the headers of oniguruma (onigtest).
test_jq() { # SIDE
    local test
    for test in jqtest shtest utf8test base64test optionaltest; do
        NO_VALGRIND=1 sh "$build/$1/jq-jq-1.6/tests/$test" >"$build/log/jq.$1.$test" 2>&1 </dev/null ||
            die "jq ($1) fails its $test: see $build/log/jq.$1.$test"
    done
    checked "jq | $2 | its tests (jqtest, shtest, utf8test, base64test, optionaltest) | pass: $(tail -n 1 "$build/log/jq.$1.jqtest")"
}

test_tinyproxy() { # SIDE
    sh "$build/$1/tinyproxy-1.11.1/tests/scripts/run_tests.sh" >"$build/log/tinyproxy.$1.tests" 2>&1 </dev/null ||
        die "tinyproxy ($1) fails its tests: see $build/log/tinyproxy.$1.tests"
    checked "tinyproxy | $2 | its tests (run_tests.sh) | pass: $(grep -cE '\.\.\. ?ok' "$build/log/tinyproxy.$1.tests") steps ok, $(grep errors "$build/log/tinyproxy.$1.tests")"
}

# ---- the gate -------------------------------------------------------------------------------

# gated WANTED WHAT ARGUMENT...: `adoption/gate.py ARGUMENT...` ends with WANTED.
gated() {
    local wanted=$1 what=$2 status=0
    shift 2
    said=$(python3 adoption/gate.py "$@" 2>"$build/log/gate") || status=$?
    [ $status = "$wanted" ] || die "the gate, $what: exit code $status: $said $(cat "$build/log/gate")"
    checked "the gate, $what: $said"
}

# A leak in each, in its own words: jq forgets the interpreter's stack after each document, tinyproxy the name of a header
# that it removes. tinyproxy is run as it came, too, with phases around its threads from outside.
gate_all() {
    local preload=$build/library/libtemporal_slab_preload.so shim=$build/shim.so patches=yes side
    if ! scripts/find-go.sh >"$build/log/go" 2>&1; then
        [ $tests = yes ] || die "the gate is a command of tslab: $(cat "$build/log/go")"
        checked "the gate was not tried: $(cat "$build/log/go")"
        return
    fi
    say "leaks in front of the gate"
    scripts/build-tslab.sh >"$build/log/tslab" 2>&1 || die "tslab does not build: see $build/log/tslab"
    cmake --build "$build/library" --target temporal_slab_preload -j 2 >"$build/log/preload" 2>&1 # not on every system
    for side in leaks leaking; do
        rm -rf "${build:?}/$side"
        [ $side = leaks ] || patches="" # as it came
        unpack $side jq_1.6.orig.tar.gz "${patches:+jq}" jq-jq-1.6
        unpack $side tinyproxy_1.11.1.orig.tar.xz "${patches:+tinyproxy}" tinyproxy-1.11.1
        patch -s -p1 -d "$build/$side/jq-jq-1.6" <adoption/leaks/jq.patch || die "adoption/leaks/jq.patch does not apply"
        patch -s -p1 -d "$build/$side/tinyproxy-1.11.1" <adoption/leaks/tinyproxy.patch || die "adoption/leaks/tinyproxy.patch does not apply"
    done
    build_jq leaks "-O2 -g" "$library"
    build_tinyproxy leaks "-O2 -g" "$library"
    build_tinyproxy leaking "-O2 -g" ""

    gated 0 "jq with phases" jq build/tslab "$build/after/jq-jq-1.6/jq"
    gated 1 "jq with phases and a leak" jq build/tslab "$build/leaks/jq-jq-1.6/jq"
    gated 0 "tinyproxy with phases" tinyproxy build/tslab "$build/after/tinyproxy-1.11.1/src/tinyproxy" "$build/load"
    gated 0 "tinyproxy with phases and a leak, which ends with its connection" tinyproxy build/tslab \
        "$build/leaks/tinyproxy-1.11.1/src/tinyproxy" "$build/load"
    [ "$(uname -m)" = x86_64 ] && [ -f "$preload" ] || return 0
    build/tslab shim --callback pthread_create:3 --label connection -o "$build/shim.c" && "$cc" -O2 -shared -fPIC -o "$shim" "$build/shim.c" -ldl ||
        die "no shim"
    gated 0 "tinyproxy as it came, under the preload library" tinyproxy build/tslab \
        "$build/before/tinyproxy-1.11.1/src/tinyproxy" "$build/load" "$shim" "$preload"
    gated 1 "tinyproxy as it came, with a leak, under the preload library" tinyproxy build/tslab \
        "$build/leaking/tinyproxy-1.11.1/src/tinyproxy" "$build/load" "$shim" "$preload"
}

# ---- the work -------------------------------------------------------------------------------

fetch pool/main/j/jq/jq_1.6.orig.tar.gz 3ba940b97571c866923f0409678033d33b5a98758dfc174fad8397ed908bc4d9
fetch pool/main/t/tinyproxy/tinyproxy_1.11.1.orig.tar.xz d66388448215d0aeb90d0afdd58ed00386fb81abc23ebac9d80e194fceb40f7c
for name in jq tinyproxy; do
    lines=$(changed_lines $name)
    [ "$lines" -lt 30 ] || die "adoption/$name.patch changes $lines lines: under 30 is the rule"
    checked "adoption/$name.patch changes $lines lines, counting lines added and lines removed"
done

say "building the library and the programs"
rm -rf "$build/before" "$build/after" "$build/checked" "$build/sanitized"
{ cmake -S . -B "$build/library" -DCMAKE_BUILD_TYPE=Release &&
    cmake --build "$build/library" --target temporal_slab_static -j 2; } >"$build/log/library" 2>&1 ||
    die "the library does not build: see $build/log/library"
asan="-O1 -g -fsanitize=address -fno-omit-frame-pointer"
# shellcheck disable=SC2086
"$cc" -std=gnu11 -Wall -Wextra $asan -Iinclude -c -o "$build/checked.o" adoption/checked.c || die "adoption/checked.c does not compile"
"$cc" -std=gnu11 -Wall -Wextra -O2 -pthread -o "$build/load" adoption/load.c || die "adoption/load.c does not compile"
library=$build/library/libtemporal_slab.a
sides="before after checked sanitized"
[ $tests = yes ] || sides="before after"
for side in $sides; do
    patches=yes with="" flags="-O2 -g"
    case $side in
    before) patches="" ;;
    after) with=$library ;;
    checked) with=$build/checked.o flags=$asan ;;
    sanitized) patches="" flags=$asan ;; # as it came, to see what is its own
    esac
    unpack $side jq_1.6.orig.tar.gz "${patches:+jq}" jq-jq-1.6
    unpack $side tinyproxy_1.11.1.orig.tar.xz "${patches:+tinyproxy}" tinyproxy-1.11.1
    build_jq $side "$flags" "$with"
    build_tinyproxy $side "$flags" "$with"
done

export PYTHONDONTWRITEBYTECODE=1 ASAN_OPTIONS=detect_leaks=0 # leaks: what a program leaves to its exit is no matter here
if [ $tests = no ]; then
    gate_all
    exit 0
fi
say "running their tests"
for name in jq tinyproxy; do
    "test_$name" before "unpatched"
    # What the library refuses, a late or a doubled free, ends the program.
    TSLAB_OPTIONS=misuse_fatal=1 "test_$name" after "with phases; a refused free aborts the program"
    "test_$name" checked "with phases implemented on malloc (adoption/checked.c), under AddressSanitizer"
done

said=$(python3 adoption/check.py same "$build/before/jq-jq-1.6/jq" "$build/checked/jq-jq-1.6/jq" "$build/before/jq-jq-1.6/tests") ||
    die "jq: $said"
checked "jq | with phases implemented on malloc, under AddressSanitizer | the inputs of its tests, three times each, in all input modes, with files, errors and halts | $said"
said=$(TSLAB_OPTIONS=misuse_fatal=1 python3 adoption/check.py same "$build/before/jq-jq-1.6/jq" "$build/after/jq-jq-1.6/jq" \
    "$build/before/jq-jq-1.6/tests") || die "jq: $said"
checked "jq | with phases; a refused free aborts the program | the same inputs | $said"

ask_proxy() { # SIDE WHAT-IT-IS
    said=$(TSLAB_OPTIONS=misuse_fatal=1 python3 adoption/check.py header "$build/$1/tinyproxy-1.11.1/src/tinyproxy" "$build/load") ||
        die "tinyproxy ($1): $said"
    [ "$said" = clean ] || [ "$1" = sanitized ] || die "tinyproxy ($1): $said"
    checked "tinyproxy | $2 | 500 requests, and one request whose Connection header names itself | $said"
}
ask_proxy sanitized "unpatched, under AddressSanitizer"
ask_proxy checked "with phases implemented on malloc, under AddressSanitizer"
ask_proxy after "with phases; a refused free aborts the program"
said=$(printf '1 2 3' | "$build/sanitized/jq-jq-1.6/jq" 'if . == 1 then "x"|halt_error else . end' 2>&1 | sed -n 's/.*ERROR: AddressSanitizer: \([a-z-]*\).*/\1/p')
checked "jq | unpatched, under AddressSanitizer | a document that is read after a halt | ${said:-clean}"
said=$(printf '1 2 3' | "$build/checked/jq-jq-1.6/jq" 'if . == 1 then "x"|halt_error else . end' 2>&1 | sed -n 's/.*ERROR: AddressSanitizer: \([a-z-]*\).*/\1/p')
[ -z "$said" ] || die "jq with phases, a document after one that has halted: $said"
checked "jq | with phases implemented on malloc, under AddressSanitizer | a document that is read after a halt | clean"

gate_all
[ $measure = yes ] || exit 0
say "measuring, $reps repetitions"
python3 adoption/measure.py "$build" "$reps" docs/results/adoption.md "scripts/adoption.sh $reps"
