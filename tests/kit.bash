# shellcheck shell=bash
# kit.bash - what the scripts of tests share. Each begins with
#
#   . "$TSLAB_SOURCE_DIR/tests/kit.bash"
#
# and runs in a scratch folder of its own. `fail` ends it, `complain` goes on: a script that has complained does not end
# with 0, whatever its last command says.
failures=0
tested=() # what `expect` runs; its arguments follow

skip() { # REASON...: of the whole test
    echo "skipped: $*"
    exit 77
}
need() { # PROGRAM [REASON]: or the test is skipped
    command -v "$1" >/dev/null || skip "${2:-no $1}"
}
fail() {
    echo "FAILED: $*" >&2
    exit 1
}
complain() {
    echo "FAILED: $*" >&2
    failures=$((failures + 1))
}
finish() { exit $((failures != 0)); }
# For those that end without it. Another trap of the script takes its place.
trap '[ $? -ne 0 ] || [ "$failures" -eq 0 ] || exit 1' EXIT

# scale_reaches N: whether TSLAB_TEST_SCALE, 1 where it is not set, is at least the whole number N.
scale_reaches() {
    local scale=${TSLAB_TEST_SCALE:-1}
    scale=${scale%%.*}
    [ "${scale:-0}" -ge "$1" ]
}

# As little as compiling all of the library costs, for a test that does so only to see that it can be, or what a tool makes of it.
cheap=-O0
! scale_reaches 1 || cheap=-O1

# Empties the scratch folder, or takes NAMEs out of it. Not in a source tree, where somebody may have called the script.
clean() { # [NAME...]
    local sign
    for sign in .git CMakeLists.txt; do
        [ ! -e $sign ] || fail "$PWD has a $sign: the test would delete what is there; call it in a folder of its own"
    done
    [ $# -gt 0 ] || set -- ./*
    rm -rf -- "$@"
}

# A program of tests/, with the library that is being tested.
compile_test() { # FILE OUT FLAG...
    local file=$TSLAB_SOURCE_DIR/tests/$1 out=$2
    shift 2
    cc -std=gnu11 -O1 -g -pthread "$@" -I"$TSLAB_SOURCE_DIR/include" -I"$TSLAB_SOURCE_DIR/src" -I"$TSLAB_SOURCE_DIR/tests" \
        "$file" "$TSLAB_BUILD_DIR/libtemporal_slab.a" -lm -o "$out" || fail "$file does not compile"
}

# Runs with standard output to ./out and standard error to ./err.
expect() { # STATUS ARGUMENT...
    local wanted=$1 status=0
    shift
    "${tested[@]}" "$@" >out 2>err </dev/null || status=$?
    [ $status -eq "$wanted" ] || complain "${tested[*]} $*: exit $status instead of $wanted: $(tail -c 300 err out)"
}
has() { grep -q -e "$2" "$1" || complain "$1 has no '$2': $(head -c 900 "$1")"; } # FILE PATTERN
lacks() { if grep -q -e "$2" "$1"; then complain "$1 has '$2': $(grep -e "$2" "$1" | head -n 3)"; fi; }
empty() { [ ! -s "$1" ] || complain "$1 is not empty: $(head -c 300 "$1")"; }

# eventually SECONDS COMMAND...: until it succeeds.
eventually() {
    local n=$(($1 * 20))
    shift
    while ! "$@"; do
        [ $((n -= 1)) -gt 0 ] || return 1
        sleep 0.05
    done
}
