#!/bin/bash
# scripts/install-deps.sh asks for the lists first, waits for another apt, and tells of any other failure; where it was not
# asked to install it names what is missing and the command. The system is made of stand-ins: nothing is installed.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
clean
mkdir bin
stand_in() { # NAME, text from standard input
    { echo "#!/bin/sh"; cat; } >"bin/$1"
    chmod +x "bin/$1"
}
stand_in dpkg-query <<<'exit 1'
stand_in id <<<'cat user'
echo 0 >user
stand_in sudo <<<'[ ! -e refused ] && shift $([ "$1" = -n ] && echo 1 || echo 0) && exec "$@"'
stand_in sleep <<<'echo "sleep $1" >>calls'
# Fails as often as the file `locked` has lines, with what they say.
stand_in apt-get <<'END'
words=""
for word in "$@"; do
    case $word in update | install | lib*-dev | DPkg::Lock::Timeout=*) words="$words $word" ;; esac
done
echo "apt-get$words" >>calls
[ -s locked ] || exit 0
head -n 1 locked >&2
sed -i 1d locked
exit 100
END
install() { # STATUS [OPTION]
    rm -f calls
    PATH=$PWD/bin:$PATH "$TSLAB_SOURCE_DIR/scripts/install-deps.sh" ${2:-} daemon >out 2>err </dev/null
    local status=$?
    [ $status -eq "$1" ] || fail "exit code $status instead of $1: $(cat out err)"
}
called() { [ "$(tr '\n' ';' <calls)" = "$1" ] || fail "what was called: $(cat calls)"; }
update="apt-get DPkg::Lock::Timeout=600 update;"
install="apt-get DPkg::Lock::Timeout=600 install libmicrohttpd-dev;"

install 0
called "$update$install"
cat >locked <<'END'
E: Could not get lock /var/lib/apt/lists/lock. It is held by process 4711 (apt-get)
E: Unable to lock directory /var/lib/apt/lists/
E: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), is another process using it?
END
install 0
called "$update"'sleep 3;'"$update"'sleep 3;'"$update"'sleep 3;'"$update$install"
[ "$(grep -c 'waiting for another apt' out)" = 1 ] || fail "does it say that it waits, once? $(cat out)"
echo 'E: Unable to locate package libmicrohttpd-dev' >locked
install 1
called "$update"
grep -q 'Unable to locate' err || fail "it does not say what went wrong"
yes 'E: Could not get lock' | head -n 1000 >locked
install 1
[ "$(grep -c sleep calls)" -ge 100 ] || fail "it waited $(grep -c sleep calls) times"

# Named only: by whoever asks for that, and by somebody who is not root.
named() { # OPTION
    install 1 "$@"
    [ ! -e calls ] || fail "$*: called $(cat calls)"
    has err '^daemon needs packages that are not installed: libmicrohttpd-dev$'
    has err 'make deps FOR="daemon"$'
    has err 'apt-get update && apt-get install -y --no-install-recommends libmicrohttpd-dev$'
}
: >locked
named --name
install 0 --root
called "$update$install"
echo 1000 >user
named --name
named --root
install 0 # by sudo
called "$update$install"
touch refused
named

# Every target that the Makefile names has packages, and a word that nobody knows is told.
for word in $(sed -nE 's/.*install-deps\.sh (--[a-z]+ )?//p' "$TSLAB_SOURCE_DIR/Makefile" | tr ' ' '\n' | grep -v '[$]'); do
    PATH=$PWD/bin:$PATH "$TSLAB_SOURCE_DIR/scripts/install-deps.sh" --name "$word" >out 2>err
    [ $? -eq 1 ] || complain "$word: $(cat out err)"
done
PATH=$PWD/bin:$PATH "$TSLAB_SOURCE_DIR/scripts/install-deps.sh" --name browsers >out 2>err
[ $? -eq 2 ] || complain "browsers: $(cat out err)"
has err "nothing here is called 'browsers'"
finish
