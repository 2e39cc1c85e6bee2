#!/bin/bash
# go vet over tslab, and its tests under Go's race detector: of the packages that have goroutines, or are called from some. The
# detector is compiled first and makes everything several times slower, so that only happens with TSLAB_TEST_SCALE above 1.
set -u
. "$TSLAB_SOURCE_DIR/tests/cli/kit.bash"
need_go
unset TSLAB_OPTIONS NO_COLOR
cd "$source/tslab" || exit 1
"$go" vet ./... || fail "go vet"
if ! scale_reaches 2; then
    echo "go vet: nothing to say"
    echo "skipped: the race detector, which runs with TSLAB_TEST_SCALE above 1"
    exit 0
fi
export CGO_ENABLED=1 TSLAB_STATS_DUMP=$TSLAB_BUILD_DIR/stats_dump
packages=$(grep -rlE '\bgo func|go [a-z]+\(|signal\.Notify|context\.AfterFunc|http\.' --include='*.go' internal | xargs -n 1 dirname | sort -u | sed 's,^,./,')
grep -q internal/cli <<<"$packages" || fail "no goroutine was found in internal/cli, where there are some"
[ "$("$go" env CGO_ENABLED)" = 1 ] || skip "the race detector needs cgo"
# shellcheck disable=SC2086 # a list
"$go" test -race -vet=off -count=1 $packages ./internal/segment || fail "the race detector, or a test under it"
