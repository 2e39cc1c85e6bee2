#!/bin/bash
# src/, include/ and preload/ are as the formatter leaves them (.clang-format; `clang-format-14 -i FILE` mends a file). Each version
# formats a little differently, so it is that one. Tables (*.def) are not formatted.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
need clang-format-14 "clang-format-14 is not installed"
cd "$TSLAB_SOURCE_DIR" || exit 1
mapfile -t files < <(find src include preload -type f \( -name '*.[ch]' -o -name '*.hpp' \) | sort)
said=$(clang-format-14 --dry-run --Werror "${files[@]}" 2>&1) ||
    complain "not as clang-format-14 leaves them: $(grep -E '^[^ ]+:[0-9]+:' <<<"$said")"
[ "${#files[@]}" -gt 100 ] || complain "only ${#files[@]} files were found"
finish
