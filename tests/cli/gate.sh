#!/bin/bash
# `tslab gate`: a server that is linked with nothing of the library, under the preload library, fails the gate where its
# requests leave something behind, under the route that does, and passes where it only has caches. Two documents, too.
set -u
. "$TSLAB_SOURCE_DIR/tests/cli/kit.bash"
need_go
need python3
unset TSLAB_OPTIONS NO_COLOR LD_PRELOAD
build_tslab "$PWD/tslab"
preload=$TSLAB_BUILD_DIR/libtemporal_slab_preload.so
[ -f "$preload" ] || skip "no libtemporal_slab_preload.so in this build"

cat >server.c <<'END'
/* Answers each line of `requests` in `answers`; usage: server LEAKS */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <temporal_slab/phase.h>
static char* cache[8];
int main(int argc, char** argv) {
    int leaks = argc > 1 && atoi(argv[1]);
    char line[100];
    for (unsigned n = 0;; n++) {
        FILE* in = fopen("requests", "r");
        if (in == NULL || fgets(line, sizeof line, in) == NULL || line[0] == 'q') return 0;
        fclose(in);
        line[strcspn(line, "\n")] = 0;
        for (int k = 0; k < 40; k++, n++) {
            tslab_phase* phase = tslab_phase_begin(line);
            char *work = malloc(300), *kept = strdup(line);
            tslab_phase_outer();
            free(cache[n % 8]);
            cache[n % 8] = strdup("a page");
            tslab_phase_outer_leave();
            free(work);
            if (!leaks || strcmp(line, "/leaks") != 0 || k != 7) free(kept);
            tslab_phase_end(phase);
        }
        FILE* out = fopen("answers", "w");
        if (out == NULL || fputs("done\n", out) < 0) return 1;
        fclose(out);
    }
}
END
cc -O1 -fno-builtin -I"$TSLAB_SOURCE_DIR/include" server.c -o server || fail "server.c does not compile"
cat >round.sh <<'END'
#!/bin/sh
for route in /fine /leaks; do
    echo $route >requests
    read -r answer <answers && [ "$answer" = done ] || exit 9
done
END
chmod +x round.sh
mkfifo requests answers

begin() { # ARGUMENT...
    ./tslab run --library "$preload" ./server "$@" 2>server.err &
    pid=$!
    trap 'kill $pid 2>/dev/null' EXIT
    ./round.sh || fail "no answer: $(cat server.err)"
    shows() { ./tslab stats --pid $pid >/dev/null 2>&1; }
    eventually 60 shows || fail "tslab does not see it: $(./tslab stats --pid $pid 2>&1)"
}
end() {
    echo q >requests
    wait $pid || complain "server: exit code $?"
}
newer() { # BEFORE.json AFTER.json: requests until there are figures that are newer than BEFORE.json
    of() { grep -o -m1 '"uptime_ns": *[0-9]*' "$1"; }
    requested() { ./round.sh && ./tslab stats --pid $pid --json >"$2" && [ "$(of "$1")" != "$(of "$2")" ]; }
    [ -n "$(of "$1")" ] || fail "$1 has no uptime_ns"
    eventually 60 requested "$1" "$2" || fail "no figures that are newer than $1"
}
tested=(./tslab gate)

begin 0
expect 0 --pid $pid ./round.sh
has out '^None of \([5-9]\|[1-9][0-9][0-9]*\) rounds leaves more than any before.$'
./tslab stats --pid $pid --json >before.json
newer before.json after.json
expect 0 before.json after.json
end

begin 1
expect 1 --pid $pid --rounds 8 ./round.sh
has out '^"/leaks" retains [0-9]* objects ([0-9]* B) after round [0-9]*, up from at most '
python3 "$TSLAB_SOURCE_DIR/tests/cli/shown.py" "$TSLAB_SOURCE_DIR/docs/gate.md" "tslab gate --pid 4711 --rounds 8 ./requests.sh" out || complain "docs/gate.md"
expect 1 --pid $pid --json --rounds 8 ./round.sh
has out '"label": "/leaks"'
has out '"passed": false'
expect 0 --pid $pid --label /fine --rounds 2 --warm-up 1 ./round.sh
expect 2 --pid $pid --label /nobody --rounds 1 --warm-up 1 ./round.sh
has err 'no phase has the label "/nobody"'
expect 0 --pid $pid --objects 50 --bytes 5000 --rounds 2 ./round.sh
./tslab stats --pid $pid --json >before.json
newer before.json after.json
expect 1 before.json after.json
has out '^"/leaks" retains'
expect 0 --objects 9 --bytes 999 before.json after.json
expect 2 after.json before.json
has err 'the first document is newer than the second, so nothing was judged'
expect 2 after.json after.json
has err 'the same publication'
sed 's/"pid": *[0-9]*/"pid": 1/' after.json >another.json
expect 2 before.json another.json
has err 'two processes, .* and 1, so nothing was judged'
expect 2 --pid $pid false
has err 'round 1: false'
expect 2 --pid $pid
has err 'needs a command'
expect 2 before.json
has err 'two documents'
expect 2 --pid $pid --rounds 0 true
end
finish
