#!/bin/bash
# tools/plot_soak.py: a trace that stress_load writes can be drawn; drift is said; damaged and short traces are refused.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
clean
for python in python3 /usr/bin/python3 none; do
    ! "$python" -c 'import matplotlib' 2>/dev/null || break
done
[ "$python" != none ] || skip "no python3 with matplotlib (make deps FOR=plot, about 100 MB)"
tested=("$python" "$TSLAB_SOURCE_DIR/tools/plot_soak.py")

# Its own head, so that the tool reads what the program writes.
if [ -x "$TSLAB_BUILD_DIR/tests/stress/stress_load" ]; then
    TSLAB_TEST_SECONDS=2 TSLAB_TEST_TRACE=real.csv "$TSLAB_BUILD_DIR/tests/stress/stress_load" ring >ring.out || complain "stress_load: $(cat ring.out)"
    [ "$(wc -l <real.csv)" -ge 2 ] || complain "a trace of $(wc -l <real.csv) lines"
    expect 1 real.csv --out real.png
    has err 'not a trace that can be drawn: not one load of a minute or more'
fi
trace() { # BYTES A SECOND
    echo "load,seconds,steps,live_objects,committed_bytes,resident_bytes"
    for second in $(seq 0 120); do
        echo "loop,$second,$((second * 1000)),5,$((104857600 + second * $1)),209715200"
    done
}
trace 0 >flat.csv
trace 1048576 >rising.csv
[ ! -f real.csv ] || [ "$(head -n 1 real.csv)" = "$(head -n 1 flat.csv)" ] || complain "columns of a trace: $(head -n 1 real.csv)"
expect 0 flat.csv rising.csv --out both.png
[ "$(head -c 4 both.png | tail -c 3)" = PNG ] || complain "no picture"
has out '^loop: 120000 steps in 0.03 hours; committed 100.00 MiB, then 100.00 MiB (+0.00 %); resident 200.00 MiB, then 200.00 MiB (+0.00 %)$'
has out 'committed 117.50 MiB, then 214.00 MiB (+82.13 %)'
sed 's/,104857600,/,0,/' flat.csv >none.csv # a ring has nothing committed between its turns
expect 0 none.csv --out none_held.png
has out 'committed 0.00 MiB, then 0.00 MiB (nothing at all); resident 200.00 MiB, then 200.00 MiB (+0.00 %)$'
sed 's/,5,/,five,/' flat.csv >damaged.csv
expect 1 damaged.csv --out damaged.png
has err 'damaged.csv is not a trace that can be drawn'
expect 1 /dev/null --out none.png
[ ! -e damaged.png ] && [ ! -e none.png ] || complain "a picture of nothing"
expect 2 flat.csv
finish
