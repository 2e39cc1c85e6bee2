#!/bin/bash
# The example of the README compiles as it stands, and prints what the README shows, but for how long it took.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
clean
readme=$TSLAB_SOURCE_DIR/README.md
awk '/^```c$/ { on = 1; next } /^```/ { on = 0 } on' "$readme" >example.c
awk '/^```/ { on = !inside && $0 == "```"; inside = !inside; next } on' "$readme" | sed 's/took [0-9]* ns/took N ns/' >shown
[ -s example.c ] && [ -s shown ] || fail "the README has no example, or no output"
cc -O2 -Wall -Wextra -Werror -pthread -std=gnu11 -I"$TSLAB_SOURCE_DIR/include" example.c "$TSLAB_BUILD_DIR/libtemporal_slab.a" -o example ||
    fail "it does not compile"
TSLAB_OPTIONS='' ./example | sed 's/took [0-9]* ns/took N ns/' >printed
diff -u shown printed >&2 || complain "it prints something else"
finish
