#!/bin/bash
# Builds the library with other compilers, C libraries, processors and page sizes, runs its unit, contract, misuse, stress and model
# tests there, and prints a table of what ran and with what result.
# Usage: platforms.sh [-a] [-b] [-n] [-o FOLDER] [-R REGEX] [-s SCALE] [-t MINUTES] [PLATFORM...]
#   gcc-N clang-N   that compiler: gcc-11 gcc-12 clang-14 clang-16 clang-19 when no platform is named
#   musl            the C library of that name, linked statically (musl-gcc)
#   arm64           a cross compiler, and an emulator in place of the processor (qemu-user; before version 8 it is slow and leaves out more)
#   pages-16k pages-64k   a kernel with larger pages, which tests/platforms/pages.c pretends in front of libc
#   narrow          a compiler for 32 bits, which must be refused
#   headers         the public headers alone, as strict C11 and as C++17, 20 and 23, by each compiler of the above that is here
#   -a   runs platforms again that have passed with the same sources, options and compiler; what a run that was stopped or failed has passed is not run again either
#   -b   each program once, not again with the options of tests/CMakeLists.txt (shared, classes, malloc, guards)
#   -n   runs nothing: says which platforms there are, and what each lacks here
#   -o   where builds, logs and results go (default build/platforms)
#   -R   only the tests whose names match
#   -s   multiplies the work of tests, a number from 0.01 to 9999 (default 0.25; arm64 0.1)
#   -t   minutes that the tests of one platform may take (default 60)
# What is missing is installed as root, by scripts/install-deps.sh; otherwise the platform is not run, and the table says what it needs.
# Exit status: 0 all have passed, 1 one has failed, was stopped or could not run, 2 wrong words.
set -u
source=$(cd "$(dirname "$0")/.." && pwd) || exit 1
ALL="gcc-11 gcc-12 clang-14 clang-16 clang-19 musl arm64 pages-16k pages-64k narrow headers"
FOLDERS="unit contract misuse stress model"

usage() {
    echo "platforms.sh: $*; usage: platforms.sh [-a] [-b] [-n] [-o FOLDER] [-R REGEX] [-s SCALE] [-t MINUTES] [PLATFORM...], see its head" >&2
    exit 2
}
again=no briefly=no only="" scale="" minutes=60 list=no out=$source/build/platforms
while getopts :abno:R:s:t: option; do
    case $option in
    a) again=yes ;;
    b) briefly=yes ;;
    n) list=yes ;;
    o) out=$OPTARG ;;
    R) only=$OPTARG ;;
    s) scale=$OPTARG ;;
    t) minutes=$OPTARG ;;
    :) usage "-$OPTARG needs a value" ;;
    *) usage "no option is called '-$OPTARG'; long options do not exist" ;;
    esac
done
shift $((OPTIND - 1))
[[ -z $scale || $scale =~ ^(0\.[0-9]{0,1}[1-9]|[1-9][0-9]{0,3})$ ]] || usage "the scale is a number from 0.01 to 9999, not '$scale'"
[[ $minutes =~ ^[1-9][0-9]{0,3}$ ]] || usage "minutes are a number from 1 to 9999, not '$minutes'"
[ -n "$out" ] || usage "the folder has no name"
if [ -n "$only" ]; then
    status=0
    echo | grep -qE -- "$only" 2>/dev/null || status=$?
    [ $status -le 1 ] || usage "'$only' is no regular expression"
fi
# shellcheck disable=SC2086  # words
[ $# -gt 0 ] || set -- $ALL
for platform in "$@"; do
    [[ " $ALL " == *" $platform "* || $platform =~ ^(gcc|clang)-[1-9][0-9]?$ ]] || usage "no platform is called '$platform'"
done

# ---- what a platform needs ----

compiler_of() { # PLATFORM: the C compiler
    case $1 in
    gcc-* | clang-*) echo "$1" ;;
    musl) echo musl-gcc ;;
    arm64) echo aarch64-linux-gnu-gcc ;;
    pages-*) echo gcc-12 ;;
    *) echo gcc ;;
    esac
}
tools_of() {
    case $1 in
    arm64) echo cmake ninja qemu-aarch64 ;;
    narrow) echo cmake ;;
    headers) ;;
    *) echo cmake ninja ;;
    esac
    compiler_of "$1"
}
lacking() { # PLATFORM: the tools that are not there
    local tool
    for tool in $(tools_of "$1"); do command -v "$tool" >/dev/null || printf ' %s' "$tool"; done
}
if [ $list = yes ]; then
    for platform in "$@"; do
        missing=$(lacking "$platform")
        printf '%-10s %s\n' "$platform" "${missing:+lacks$missing (make deps FOR=$platform)}"
    done
    exit 0
fi

mkdir -p "$out" && out=$(cd "$out" && pwd) || exit 1
# Takes its row from the run before if that passed with what would run now.
sources=$(cd "$source" && find CMakeLists.txt cmake common include src tests/{CMakeLists.txt,kit,platforms,skips.list,unit,contract,misuse,stress,model} \
    -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum | cut -c 1-16)
version_of() { "$(compiler_of "$1")" --version 2>/dev/null | head -n 1; }
key_of() { echo "$sources ${scale:-own} ${only:-all} $briefly $(version_of "$1")"; }

# ---- one platform ----

result="" passed=- tests=- skips=- note=""
row() { # PLATFORM SECONDS
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$1" "$result" "$passed" "$tests" "$skips" "$2" "$note"
}
fails() { # NOTE LOG
    result=FAILED note=$1
    tail -n 15 "$2" >&2
}

configure() { # PLATFORM BUILD
    local options=(-G Ninja -S "$source" -B "$2" -DCMAKE_BUILD_TYPE=Release -DTSLAB_WERROR=ON -DTSLAB_BUILD_TESTS=ON
        -DTSLAB_BUILD_PRELOAD=OFF -DTSLAB_INSTALL=OFF "-DCMAKE_C_COMPILER=$(compiler_of "$1")"
        "-DCMAKE_CROSSCOMPILING_EMULATOR=bash;$source/tests/platforms/under.bash")
    case $1 in
    # segments that begin at whole pages, however large those are, and no hole before the code
    gcc-12 | pages-*) options+=("-DCMAKE_EXE_LINKER_FLAGS=-Wl,-z,max-page-size=65536,-z,common-page-size=65536,-z,noseparate-code") ;;
    musl) options+=(-DCMAKE_EXE_LINKER_FLAGS=-static -DCMAKE_CXX_COMPILER=NOTFOUND) ;;
    arm64) options+=(-DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_CXX_COMPILER=NOTFOUND) ;;
    esac
    cmake "${options[@]}"
}
# The options of ctest that choose the tests, without those that FILE has, a name a line.
choice() { # [FILE]
    local out=""
    printf '%s\n' -L "^(${FOLDERS// /|})$"
    [ -z "$only" ] || printf '%s\n' -R "$only"
    # not misuse/malloc_impossible and malloc_nothing, which are programs
    [ $briefly = no ] || out='/(shared|classes|guards)_|/malloc_([^in]|i[^m]|n[^o])'
    [ ! -s "${1:-}" ] || out="${out:+$out|}^($(paste -s -d '|' "$1"))\$"
    [ -z "$out" ] || printf '%s\n' -E "$out"
}
# The programs of the tests that will run, as targets.
targets() { # BUILD
    local folder name
    if [ -z "$only" ]; then
        for folder in $FOLDERS; do echo "${folder}_programs"; done
        return
    fi
    ctest --test-dir "$1" -N "${chosen[@]}" 2>/dev/null | sed -nE 's/^ *Test +#[0-9]+: //p' | while IFS=/ read -r folder name; do
        [ -e "$source/tests/$folder/$name.c" ] || name=${name#*_} # again with other options
        echo "${folder}_$name"
    done | sort -u
}

run_tests() { # PLATFORM
    local platform=$1 build=$out/$1 log=$out/$1.log said=$out/$1.ctest status=0 wanted limit=$((minutes * 60))
    case $platform in pages-*) build=$out/gcc-12 ;; esac # the same programs
    rm -f "$said"
    configure "$platform" "$build" >"$log" 2>&1 || { fails "it is not configured: $log" "$log"; return; }
    wanted=$(targets "$build")
    [ -n "$wanted" ] || { result=FAILED note="no test matches '$only'"; return; }
    # shellcheck disable=SC2086  # words
    cmake --build "$build" -j 2 --target $wanted -- -k 0 >>"$log" 2>&1 || { fails "it does not build: $log" "$log"; return; }

    export TSLAB_PLATFORM=$platform TSLAB_TEST_SCALE=${scale:-0.25}
    case $platform in
    arm64) TSLAB_TEST_SCALE=${scale:-0.1} ;;
    esac
    case $platform in
    arm64 | pages-*)
        export TSLAB_PAGES=$out/$platform-pages.so
        "$(compiler_of "$platform")" -O1 -shared -fPIC -Wall -Wextra -Werror "$source/tests/platforms/pages.c" -o "$TSLAB_PAGES" \
            >>"$log" 2>&1 || { fails "pages.c does not build: $log" "$log"; return; }
        ;;
    esac
    # Those that have passed in a run that was stopped or failed, with what runs now.
    local done=$out/$platform.done names=$out/$platform.names key
    key=$(key_of "$platform")
    if [ $again = yes ] || [ ! -s "$done" ] || [ "$(head -n 1 "$done")" != "$key" ]; then
        echo "$key" >"$done"
        : >"$out/$platform-skips.txt"
    fi
    tail -n +2 "$done" >"$names"
    mapfile -t chosen < <(choice "$names")
    timeout -k 10 $limit ctest --test-dir "$build" -j 2 --timeout 1500 "${chosen[@]}" --output-on-failure \
        >"$said" 2>&1 || status=$?

    skip_lines "$platform" "$build" "$said" "$status" >>"$out/$platform-skips.txt" # before ctest -N empties the log
    sed -nE 's/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: ([^ ]+) .* Passed .*/\1/p' "$said" | sort -u |
        grep -vxFf "$names" >>"$done"
    mapfile -t chosen < <(choice)
    tests=$(ctest --test-dir "$build" -N "${chosen[@]}" | sed -nE 's/^Total Tests: //p')
    passed=$(tail -n +2 "$done" | wc -l)
    result=passed
    if [ $status -ge 124 ]; then
        result=stopped note="after $minutes minutes (-t); called again it goes on"
    elif [ $status -ne 0 ]; then
        result=FAILED note="log: $said"
        sed -n '/The following tests FAILED/,$p' "$said" >&2
    fi
    skips=$(grep -ciE '^skipped' "$out/$platform-skips.txt")
    if [ $result = passed ] && grep '^SKIPPED' "$out/$platform-skips.txt" >&2; then
        result=FAILED note="a skip that tests/skips.list does not allow"
    fi
}
# What this run has skipped, without what earlier ones have said of it.
skip_lines() { # PLATFORM BUILD SAID STATUS
    local log=$2/Testing/Temporary/LastTest.log
    grep -q ' Test  *#' "$3" || return # none was left to run
    [ "$4" -lt 124 ] || log=$log.tmp  # so it is called until the end
    "$source/scripts/check-skips.sh" "$1" "$log" "$3" 2>&1 | grep -i '^skipped' |
        grep -vxFf "$out/$1-skips.txt"
}

run_narrow() {
    local log=$out/narrow.log status=0
    mkdir -p "$out/narrow"
    (cd "$out/narrow" && TSLAB_SOURCE_DIR=$source TSLAB_BUILD_DIR=$out bash "$source/tests/install/narrow.sh") >"$log" 2>&1 || status=$?
    passed=0 tests=1 skips=0
    case $status in
    0) result=passed passed=1 note="refused at configure time, with a reason" ;;
    77) result="not run" note=$(sed -n 's/^skipped: //p' "$log") ;;
    *) fails "log: $log" "$log" ;;
    esac
}

# Each header twice over, so that its guard is tried. Adapters need the headers of what they adapt: tests/headers/adapters.sh.
run_headers() {
    local log=$out/headers.log compiler words header lines=() here=0 all=0 bad=0
    : >"$log"
    for compiler in gcc-{9..16} clang-{11..21}; do
        command -v "$compiler" >/dev/null || continue
        here=$((here + 1))
        note="$note $compiler"
        lines+=("$compiler -std=c11 -x c")
        words=${compiler/gcc/g++}
        words=${words/clang/clang++}
        if ! echo 'template <class T> T f(T a) { return a; }' | "$words" -std=c++2b -x c++ -fsyntax-only - 2>>"$log"; then
            note="$note (no C++23)"
            command -v "$words" >/dev/null || continue
        else
            lines+=("$words -std=c++2b -x c++")
        fi
        lines+=("$words -std=c++17 -x c++" "$words -std=c++20 -x c++")
    done
    for words in "${lines[@]}"; do
        for header in "$source"/include/*.h "$source"/include/temporal_slab/phase.h "$source"/include/*.hpp "$source"/include/temporal_slab/*.hpp; do
            case $header-$words in *.hpp-*"-x c") continue ;; */task.hpp-*c++17*) continue ;; esac
            header=${header#"$source"/include/}
            all=$((all + 1))
            # shellcheck disable=SC2086  # words
            printf '#include <%s>\n#include <%s>\n' "$header" "$header" |
                ${words% -x*} -x ${words##* } -Wall -Wextra -Wpedantic -pedantic-errors -Werror -fsyntax-only -I"$source/include" - >>"$log" 2>&1 ||
                { bad=$((bad + 1)) && echo "FAILED: $words: $header" | tee -a "$log" >&2; }
        done
    done
    passed=$((all - bad)) tests=$all skips=0
    if [ $bad -ne 0 ]; then result=FAILED note="log: $log"
    elif [ $here -eq 0 ]; then result="not run" note="no compiler with a version in its name (make deps FOR=platforms)"
    else result=passed note="by$note"; fi
}

run_platform() { # PLATFORM
    local missing
    result="" passed=- tests=- skips=- note=""
    "$source/scripts/install-deps.sh" --root "$1" >"$out/$1.deps" 2>&1
    missing=$(lacking "$1")
    if [ -n "$missing" ]; then
        result="not run" note="not in PATH:$missing (as root: make deps FOR=$1)"
        return
    fi
    case $1 in
    narrow) run_narrow ;;
    headers) run_headers ;;
    *) run_tests "$1" ;;
    esac
    case $1 in narrow | headers) ;; *) note="${note:+$note; }$(version_of "$1")" ;; esac
}

mapfile -t chosen < <(choice) # of all that are asked for
bad=0
table=$(mktemp) || exit 1
trap 'rm -f "$table"' EXIT
for platform in "$@"; do
    kept=$out/$platform.row
    if [ $again = no ] && [ -s "$kept" ] && [ "$(head -n 1 "$kept")" = "$(key_of "$platform")" ]; then
        echo "==== $platform: passed before with these sources"
        tail -n 1 "$kept" >>"$table"
        continue
    fi
    echo "==== $platform"
    rm -f "$kept"
    begin=$SECONDS
    run_platform "$platform"
    row "$platform" $((SECONDS - begin)) >>"$table"
    if [ "$result" = passed ]; then
        { key_of "$platform" && tail -n 1 "$table"; } >"$kept.new" && mv "$kept.new" "$kept"
    else
        bad=1
    fi
done

echo
awk -F '\t' 'BEGIN { printf "%-10s %-8s %7s %6s %7s %8s  %s\n", "platform", "result", "passed", "of", "skipped", "seconds", "" }
             { printf "%-10s %-8s %7s %6s %7s %8s  %s\n", $1, $2, $3, $4, $5, $6, $7 }' "$table"
# What did not run, each reason once, with how many tests and cases gave it.
for platform in "$@"; do
    [ -s "$out/$platform-skips.txt" ] || continue
    sed -nE 's/^(skipped|SKIPPED, NOT ALLOWED) in ([^:]*): (.*)$/\3\t\2/p' "$out/$platform-skips.txt" | sort |
        awk -F '\t' -v platform="$platform" '
            !($1 in count) { order[++reasons] = $1 }
            { count[$1]++; if (!(($1, $2) in seen)) { seen[$1, $2] = 1; if (++of[$1] <= 3) where[$1] = where[$1] " " $2 } }
            END { if (reasons) print "\nnot run on " platform ":"
                  for (n = 1; n <= reasons; n++)
                      printf "  %s (%d:%s%s)\n", order[n], count[order[n]], where[order[n]], (of[order[n]] > 3 ? " ..." : "") }'
done
exit $bad
