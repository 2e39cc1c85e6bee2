#!/bin/bash
# docs/coming-from/postgresql.md: a function of the server in its memory contexts and the program on phases print the same. The server
# runs alone, without a socket, on data of its own that a temporary folder holds.
. "$TSLAB_SOURCE_DIR/tests/coming/kit.bash"
after postgresql-after.c
headers=$(pg_config --includedir-server 2>/dev/null) && [ -e "$headers/postgres.h" ] ||
    { echo "skipped: no headers of a PostgreSQL server (Debian package postgresql-server-dev-15): only the program after was run"; exit 0; }
bin=$(pg_config --bindir)
[ -x "$bin/initdb" ] && [ -x "$bin/postgres" ] ||
    { echo "skipped: no PostgreSQL server (Debian package postgresql-15): only the program after was run"; exit 0; }

home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
# shellcheck disable=SC2086  # words
gcc -std=gnu11 $strict -isystem "$headers" -fPIC -shared "$code/postgresql-before.c" -o "$home/before.so"
as_user=""
if [ "$(id -u)" -eq 0 ]; then # which the server refuses
    chmod 755 "$home"
    chown nobody "$home"
    as_user="setpriv --reuid=nobody --regid=nogroup --clear-groups"
fi
cd "$home"
$as_user "$bin/initdb" -D "$home/data" -A trust -U nobody --no-sync --no-locale -E UTF8 >log 2>&1 || fail "initdb: $(tail -n 5 log)"
echo "CREATE FUNCTION report() RETURNS void AS '$home/before.so' LANGUAGE C; SELECT report();" |
    $as_user "$bin/postgres" --single -j -F -D "$home/data" postgres >said 2>log || fail "postgres: $(tail -n 5 log)"
cd - >/dev/null
# Its prompt stands before the first line, its answers after the last.
sed -E 's/^(backend> )+//' "$home/said" | grep -E '^(  closed |query |kept: )' >before.out || fail "nothing was printed: $(cat "$home/said" "$home/log")"
same_as_after postgresql-before.c
