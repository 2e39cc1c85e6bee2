# Shared by the scripts of this folder: run the demo, look at what it said.
demo=$TSLAB_BUILD_DIR/tslab_demo
unset TSLAB_OPTIONS
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
tested=("$demo")

# No line of the report is wider than a page.
fits() { awk 'length($0) > 100 { print; bad = 1 } END { exit bad }' "$1" >&2 || complain "$1: more than 100 columns"; }
# One screen: the verdict first (of standard error: after what told how far it is), then what the library counted.
screen() {
    grep . "$1" | grep -v '^round \|^  glibc: \|^  tslab: \|^tslab_demo: ' >screen
    head -n 3 screen | tr '\n' '~' | grep -q '^A request server [^~]*~  [0-9]* pairs\{0,1\} of runs [^~]*~  processor time ' ||
        complain "$1 does not begin with a verdict: $(head -n 4 screen)"
    [ "$(wc -l <screen)" -le 28 ] || complain "$1 is more than a screen: $(wc -l <screen) lines"
    for words in '^  page faults ' '^  resident ' '^  by label, counted' '^  [^ ].* attention' '^More: --tables'; do has screen "$words"; done
    ! grep -q 'see ACTION below' screen || has screen '^ *ACTION: '
    sound "$1"
}
sound() {
    for words in '^Answers: all .* identical' '^Accounts: .* agree'; do has "$1" "$words"; done
}
# All tables, behind the verdict.
whole() {
    for words in '^  processor time ' '^Every figure' '^Latency by route' '^By label' '^Phases by route' '^The receipt' \
        '^The doctor'; do
        has "$1" "$words"
    done
    sound "$1"
}
