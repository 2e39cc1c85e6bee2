#!/bin/bash
# scripts/install-deps.sh asks for the lists first, waits for another apt, and tells of any other failure. The system is
# made of stand-ins: nothing is installed.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
clean
mkdir bin
stand_in() { # NAME, text from standard input
    { echo "#!/bin/sh"; cat; } >"bin/$1"
    chmod +x "bin/$1"
}
stand_in dpkg-query <<<'exit 1'
stand_in id <<<'echo 0'
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
install() { # STATUS
    rm -f calls
    PATH=$PWD/bin:$PATH "$TSLAB_SOURCE_DIR/scripts/install-deps.sh" daemon >out 2>err
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
