#!/bin/bash
# The five questions of docs/which-route.md, each by the command that stands there: of its program, of tslabd and of the demo. And
# what the documents show of tables has the columns that tables have.
set -u
. "$TSLAB_SOURCE_DIR/tests/cli/kit.bash"
need_go
unset TSLAB_OPTIONS NO_COLOR COLUMNS
clean
build_tslab "$PWD/tslab"
PATH=$PWD:$PATH
docs=$TSLAB_SOURCE_DIR/docs

running=()
trap 'kill "${running[@]}" 2>/dev/null; [ $? -ne 0 ] || [ "$failures" -eq 0 ] || exit 1' EXIT
# Processes of other tests may have the name of a program: here each is called as nobody else is.
begin() { # PROGRAM ARGUMENT...: with its statistics and a heap profile; sets $called
    called=${1##*/}-$$
    ln -sf "$1" "$called"
    TSLAB_OPTIONS=segment=1,profile_bytes=4k "./$called" "${@:2}" >"$called.out" 2>&1 &
    running+=($!)
}
# Each command of the table, a line each, with the program and the label in place of those that stand there.
commands() { # PROGRAM LABEL
    sed -n '/^## Five questions/,/^## 1/s/^| [^|]* | `\([^`]*\)` |.*/\1/p' "$docs/which-route.md" | sed "s|which-route|$1|; s|POST /orders|$2|"
}
# A process that has just begun has little to tell: the command is typed again until its answer has come, and what it says then is kept.
answers() { # EXPECTED(extended regular expression) COMMAND
    local until=$((SECONDS + 240))
    while :; do
        eval "$2" >said 2>errors
        status=$?
        ! grep -qE "$1" said || break
        [ $SECONDS -lt $until ] || { complain "$2: status $status, no $1 in: $(head -c 1500 said errors)"; return 1; }
        sleep 0.3
    done
    # profile says so where libraries are stripped, or keep no frame pointers: which ones is the machine's business.
    grep -vE ' (has|have) no names, for it is stripped: | keeps? no frame pointers, so callers are missing: ' errors >wrong
    [ $status -le 1 ] && [ ! -s wrong ] || complain "$2: status $status, $(cat wrong)"
}
tasks() { # PROGRAM LABEL FUNCTION
    mapfile -t asked < <(commands "$1" "$2")
    [ ${#asked[@]} -eq 5 ] || fail "the table has ${#asked[@]} commands"
    answers "^$2 " "${asked[0]}"
    [ "$(sed -n 3p said | cut -c1-${#2})" = "$2" ] || complain "$1: the first row is not $2: $(cat said)"
    answers "^$2, era [0-9]+ +(closing|ended|active)" "${asked[1]}"
    answers "^$3 " "${asked[2]}"
    [ "$(grep -A1 '^function (inuse_space of' said | tail -n 1 | cut -d' ' -f1)" = "$3" ] || complain "$1: not $3 but: $(cat said)"
    answers "^Growth .* now, most under \"$2\"; .* in use, reached in [0-9]" "${asked[3]}"
    answers "^label \"$2\" (committed|draining)_bytes .* REGRESSION" "${asked[4]}"
    [ $status -eq 1 ] || complain "$1: diff says $status of what grows"
}

cc -std=gnu11 -Og -g -fno-omit-frame-pointer -pthread -I"$TSLAB_SOURCE_DIR/include" "$docs/which-route.c" "$TSLAB_BUILD_DIR/libtemporal_slab.a" -o which-route ||
    fail "which-route.c does not compile"
begin "$PWD/which-route" 60000000
tasks "$called" "POST /orders" log_order

# What documents show of tables: the columns of the first line, whatever the order is.
columns() { tr -d '▼▲' | sed 's/^ *//; s/   */\n/g' | grep -vx share | sort; } # there where that which it is ordered by adds up
shape() { # FIRST COLUMNS, COMMAND: of each table in the documents that begins so
    eval "$2" >said 2>errors || fail "$2: $(cat errors)"
    grep -E "^ *$1" said | head -n 1 | columns >have
    [ -s have ] || fail "$2 shows no table: $(cat said)"
    grep -hnE "^    *$1" "$docs"/which-route.md "$docs"/tslab.md >shown
    [ -s shown ] || complain "no document shows a table of $2"
    while IFS= read -r line; do
        echo "${line#*:}" | columns | diff - have >differs || complain "columns of $2 in the documents (line ${line%%:*}): $(cat differs)"
    done <shown
}
shape "pid  " "tslab ls"
shape "label +committed" "tslab top --name $called -n 1"
shape "phase  " "tslab top --name $called --phases -n 1"
shape "time  " "tslab watch --name $called --plain -n 1 -i 100ms"
kill "${running[0]}"

if [ -x "$TSLAB_BUILD_DIR/tslabd" ]; then
    begin "$TSLAB_BUILD_DIR/tslabd" --listen=127.0.0.1:0 --pattern=leak --threads=2 --req_rate=400
    tasks "$called" "POST /orders" worker_main
fi
if [ -x "$TSLAB_BUILD_DIR/tslab_demo" ] && [ -d /usr/share/iso-codes/json ]; then
    begin "$TSLAB_BUILD_DIR/tslab_demo" --backend tslab --leak --requests 99999999
    tasks "$called" "POST /session" leak_entry
fi
finish
