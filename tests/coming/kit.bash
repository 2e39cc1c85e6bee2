# Sourced by the tests of this folder, in a scratch folder. A program of docs/coming-from/code ends with 0 when nothing of it is left and is
# aborted by its first misuse; what it prints is compared with its page, and with what the program that it comes from prints.
set -eu
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
clean before after before.out after.out page.out
code=$TSLAB_SOURCE_DIR/docs/coming-from/code
strict="-Wall -Wextra -Wpedantic -Werror -D_GNU_SOURCE"

compiler_of() { # FILE: the compiler, and the language it is told of
    case $1 in
    *.cpp) echo g++ -std=c++17 ;;
    *) echo gcc -std=gnu11 ;;
    esac
}

after() { # FILE: builds and runs it, and holds it against the page
    local page=$TSLAB_SOURCE_DIR/docs/coming-from/${1%-after.*}.md
    # shellcheck disable=SC2046,SC2086  # words
    $(compiler_of "$1") $strict -I"$TSLAB_SOURCE_DIR/include" "$code/$1" "$TSLAB_BUILD_DIR/libtemporal_slab.a" -pthread -o after
    TSLAB_OPTIONS=misuse_fatal=1 ./after >after.out || fail "$1 ends with $?: $(cat after.out)"
    awk '/^Both print:$/ { on = 1; next } on && /^    / { print substr($0, 5); said = 1; next } on && said { exit }' "$page" >page.out
    [ -s page.out ] || fail "$page does not say what both print"
    diff -u --label "$page" page.out --label "$1" after.out >&2 || fail "$1 prints something else than its page says"
}

before() { # FILE FLAG...: builds and runs it, and compares
    local file=$1
    shift
    # shellcheck disable=SC2046,SC2086  # words
    $(compiler_of "$file") $strict "$code/$file" "$@" -o before
    TSLAB_OPTIONS=misuse_fatal=1 ./before >before.out || fail "$file ends with $?"
    same_as_after "$file"
}

same_as_after() { # FILE, whose output is before.out
    diff -u --label "$1" before.out --label "${1/before/after}" after.out >&2 || fail "before and after print different things"
}

# Says "skipped: REASON" unless the header can be included: the peer is not installed.
have_header() { # HEADER PACKAGE FLAG...
    local header=$1 package=$2
    shift 2
    echo "#include <$header>" | gcc -E "$@" - >/dev/null 2>&1 && return
    echo "skipped: no <$header> here (Debian package $package): only the program after was run"
    return 1
}
