#!/bin/bash
# The report of docs/sanitizers.md is what AddressSanitizer prints of the program beside the page: the same functions, sizes and lines of
# the program.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
need python3
clean
flags="-fsanitize=address -fno-omit-frame-pointer"
# shellcheck disable=SC2086  # flags are words
echo 'int main(void) { return 0; }' >empty.c && cc $flags empty.c -o empty 2>errors && ./empty 2>>errors ||
    skip "no AddressSanitizer here: $(tail -n 1 errors)"
# shellcheck disable=SC2086
(cd "$TSLAB_SOURCE_DIR/docs" && cc -g $flags -I../include use-after-end.c "$TSLAB_BUILD_DIR/libtemporal_slab.a" -lm -pthread -o "$OLDPWD/a.out") ||
    fail "docs/use-after-end.c does not compile"

# Paths are those of this machine: a frame keeps the file of the library or of docs/, and one of the compiler's own files nothing but its function.
report() {
    sed -E 's/^( +#[0-9]+ 0x[0-9a-f]+ in \S+) .*\/(docs\/|(src\/))([a-z/_-]+\.[ch]:[0-9]+).*/\1 \3\4/; t; s/^( +#[0-9]+ 0x[0-9a-f]+ in \S+) .*/\1/; /^SUMMARY/,$d; /^=+$/d'
}
command="ASAN_OPTIONS=fast_unwind_on_malloc=0 ./a.out"
page() { python3 "$TSLAB_SOURCE_DIR/tests/cli/shown.py" --exactly "$TSLAB_SOURCE_DIR/docs/sanitizers.md" "$command" "$@"; }
eval "$command" 2>printed
report <printed >said
page said || complain "docs/sanitizers.md"

for other in s/42-byte/43-byte/ s/end.c:15/end.c:16/ s/end_request/end_session/ s/epoch_domain_end/epoch_domain_exit/ '/previously allocated/d'; do
    sed "$other" said >changed
    ! page changed 2>wrong || complain "not told: $other"
done
finish
