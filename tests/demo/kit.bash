# Shared by the scripts of this folder: run the demo, look at what it said.
demo=$TSLAB_BUILD_DIR/tslab_demo
unset TSLAB_OPTIONS
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
tested=("$demo")

# No line of the report is wider than a page.
fits() { awk 'length($0) > 100 { print; bad = 1 } END { exit bad }' "$1" >&2 || complain "$1: more than 100 columns"; }
# The verdict comes first (of standard error: after what told how far it is), in three lines, and every table after it.
whole() {
    grep . "$1" | grep -v '^round \|^  glibc: \|^  tslab: \|^tslab_demo: ' | head -n 4 | tr '\n' '~' | grep -q '^temporal-slab beside glibc malloc, median of [0-9]* pairs\{0,1\} of runs~  Speed:[^~]*~  Memory:[^~]*~  Kernel:[^~]*page faults' ||
        complain "$1 does not begin with a verdict: $(grep . "$1" | head -n 4)"
    for words in 'requests per second' '^Latency by route' '^By label' '^Phases by route' '^The receipt' '^The doctor' \
        '^Answers: all .* identical' '^Accounts: .* agree'; do
        has "$1" "$words"
    done
}
