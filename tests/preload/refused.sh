#!/bin/bash
# The k-th mmap, madvise or mprotect of the preload library fails, once or for ever, for each k that a program of four threads
# reaches (in the short form at growing distances): it ends as it does otherwise, and each object that it was given holds what it
# wrote. Calls inside of libc, which makes the threads' stacks, are not refused.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
clean
unset TSLAB_OPTIONS LD_PRELOAD
from=$TSLAB_SOURCE_DIR/tests/preload/refused
cc -std=gnu11 -O1 -g -fPIC -shared "$from/refuse.c" -o refuse.so || fail "refuse.c does not compile"
cc -std=gnu11 -O1 -g -pthread -fno-builtin -I"$TSLAB_SOURCE_DIR/include" "$from/load.c" -o load || fail "load.c does not compile"

refused() { # CALL K SETTING...: runs the load; 0 if it came to its end
    rm -f mark
    env REFUSE="$1" REFUSE_AT="$2" REFUSED=mark "${@:3}" LD_PRELOAD="$PWD/refuse.so $TSLAB_BUILD_DIR/libtemporal_slab_preload.so" \
        ./load >out 2>err
}
for call in mmap madvise mprotect; do
    for ever in REFUSE_ONCE=1 REFUSE_EVER=1; do
        k=1 n=0
        while refused $call $k $ever || complain "$call $k $ever: status $?: $(head -n 3 err)"; [ -e mark ]; do
            n=$((n + 1))
            scale_reaches 2 && k=$((k + 1)) || k=$((k + 1 + k / 3))
        done
        echo "$call, $ever: refused in $n runs; the $k-th is not reached"
        [ $n -gt 0 ] || complain "$call was never refused"
    done
done
# The same load notices what the library does not: here it is told that memory can be written that cannot.
(ulimit -c 0; refused mprotect 1 REFUSE_EVER=1 REFUSE_LIES=1) 2>/dev/null
status=$?
[ $status = 139 ] || complain "a refusal that nobody is told of: status $status"
finish
