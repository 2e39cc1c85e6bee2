# kit.sh - what the incidents share; sourced by them, not run.
#
# An incident makes a fault in a real run, types the commands that somebody on call would, and ends with the library's own
# diagnosis. Nothing is timed here: what is waited for is that the numbers show it, or the run's own end.
# shellcheck shell=sh
set -u
: "${PATIENCE:=180}"
fault=yes
case ${1:-} in
'') ;;
--no-fault) fault=no ;;
*)
    # shellcheck disable=SC2154  # set by who sources this
    echo "usage: $name [--no-fault]      the same run without the fault, which then is not found: exit status 1" >&2
    exit 2
    ;;
esac

die() {
    echo "$name: $*" >&2
    exit 2
}

root=$(cd "$(dirname "$0")/../.." && pwd) || exit 2
if [ -z "${TSLAB_BUILD_DIR:-}" ]; then
    # shellcheck disable=SC2012  # names of our own
    newest=$(ls -t "$root"/build/*/synthetic_bench 2>/dev/null | head -n 1)
    TSLAB_BUILD_DIR=${newest%/*}
fi
# So that what is shown is what is typed where they are installed.
PATH=${TSLAB_BUILD_DIR:+$TSLAB_BUILD_DIR:}$root/build:$PATH
for program in synthetic_bench stats_dump ${needs:-}; do
    command -v "$program" >/dev/null ||
        die "there is no $program; 'make install' builds it, or set TSLAB_BUILD_DIR; Debian has curl, strace and util-linux (taskset)"
done
unset TSLAB_OPTIONS
tslab=yes
if [ "${TSLAB:-}" = none ] || ! command -v tslab >/dev/null; then
    tslab=no
    echo "tslab is not there ('make tslab', needs Go): stats_dump and the library's own report instead"
fi

work=$(mktemp -d) || exit 2
pids=""
cleanup() {
    for pid in $pids; do kill "$pid" 2>/dev/null; done
    wait
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 1' INT TERM
cd "$work" || exit 2

step() { printf '\n== %s\n' "$*"; }
# Shows a command, then runs it.
show() {
    printf '$ %s\n' "$1"
    eval "$1"
}
# begin_with OPTIONS COMMAND: the same for one that goes on, with TSLAB_OPTIONS; its process id is in $pid.
begin_with() {
    printf '$ TSLAB_OPTIONS=%s %s &\n' "$1" "$2"
    (
        TSLAB_OPTIONS=$1
        export TSLAB_OPTIONS
        eval "exec $2"
    ) &
    pid=$!
    pids="$pids $pid"
}
# Ends process $1 as its operator would, and waits for its report.
end() {
    show "kill $1"
    wait "$1" 2>/dev/null
    pids=$(echo " $pids " | sed "s/ $1 / /")
}
# Until the command succeeds, PATIENCE seconds long; false when it does not, or process $pid has ended.
until_seen() {
    tries=0
    until eval "$1"; do
        tries=$((tries + 1))
        kill -0 "$pid" 2>/dev/null && [ $tries -lt $((PATIENCE * 5)) ] || return 1
        sleep 0.2
    done
}
# number KEY: the first of that name in what stats_dump tells of $pid.
number() {
    stats_dump --no-text --pid "$pid" 2>/dev/null | tr ',{' '\n\n' | sed -n "s/^ *\"$1\": *\([0-9]*\).*/\1/p" | head -n 1
}
# diagnosis FILE PATTERN WORDS: the line that names the culprit, or the end with 1.
diagnosis() {
    found=$(grep -E -m 1 -e "$2" "$1") || {
        printf '\nDIAGNOSIS: %s is not named as the culprit\n' "$3"
        exit 1
    }
    printf '\nDIAGNOSIS: %s\n  %s\n' "$3" "$(echo "$found" | sed 's/^ *//')"
}
