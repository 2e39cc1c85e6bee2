#!/bin/bash
# Who may read: the owner of a process and root, and nobody else, who is told so in a line and exit code 2. For real other users
# it takes root: the process then runs as nobody, and a third user looks.
set -u
. "$TSLAB_SOURCE_DIR/tests/cli/kit.bash"
need_go
unset TSLAB_OPTIONS NO_COLOR
build_tslab "$PWD/tslab"

refused() { # WHO COMMAND...: exit code 2, one line that says why
    local who=$1
    shift
    "$@" >out 2>errors </dev/null
    local code=$?
    [ $code = 2 ] && [ "$(wc -l <errors)" = 1 ] && [ ! -s out ] && grep -q 'not yours to read (it belongs to user' errors ||
        fail "$who, $*: exit code $code, '$(cat out)', '$(cat errors)'"
}

if [ "$(id -u)" != 0 ]; then
    [ "$(stat -c %u /proc/1)" != "$(id -u)" ] || skip "process 1 is ours, and it takes root to be another user"
    for command in stats doctor profile "watch --plain -n 1" "export prometheus"; do
        refused "we" ./tslab $command --pid 1
    done
    echo "skipped: a process of nobody that a third user looks at, because that takes root"
    exit 0
fi

owner=65534 third=54321
as() { # UID COMMAND...
    local uid=$1
    shift
    setpriv --reuid "$uid" --regid "$uid" --clear-groups "$@"
}
need setpriv "setpriv (util-linux) is not installed"
{ as $owner true && as $third true; } 2>errors || skip "root here cannot be another user: $(cat errors)"
place=$(mktemp -d) || exit 1
pids=
trap 'kill $pids 2>/dev/null; rm -rf "$place"' EXIT
chmod 755 "$place"
compile_test cli/owner.c "$place/owner"
cp tslab "$TSLAB_BUILD_DIR/stats_dump" "$place" || exit 1
chmod 755 "$place"/*
as $third "$place/tslab" --version >/dev/null 2>errors || skip "another user cannot run a program in $place: $(cat errors)"
mkdir -m 755 "$place/runtime" && chown $owner "$place/runtime" || exit 1

for where in memory folder; do
    mkfifo "$place/input.$where" && chmod 644 "$place/input.$where"
    XDG_RUNTIME_DIR=$place/runtime setpriv --reuid $owner --regid $owner --clear-groups "$place/owner" $where <"$place/input.$where" &
    pid=$!
    pids="$pids $pid"
    exec {hold}>"$place/input.$where"
    shows() { as $owner "$place/tslab" profile --pid "$pid" 2>/dev/null | grep -q '^owned '; }
    eventually 120 shows || fail "$where: its own user cannot read it: $(as $owner "$place/tslab" profile --pid $pid 2>&1)"
    [ "$(stat -c %u /proc/$pid)" = $owner ] || fail "the process does not run as $owner"
    for command in stats doctor "top --labels" profile "watch --plain -n 1" "export prometheus"; do
        as $owner "$place/tslab" $command --pid $pid >out 2>&1 || fail "$where: its own user, $command: $(cat out)"
        "$place/tslab" $command --pid $pid >out 2>&1 || fail "$where: root, $command: $(cat out)"
        refused "$where: a third user" as $third "$place/tslab" $command --pid $pid
    done
    grep -q "user $owner" errors || fail "it does not say whose: $(cat errors)"
    as $third "$place/tslab" ls >out 2>&1 || fail "ls of a third user: $?"
    grep -q "^ *$pid " out && fail "$where: a third user sees it: $(cat out)"
    "$place/tslab" ls | grep -q "^ *$pid " || fail "$where: root does not see it"
    as $third "$place/stats_dump" --pid $pid >out 2>errors && fail "$where: stats_dump of a third user: $(cat out)"
    grep -q "another user's" errors || fail "stats_dump says: $(cat errors)"
    links=$(ls -l /proc/$pid/fd)
    if [ $where = memory ]; then
        grep -q 'memfd:temporal-slab' <<<"$links" && grep -q 'memfd:tslab-profile' <<<"$links" || fail "no memfds: $links"
    else
        folder=$place/runtime/temporal-slab
        grep -q "$folder/segment\." <<<"$links" && grep -q "$folder/profile\." <<<"$links" || fail "no files: $links"
        [ "$(stat -c '%u %a' "$folder")" = "$owner 700" ] || fail "the folder: $(stat "$folder")"
        as $third ls "$folder" >out 2>&1 && fail "a third user looks into the folder: $(cat out)"
        as $third sh -c "cd '$folder'" 2>/dev/null && fail "a third user enters the folder"
        [ -z "$(ls -A "$folder")" ] || fail "files keep their names: $(ls -A "$folder")"
    fi
    exec {hold}>&-
    wait $pid || fail "$where: the process ended with $?"
done

# Somebody else's folder under our name is not used.
mkdir -m 777 "$place/trap" && mkdir -m 777 "$place/trap/temporal-slab" && chown $third "$place/trap" "$place/trap/temporal-slab"
mkfifo "$place/input.trap"
XDG_RUNTIME_DIR=$place/trap setpriv --reuid $owner --regid $owner --clear-groups "$place/owner" folder <"$place/input.trap" &
pid=$!
pids="$pids $pid"
exec {hold}>"$place/input.trap"
eventually 120 shows || fail "with another's folder it shows nothing"
ls -l /proc/$pid/fd | grep -q "$place/trap" && fail "it uses another user's folder"
exec {hold}>&-
wait $pid
rmdir /tmp/temporal-slab-$owner 2>/dev/null # made by that; empty
echo "passed: nobody's processes, seen by nobody, root and user $third"
