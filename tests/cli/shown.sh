#!/bin/bash
# What docs/tslab.md, docs/which-route.md and docs/gate.md show as the output of a program is what the program prints today: shown.py. A
# page that shows something else is told. So are the numbers of series in docs/production.md.
set -u
. "$TSLAB_SOURCE_DIR/tests/cli/kit.bash"
need_go
need python3
unset TSLAB_OPTIONS NO_COLOR COLUMNS
clean
build_tslab "$PWD/tslab"
docs=$TSLAB_SOURCE_DIR/docs
shown() { python3 "$TSLAB_SOURCE_DIR/tests/cli/shown.py" "$@"; }

# The leak of the first page. Only ended phases of a minute are leaks unless another age is given: a second is enough here.
called=which-route-$$ # processes of other tests may have the name of the program
cc -std=gnu11 -Og -g -fno-omit-frame-pointer -pthread -I"$TSLAB_SOURCE_DIR/include" "$docs/which-route.c" "$TSLAB_BUILD_DIR/libtemporal_slab.a" -o "$called" ||
    fail "which-route.c does not compile"
TSLAB_OPTIONS=segment=1,profile_bytes=4k,sampling_period=16 "./$called" 60000000 >program.out 2>&1 &
pid=$!
trap 'kill $pid 2>/dev/null; [ $? -ne 0 ] || [ "$failures" -eq 0 ] || exit 1' EXIT
doctor() {
    ./tslab doctor --name $called --leak-age 1 >doctor.out 2>doctor.err
    shown "$docs/tslab.md" "tslab doctor --name which-route" doctor.out 2>wrong
}
eventually 120 doctor || complain "$(cat wrong doctor.err)"

sed 's/Leaks: /Losses: /' doctor.out >other
! shown "$docs/tslab.md" "tslab doctor --name which-route" other 2>wrong || complain "a line that is not printed is not told"
sed '/^7\. Labels/d' doctor.out >other
! shown "$docs/tslab.md" "tslab doctor --name which-route" other 2>wrong || complain "a line that is missing is not told"
! shown "$docs/tslab.md" "tslab doctor --name nobody" doctor.out 2>wrong || complain "an output that the page has not is found"

# The walk through the leak. Its pages name the process by its number, and the program by its name.
walk() { # COMMAND OF THE PAGE, [WHAT IS TYPED BESIDE IT]
    local typed=${1//18900/$pid}
    eval "./$typed ${2:-}" >printed.all 2>errors
    sed "s/$called/which-route/g" printed.all >printed
    if [ "$1" = "tslab ls" ]; then # without the processes of other tests, whatever state they are in
        sed "s/$called/which-route/g" printed.all | awk -v pid=$pid 'NR == 1 || $1 == pid' >printed
    fi
    shown "$docs/which-route.md" "$1" printed 2>wrong
}
for command in "tslab ls" "tslab top --pid 18900 --labels --plain -n 1" "tslab top --pid 18900 --phases --by age_ns --plain -n 1" \
    "tslab watch --pid 18900 --plain -n 1" "tslab profile --pid 18900 --label 'POST /orders' -n 1"; do
    eventually 60 walk "$command" || complain "$(cat wrong errors)"
done
eventually 60 walk "tslab doctor --pid 18900" "--leak-age 1" || complain "$(cat wrong errors)"
# Which verdict it is depends on what else the machine does: the page has one of those that there are, and so has the doctor.
verdicts() { sed -nE 's/^(VERDICT\([A-Z]+, |SAY\(verdict_none, "Verdict: )"?(.*[^.])\.?"\)$/\2/p' "$TSLAB_SOURCE_DIR/src/stats/words.def"; }
[ "$(verdicts | wc -l)" -eq 6 ] || complain "words.def has other verdicts: $(verdicts)"
verdict() { sed -nE 's/^ *Verdict: (.*)\.$/\1/p' "$1"; }
for file in "$docs/which-route.md" printed; do
    verdicts | grep -qxF -e "$(verdict "$file")" || complain "$file has no verdict of words.def, but: $(verdict "$file")"
done
sed "s/^\( *Verdict: \).*/\1$(verdict "$docs/which-route.md")./" printed >other
shown --among "$docs/which-route.md" "4. Sampling" other 2>wrong || complain "$(cat wrong)"
sed 's/Sampling: /Samples: /' other >changed
! shown --among "$docs/which-route.md" "4. Sampling" changed 2>wrong || complain "words of the sampling that are not printed are not told"
sed 's/POST/PUT/' printed >other
! shown "$docs/which-route.md" "tslab doctor --pid 18900" other 2>wrong || complain "a label that is not printed is not told"
if [ -x "$("$go" env GOROOT)/bin/go" ]; then
    ./tslab profile --pid $pid --names=false -o orders.pb >printed 2>&1 || complain "$(cat printed)"
    "$go" tool pprof -symbolize=local -lines -top '-tagfocus=label=^POST /orders$' "./$called" orders.pb >printed 2>errors
    # A request that is live while the profile is taken is a stack too small for the list, and the list says so.
    grep -vE '^(File: |Dropped [0-9]+ nodes? )' printed | sed "s|[^ ]*/docs/|docs/|" >other
    shown "$docs/which-route.md" "go tool pprof -symbolize=local -lines -top '-tagfocus=label=^POST /orders$' ./which-route orders.pb" other ||
        complain "pprof: $(cat errors)"
fi

# docs/production.md says how large a scrape is. Some series come with what happens, but those of the classes are always there.
said=$(tr -s ' \n' ' ' <"$docs/production.md")
./tslab export prometheus --pid $pid >prometheus || complain "tslab export prometheus"
classes=$(grep -c '^temporal_slab_class_' prometheus) all=$(grep -vc '^#' prometheus)
[[ $said =~ "the "([0-9,]+)" series \`temporal_slab_class_*" ]] && [ "${BASH_REMATCH[1]/,/}" -eq "$classes" ] ||
    complain "docs/production.md: there are $classes series temporal_slab_class_*"
[[ $said =~ "about "([0-9,]+)" series" ]] && about=${BASH_REMATCH[1]/,/} && [ $((all - about)) -lt 200 ] && [ $((about - all)) -lt 200 ] ||
    complain "docs/production.md: a scrape has $all series"

cat >screen.py <<'END'
import fcntl, os, pty, select, struct, sys, termios, time
master, slave = pty.openpty()
fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 110, 0, 0))
if os.fork() == 0:
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for fd in 0, 1, 2:
        os.dup2(slave, fd)
    os.environ.update(TERM="xterm-256color")
    os.execv(sys.argv[1], sys.argv[1:])
os.close(slave)
out, end = b"", time.monotonic() + 120
while time.monotonic() < end and b"rates over" not in out:
    if select.select([master], [], [], 0.1)[0]:
        try:
            out += os.read(master, 65536)
        except OSError:
            break
os.write(master, b"q")
open("screen", "wb").write(out)
END
screen() { python3 screen.py ./tslab watch --name $called && shown --words "$docs/tslab.md" "live every 1s" screen 2>wrong; }
screen || complain "$(cat wrong)"
sed 's/resident/remaining/g' screen >other
! shown --words "$docs/tslab.md" "live every 1s" other 2>wrong || complain "a row that is not on the screen is not told"

if [ -x "$TSLAB_BUILD_DIR/examples/leak_gate" ]; then # builds of the tests alone have no examples
    "$TSLAB_BUILD_DIR/examples/leak_gate" >gate.out || complain "leak_gate"
    shown "$docs/gate.md" "build/gcc-release/examples/leak_gate" gate.out || complain "docs/gate.md"
fi
finish
