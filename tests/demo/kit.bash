# Shared by the scripts of this folder: run the demo, look at what it said.
demo=$TSLAB_BUILD_DIR/tslab_demo
failures=0
unset TSLAB_OPTIONS

fail() {
    echo "FAILED: $*" >&2
    failures=$((failures + 1))
}
# expect STATUS ARGUMENT...: runs with standard output to ./out and standard error to ./err.
expect() {
    local wanted=$1 status=0
    shift
    "$demo" "$@" >out 2>err </dev/null || status=$?
    [ $status -eq "$wanted" ] || fail "tslab_demo $*: exit $status instead of $wanted: $(tail -c 300 err)"
}
has() { grep -q -e "$2" "$1" || fail "$1 has no '$2': $(tail -c 600 "$1")"; }
lacks() { if grep -q -e "$2" "$1"; then fail "$1 has '$2': $(grep -e "$2" "$1" | head -3)"; fi; }
empty() { [ ! -s "$1" ] || fail "$1 is not empty: $(head -c 300 "$1")"; }
# No line of the report is wider than a page.
fits() { awk 'length($0) > 100 { print; bad = 1 } END { exit bad }' "$1" >&2 || fail "$1: more than 100 columns"; }
# The verdict comes first (of standard error: after what told how far it is), in three lines, and every table after it.
whole() {
    grep . "$1" | grep -v '^round \|^  glibc: \|^  tslab: \|^tslab_demo: ' | head -n 4 | tr '\n' '~' | grep -q '^temporal-slab beside glibc malloc, median of [0-9]* pairs\{0,1\} of runs~  Speed:[^~]*~  Memory:[^~]*~  Kernel:[^~]*page faults' ||
        fail "$1 does not begin with a verdict: $(grep . "$1" | head -n 4)"
    for words in 'requests per second' '^Latency by route' '^By label' '^Phases by route' '^The receipt' '^The doctor' \
        '^Answers: all .* identical' '^Accounts: .* agree'; do
        has "$1" "$words"
    done
}
