#!/bin/bash
# `tslab profile --escapes`: what outlives its phase is told by the stack that made it, each object, in a program that is linked
# with nothing of the library; the sums are those of the label. The innermost function is the program's, whichever way it asks
# for memory: none of the library's is on a stack. A program without frame pointers, and one that is stripped, is told
# what to do.
set -u
. "$TSLAB_SOURCE_DIR/tests/cli/kit.bash"
need_go
need python3
unset TSLAB_OPTIONS NO_COLOR LD_PRELOAD
build_tslab "$PWD/tslab"
preload=$TSLAB_BUILD_DIR/libtemporal_slab_preload.so
[ -f "$preload" ] || skip "no libtemporal_slab_preload.so in this build"

# Ten rounds; in each, each maker lets one object escape, and frees another. Half of them are freed in the end.
cat >program.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <temporal_slab/phase.h>
#define MAKER __attribute__((noinline)) static void*
#define DONE __asm__ volatile("") /* no tail call */
MAKER by_malloc(void) { void* p = malloc(100); free(malloc(30)); DONE; return p; }
MAKER by_calloc(void) { void* p = calloc(3, 70); free(calloc(1, 30)); DONE; return p; }
MAKER by_realloc(void) { void* p = realloc(malloc(20), 9000); DONE; return p; }
MAKER by_large(void) { void* p = calloc(1, 300000); free(malloc(400000)); DONE; return p; }
MAKER by_aligned(void) { void* p = aligned_alloc(64, 192); DONE; return p; }
MAKER by_posix(void) { void* p = NULL; int e = posix_memalign(&p, 256, 100); DONE; return e == 0 ? p : NULL; }
MAKER by_strdup(void) { void* p = strdup("a name"); DONE; return p; }
MAKER by_strndup(void) { void* p = strndup("a longer name", 8); DONE; return p; }
static void* (*const makers[])(void) = {by_malloc, by_calloc, by_realloc, by_large, by_aligned, by_posix, by_strdup, by_strndup};
enum { MAKERS = sizeof makers / sizeof *makers, ROUNDS = 10 };
static void* kept[ROUNDS][MAKERS];
__attribute__((noinline)) static void handle(int round) {
    for (int n = 0; n < MAKERS; n++) if ((kept[round][n] = makers[n]()) == NULL) abort();
    DONE;
}
int main(void) {
    for (int round = 0; round < ROUNDS; round++) {
        tslab_phase* phase = tslab_phase_begin("/page");
        handle(round);
        tslab_phase_end(phase);
    }
    for (int round = 0; round < ROUNDS; round += 2)
        for (int n = 0; n < MAKERS; n++) free(kept[round][n]);
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF) free(malloc(5000000)); /* comes by to publish */
    return 0;
}
END
flags=(-O1 -g -fno-builtin -I"$TSLAB_SOURCE_DIR/include")
cc "${flags[@]}" -fno-omit-frame-pointer program.c -o program || fail "program.c does not compile"
cc "${flags[@]}" -O2 -fomit-frame-pointer program.c -o frameless && strip -o stripped program || fail "program.c does not compile otherwise"
mkfifo input

begin() { # OPTIONS PROGRAM
    env TSLAB_OPTIONS="segment=1,$1" LD_PRELOAD="$preload" "$2" <input >said 2>err &
    pid=$!
    exec 9>input
    trap 'kill $pid 2>/dev/null' EXIT
    is_ready() { grep -q ready said; }
    eventually 120 is_ready || fail "$2 does not begin: $(cat err)"
}
end() {
    exec 9>&-
    wait $pid || complain "exit code $?: $(cat err)"
}
fetched() { # escapes.json, once what the program has freed is not there any more
    echo >&9
    sleep 0.15
    ./tslab profile --pid $pid --escapes -n 0 --json >escapes.json 2>advice
    [ "$(sed -nE 's/.*"live_objects": ([0-9]+),.*/\1/p' escapes.json | awk '{ n += $1 } END { print n + 0 }')" = 40 ]
}

begin escape_stacks=1 ./program
eventually 120 fetched || complain "not all is told: $(cat escapes.json advice)"
./tslab stats --pid $pid --json >stats.json || complain "tslab stats"
python3 - <<'END' || complain "escapes: $(cat escapes.json)"
import json
told = json.load(open("escapes.json"))["escapes"]
makers = ["by_malloc", "by_calloc", "by_realloc", "by_large", "by_aligned", "by_posix", "by_strdup", "by_strndup"]
assert sorted(e["stack"][0] for e in told) == sorted(makers), [e["stack"] for e in told]
for e in told:
    assert e["stack"][1:3] == ["handle", "main"], e
    assert e["label"] == "/page" and e["escaped_objects"] == 10 and e["live_objects"] == 5 and e["live_bytes"] * 2 == e["escaped_bytes"], e
label = [l for l in json.load(open("stats.json"))["labels"] if l["label"] == "/page"][0]
assert sum(e["escaped_objects"] for e in told) == label["objects_escaped"] == 80, label
assert sum(e["escaped_bytes"] for e in told) == label["bytes_escaped"], label
END
empty advice
./tslab profile --pid $pid --escapes -n 0 --bytes >text || complain "as text"
has text '^/page *10 *[0-9]* *5 *[0-9]* *by_strdup < handle < main'
./tslab profile --pid $pid --escapes >brief && python3 "$TSLAB_SOURCE_DIR/tests/cli/shown.py" "$TSLAB_SOURCE_DIR/docs/profile.md" "tslab profile --pid \$! --escapes" brief ||
    complain "docs/profile.md"
./tslab profile --pid $pid -n 0 >all || complain "tslab profile"
has all '^by_calloc '
./tslab flame --pid $pid -o flame.html --by escaped_objects >/dev/null || complain "tslab flame"
has flame.html '"n":"by_strndup","v":10'
! grep -hoE '\b(tsp_|tsi_|slab_|malloc_more|new_more|calloc_more|calloc_large|realloc_more)[a-z_]*' text all flame.html || complain "functions of the library are shown"
! grep -E '^(malloc|calloc|realloc|aligned|posix_memalign|strdup|strndup) ' all || complain "functions of the preload library are shown"
./tslab profile --pid $pid -o heap.pb.gz >/dev/null && ./tslab profile --file heap.pb.gz --escapes >from_file || complain "from a file"
has from_file '^/page .* by_posix < handle < main'
end

begin escape_stacks=1 ./frameless
eventually 120 fetched || complain "frameless: not all is told: $(cat escapes.json advice)"
has advice 'stacks [0-9]* end in the middle of .*/frameless, which keeps no frame pointers.* -fno-omit-frame-pointer'
end
begin escape_stacks=1 ./stripped
eventually 120 fetched || complain "stripped: not all is told: $(cat escapes.json advice)"
has advice 'functions in .*/stripped have no names, for it is stripped: install its debug symbols .*-dbgsym'
end

begin profile_bytes=512 ./program
refused() {
    echo >&9
    ./tslab profile --pid $pid --escapes >out 2>advice
    [ $? = 2 ] && grep -q 'TSLAB_OPTIONS=segment=1,escape_stacks=1' advice
}
eventually 60 refused || complain "without the option: $(cat out advice)"
end
finish
