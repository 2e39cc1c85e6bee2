#!/bin/bash
# Flags of the demo: wrong words, where files go, files that cannot be written, streams that are closed, an interrupt.
set -u
. "$TSLAB_SOURCE_DIR/tests/demo/kit.bash"
json() { python3 -c 'import json; json.load(open("'"$1"'"))["schema_version"]' || complain "$1 is no statistics"; }
short="--requests 200 --rounds 1 --threads 2"

# Wrong words.
wrong() { # MESSAGE ARGUMENT...
    local message=$1
    shift
    expect 2 "$@"
    empty out
    has err "$message"
}
wrong "'--laek' is not a flag; did you mean --leak?" --laek
wrong "'leak' is not a flag; did you mean --leak?" leak
wrong '--leak takes no value' --leak=yes
wrong "'yes' is not a flag; see tslab_demo --help" --leak yes
wrong '--json needs a value: --json FILE' --json
wrong '--json needs a value: --json FILE' --json=
wrong '--figures needs a value: --figures FILE' --figures ''
wrong "--rounds takes a whole number from 1 to 99, not '0'" --rounds 0
wrong "--threads takes a whole number from 1 to 256, not 'two'" --threads two
wrong "--backend takes glibc|tslab, not 'jemalloc'" --backend jemalloc
wrong 'with --backend they go to standard output' --backend tslab --figures figures.json
wrong 'with --backend the figures are JSON' --backend tslab --tables
wrong 'glibc has no statistics' --backend glibc --json stats.json
wrong 'with --backend standard output has the figures' --backend tslab --json -
wrong 'standard output takes one of them' --json - --figures -
expect 0 --help
empty err
fits out
for flag in --requests --leak --tables --json --figures --backend --help; do has out "^  $flag "; done

# Where files go. The program is called through a link, so that the default is here.
ln -sf "$demo" here
./here $short >out 2>err || complain "default file: $(tail -c 300 err)"
has out 'as JSON: ./tslab_demo.json '
json tslab_demo.json
expect 0 $short --json -
json out
screen err
fits err
expect 0 $short --json stats.json --figures -
json stats.json
screen err
python3 -c 'import json; assert len(json.load(open("out"))["runs"]) == 2' || complain "--figures -"
rm stats.json
expect 0 --backend tslab --requests 200 --json stats.json
json stats.json

# Files that cannot be written cost a message and the exit status, and nothing else. Early, but for a full device.
mkdir -p folder
for path in no/such/folder/stats.json folder $([ ! -w /dev/full ] || echo /dev/full); do
    expect 1 $short --json "$path" --figures figures.json
    has err "cannot write $path: [A-Z]"
    [ "$path" = /dev/full ] || has err 'the runs go on without'
    told=$([ "$path" = /dev/full ] && echo 1 || echo 2)
    [ "$(grep -c 'cannot write' err)" -eq "$told" ] || complain "messages: $(cat err)"
    screen out
    lacks out 'as JSON'
    python3 -c 'import json; json.load(open("figures.json"))' || complain "figures beside $path"
    rm figures.json
    expect 1 $short --json stats.json --figures "$path"
    has err "cannot write $path: [A-Z]"
    screen out
    json stats.json
    rm stats.json
    expect 1 --backend tslab --requests 200 --json "$path"
    has err "cannot write $path: [A-Z]"
    python3 -c 'import json; json.load(open("out"))' || complain "figures of one run beside $path"
done

# Streams that are closed or full: what is opened meanwhile does not take their place.
status=0
"$demo" $short --json stats.json >&- 2>err || status=$?
[ $status -le 1 ] || complain "closed output: exit $status"
json stats.json
rm stats.json
"$demo" $short --json stats.json >out 2>&- <&- || complain "closed error: exit $?"
screen out
json stats.json
if [ -w /dev/full ]; then
    status=0
    "$demo" $short --json stats.json >/dev/full 2>err || status=$?
    [ $status -eq 1 ] || complain "full output: exit $status"
    has err 'standard output: No space'
fi

# An interrupt half-way: what was done is shown, and the statistics are written when there are any.
interrupted() { # WORDS ARGUMENT...: interrupts the program when its progress has these words
    local words=$1
    shift
    rm -f err stats.json
    "$demo" "$@" --json stats.json >out 2>err &
    local pid=$! status=0
    until grep -qs "$words" err || ! kill -0 $pid; do sleep 0.1; done
    kill -INT $pid
    wait $pid || status=$?
    [ $status -eq 130 ] || complain "interrupted: exit $status"
    has out '^Interrupted: the figures are those of what was done'
}
interrupted 'requests (' --requests 1000000 --rounds 1
has out '^Run 1 on glibc was interrupted after'
[ ! -e stats.json ] || complain "statistics of a run that never was"
interrupted 'round 2 of 99: tslab' --requests 300 --rounds 99
screen out
json stats.json

finish
