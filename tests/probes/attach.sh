#!/bin/bash
# What probes tell is what the library says: small.c runs under bpftrace, and the sums of the arguments are compared with
# its receipts and statistics. Then every one-liner of docs/probes.md is run as it stands there.
set -eu
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
page=$TSLAB_SOURCE_DIR/docs/probes.md

compile_test probes/small.c program
./program >alone
need bpftrace "bpftrace is not installed (Debian package bpftrace)"
[ "$(id -u)" -eq 0 ] || skip "bpftrace needs root"
# Independent of the probes: can it count calls of main?
timeout 300 bpftrace -e 'uprobe:./program:main { @calls = count(); }' -c ./program >works 2>&1 || true
grep -q '^@calls: 1$' works || skip "bpftrace cannot attach on this machine: $(grep -v '^[a-z_]* [0-9 ]*$' works | head -n 1)"
readelf -n program | grep -q temporal_slab || skip "the library was built without probes, see probes/notes"

# ---- sums ----

cat >sums.bt <<'END'
usdt:./program:temporal_slab:epoch_open { @epoch_open_0 = count(); }
usdt:./program:temporal_slab:epoch_advance { @epoch_advance_0 = count(); }
usdt:./program:temporal_slab:epoch_close { @epoch_close_0 = count(); @labels[str(arg3)] = count(); @modes[arg4] = count(); }
usdt:./program:temporal_slab:close_objects { @close_objects_0 = sum(arg3); @close_objects_1 = sum(arg4); @close_objects_2 = sum(arg5); }
usdt:./program:temporal_slab:close_bytes { @close_bytes_0 = sum(arg3); @close_bytes_1 = sum(arg4); @close_bytes_2 = sum(arg5); }
usdt:./program:temporal_slab:close_slabs { @close_slabs_0 = sum(arg3); @close_slabs_1 = sum(arg4); }
usdt:./program:temporal_slab:escape { @escape_0 = count(); @escape_1 = sum(arg4); }
usdt:./program:temporal_slab:slow_path {
    @slow_path_0 = count();
    if (arg3 == 2) { @slow_path_1 = count(); }
    if (arg3 == 3) { @slow_path_2 = count(); }
}
usdt:./program:temporal_slab:purge { @purge_0 = count(); @purge_1 = sum(arg1); }
usdt:./program:temporal_slab:refusal { @refusals[arg1] = count(); }
END
timeout 300 bpftrace -c ./program sums.bt >attached 2>errors || fail "bpftrace: $(cat errors)"
awk '
    /^[a-z_]+( [0-9]+)+$/ { for (n = 2; n <= NF; n++) wanted[$1 "_" (n - 2)] = $n }
    /^@[a-z_]+_[0-9]: / { name = $1; gsub(/[@:]/, "", name); got[name] = $2 }
    /^@refusals\[/ { cause = $1; gsub(/[^0-9]/, "", cause); got["refusal_" cause] = $2 }
    END {
        for (name in wanted) {
            compared++
            if (wanted[name] + 0 != 0) firing++
            if (wanted[name] + 0 != got[name] + 0) { print name ": the library says " wanted[name] ", probes " got[name] + 0; bad = 1 }
        }
        for (name in got) if (!(name in wanted)) { print "no number of the library for " name; bad = 1 }
        if (compared < 30 || firing < 22) { print "only " compared " numbers compared, " firing " of them not 0"; bad = 1 }
        print compared " numbers compared, " firing " of them not 0"
        exit bad
    }' attached || fail "probes and library do not agree"
for line in '@labels[odd]: 25' '@labels[even]: 30' '@labels[round]: 21' '@modes[1]: 55' '@modes[0]: 21'; do
    grep -qxF "$line" attached || fail "no line '$line' in: $(grep -E '^@(labels|modes)' attached | tr '\n' ' ')"
done

# ---- the page ----

sed -nE "s/^    (bpftrace -c \.\/program -e '.*')$/\1/p" "$page" >lines
[ "$(wc -l <lines)" -ge 5 ] || fail "docs/probes.md has a form that this test does not read"
n=0
while read -r line; do
    n=$((n + 1))
    timeout 300 bash -c "$line" >line.$n 2>line.$n.errors &
done <lines
wait
for ((k = 1; k <= n; k++)); do
    grep -q '^@' line.$k || fail "$(sed -n ${k}p lines) printed nothing: $(cat line.$k.errors)"
done
echo "$n lines of docs/probes.md ran"
