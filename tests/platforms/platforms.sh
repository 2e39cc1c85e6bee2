#!/bin/bash
# scripts/platforms.sh refuses wrong words with a sentence, says what is missing instead of running without it, keeps the result of
# what has passed, and leaves out what the list has; the pretended kernel has the pages that are asked for, and ends a program that
# gives it an address inside of one. contract/pages64_* are programs on it.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
need cmake
clean
tested=("$TSLAB_SOURCE_DIR/scripts/platforms.sh")

wrong() { # SENTENCE ARGUMENT...
    local sentence=$1
    shift
    expect 2 "$@"
    has err "$sentence"
    empty out
}
wrong "no option is called '-z'" -z
wrong "no option is called '--'" --help
wrong "-s needs a value" -s
wrong "not 'many'" -s many
wrong "not '0'" -s 0
wrong "not '10000'" -s 10000
wrong "not '1.5'" -t 1.5
wrong "is no regular expression" -R '('
wrong "the folder has no name" -o ''
wrong "no platform is called 'vax'" gcc-12 vax
wrong "no platform is called 'gcc'" gcc
[ ! -e build ] || complain "a wrong word leaves something behind"

expect 0 -n
[ "$(wc -l <out)" -eq 11 ] || complain "not eleven platforms: $(cat out)"
expect 0 -n gcc-99
has out 'gcc-99 *lacks gcc-99 (make deps FOR=gcc-99)'

# A compiler that neither the machine nor its packages have; dpkg-query and apt-get of the test's own see to that.
mkdir bin
printf '#!/bin/sh\nexit 1\n' | tee bin/dpkg-query >bin/apt-get
chmod +x bin/*
PATH=$PWD/bin:$PATH expect 1 -o results gcc-99
has out '^gcc-99 *not run .*not in PATH: gcc-99'

# A platform that takes seconds: its result is kept until something changes or it is asked for again.
if echo 'char pointer[sizeof(void *) == 4 ? 1 : -1];' >narrow.c && cc -m32 -c narrow.c -o narrow.o 2>/dev/null; then
    expect 0 -o results narrow
    has out '^narrow *passed *1 *1 '
    lacks out 'passed before'
    expect 0 -o results narrow
    has out 'narrow: passed before'
    has out '^narrow *passed *1 *1 '
    expect 0 -o results -a narrow
    lacks out 'passed before'
else
    echo "cc -m32 does not compile: no platform was run"
fi

# Tests of a platform, by tools of the test's own: what has passed is not run again, what fails or skips without leave is told.
cat >bin/ctest <<'END'
#!/bin/bash
# Has three tests. The file ./plan has the outcome of each: Passed, Failed or Skipped.
out="" folder=. list=no
while [ $# -gt 0 ]; do
    case $1 in -E) out=$2 && shift ;; --test-dir) folder=$2 && shift ;; -N) list=yes ;; esac
    shift
done
[ $list = yes ] || echo "${out:-all}" >>ran
mkdir -p "$folder/Testing/Temporary"
log=$folder/Testing/Temporary/LastTest.log
: >"$log" # with -N, too, as the real one does
n=0 status=0
while read -r test outcome reason; do
    if [ -n "$out" ] && grep -qE "$out" <<<"$test"; then continue; fi
    n=$((n + 1))
    [ $list = no ] || { echo "  Test #$n: $test" && continue; }
    printf '%d/3 Testing: %s\n%s\n' $n "$test" "$reason" >>"$log"
    case $outcome in Passed) word='   Passed ' ;; *) word="***$outcome" ;; esac
    echo "$n/3 Test #$n: $test ......$word  0.01 sec"
    [ "$outcome" != Failed ] || status=8
done <plan
[ $list = no ] || echo "Total Tests: $n"
exit $status
END
printf '#!/bin/sh\necho "$@" >>built\n' | tee bin/cmake >bin/ninja
printf '#!/bin/sh\necho "compiler 1.0"\n' | tee bin/gcc-98 >bin/gcc
chmod +x bin/*
shown() { has out "^gcc-98 *$1 "; }
on_98() { PATH=$PWD/bin:$PATH expect "$1" -o results "${@:2}" gcc-98; }
printf '%s\n' 'unit/one Passed' 'unit/two Failed' 'misuse/three Passed' >plan
on_98 1
shown 'FAILED *2 *3 *0'
printf '%s\n' 'unit/one Failed' 'unit/two Passed' 'misuse/three Failed' >plan # two of them are not run again
on_98 0
shown 'passed *3 *3 *0'
[ "$(tail -n 1 ran)" = '^(misuse/three|unit/one)$' ] || complain "it leaves out $(tail -n 1 ran)"
on_98 0
has out 'passed before'
[ "$(wc -l <ran)" -eq 2 ] || complain "it runs again what has passed"
printf '%s\n' 'unit/one Passed' 'unit/two Passed' 'misuse/three Skipped skipped: for a reason of its own' >plan
on_98 1 -a
shown 'FAILED *2 *3 *1'
has err 'NOT ALLOWED in misuse/three: for a reason of its own'
has out '^  for a reason of its own (1: misuse/three)'
[ "$(tail -n 1 ran)" = all ] || complain "with -a it leaves out $(tail -n 1 ran)"
on_98 1 -a -b
has ran 'shared.classes.guards'
printf '#!/bin/sh\n[ "$1" != --build ]\n' >bin/cmake
on_98 1 -a
has out '^gcc-98 *FAILED .*it does not build'
rm bin/cmake bin/ctest bin/ninja bin/gcc

# under.bash leaves out what the list has.
mkdir -p here/unit
cp "$TSLAB_SOURCE_DIR/tests/platforms/under.bash" here/
printf '%s\n' '# a comment' 'p.* unit/one first,second they are slow' 'other unit/one third it is not there' 'p.* unit/two - the whole' >here/left_out.list
printf '#!/bin/sh\necho "$TSLAB_TEST_LEAVES"\n' | tee here/unit/one >here/unit/two
chmod +x here/unit/*
tested=(env TSLAB_PLATFORM=plain bash here/under.bash)
expect 0 here/unit/one
[ "$(cat out)" = $'first they are slow\nsecond they are slow' ] || complain "unit/one leaves out: $(cat out)"
expect 77 here/unit/two
has out '^skipped: the whole$'
tested=(env TSLAB_PLATFORM=any bash here/under.bash)
expect 0 here/unit/two
[ -z "$(tr -d '\n' <out)" ] || complain "another platform leaves out: $(cat out)"

# The kernel of pages.c.
command -v gcc >/dev/null && [ "$(getconf PAGESIZE)" = 4096 ] || finish
cat >asks.c <<'END'
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int argc, char** argv) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char* p = mmap(NULL, 5000, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if ((uintptr_t)p % page != 0) return 3;
    memset(p, 7, page); /* all of the page is there */
    if (argc > 1 && strcmp(argv[1], "madvise") == 0) return madvise(p + 4096, 4096, MADV_DONTNEED);
    if (argc > 1 && strcmp(argv[1], "mprotect") == 0) return mprotect(p + 4096, 4096, PROT_NONE);
    if (argc > 1 && strcmp(argv[1], "munmap") == 0) return munmap(p + 4096, 4096);
    if (madvise(p, 1, MADV_DONTNEED) != 0 || p[page - 1] != 0) return 4; /* the page goes as a whole */
    printf("%zu\n", page);
    return munmap(p, 1) != 0;
}
END
gcc -Wall -Wextra -Werror asks.c -o asks || fail "asks.c does not compile"
gcc -shared -fPIC -Wall -Wextra -Werror "$TSLAB_SOURCE_DIR/tests/platforms/pages.c" -o pages.so || fail "pages.c does not compile"
for page in 16384 65536; do
    tested=(env LD_PRELOAD="$PWD/pages.so" TSLAB_TEST_PAGE=$page ./asks)
    expect 0
    [ "$(cat out)" = $page ] || complain "a page has $(cat out) bytes, not $page"
    for call in madvise mprotect munmap; do
        expect 134 $call
        has err "$call of .*inside of a page of $page bytes"
    done
done
tested=(env LD_PRELOAD="$PWD/pages.so" TSLAB_TEST_PAGE=5000 ./asks)
expect 2
has err 'power of two'
finish
