#!/bin/bash
# Programs of the machine give the same output, the same messages and the same exit code under the preloaded malloc as
# under libc's. What is not installed is said and left out; python, perl, sh and a compiler are nearly everywhere.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
clean
preload=$TSLAB_BUILD_DIR/libtemporal_slab_preload.so
export LC_ALL=C HOME=$PWD GIT_CONFIG_NOSYSTEM=1 PYTHONDONTWRITEBYTECODE=1
unset TSLAB_OPTIONS LD_PRELOAD
ran=0

# same NAME PROGRAM SHELL-TEXT: runs the text in a folder of its own, both ways, and compares. Files that it leaves are
# compared, too.
same() {
    local name=$1 program=$2 text=$3 way
    command -v "$program" >/dev/null || { echo "skipped: $program is not installed" && return; }
    for way in libc ours; do
        rm -rf "$way" work && mkdir "$way" work # some say or keep where they ran
        (
            cd work || exit 99
            [ $way = libc ] || export LD_PRELOAD=$preload
            bash -c "$text" >"../$way/out" 2>"../$way/err" </dev/null
            echo $? >"../$way/code"
        )
        mv work "$way"
    done
    cmp libc/out ours/out >&2 || complain "$name: other output: $(diff libc/out ours/out | head -n 5)"
    cmp libc/err ours/err >&2 || complain "$name: other messages: $(diff libc/err ours/err | head -n 5)"
    cmp libc/code ours/code >&2 || complain "$name: exit code $(cat ours/code) instead of $(cat libc/code)"
    diff -rq libc/work ours/work >differ || complain "$name: other files: $(head -n 5 differ)"
    [ -s libc/out ] || complain "$name says nothing under libc: the comparison is of nothing"
    ran=$((ran + 1))
}

same shell sh 'for i in 1 2 3 4 5; do echo $(seq $i 200 | sort -rn | tail -n 3); done; (exit 5); echo $?; exit 3'
same bash bash 'declare -A a; for ((i = 0; i < 3000; i++)); do a[k$i]=$((i * i)); done; for k in k1 k77 k2999; do echo ${a[$k]}; done; printf "%s\n" "${!a[@]}" | sort | cksum'
same coreutils sort 'seq 1 60000 | sort -R --random-source=/dev/zero | sort -n | md5sum; ls -la /usr/bin | cksum; find /usr/include | sort | cksum; dd if=/dev/zero bs=1M count=8 2>/dev/null | sha256sum'
same awk awk 'awk "BEGIN { for (i = 0; i < 60000; i++) a[i % 1234] = a[i % 1234] substr(i, 1, 2); for (i = 0; i < 1234; i++) n += length(a[i]); print n }"'
same python python3 'python3 -c "
import json, re, hashlib, threading, collections
d = {str(i): [i] * (i % 17) for i in range(20000)}
t = json.dumps(d); assert json.loads(t) == d
print(hashlib.sha256(t.encode()).hexdigest(), len(re.findall(r\"\d+\", t)))
r = collections.Counter()
def f(k):
    for i in range(20000): r[k] += len(str(i) * (i % 5))
ts = [threading.Thread(target=f, args=(k,)) for k in range(6)]
[x.start() for x in ts]; [x.join() for x in ts]
print(sorted(r.items()))
"'
same python_malloc python3 'PYTHONMALLOC=malloc python3 -c "
import subprocess, sys, os
l = [bytes([i % 251]) * (i * 7 % 3000) for i in range(40000)]
l[::2] = [None] * len(l[::2]); l += [b\"x\" * (i % 999) for i in range(30000)]
print(sum(len(x) for x in l if x))
for i in range(10):
    if os.fork() == 0:
        m = [bytearray(i * 100) for _ in range(1000)]
        os._exit(len(m[0]) // 100)
    print(os.wait()[1])
print(subprocess.run([sys.executable, \"-c\", \"raise SystemExit(9)\"]).returncode)
raise SystemExit(4)
"'
same perl perl 'perl -e "my %h; \$h{\$_ % 997} .= qq(\$_,) for 1 .. 60000; print join(q( ), map { length \$h{\$_} } sort { \$a <=> \$b } keys %h), qq(\n); my @s = map { join q(), reverse split //, \$_ } values %h; print scalar(@s), qq(\n); exit 6"'
same sqlite sqlite3 'sqlite3 x.db "create table t(a integer primary key, b text, c real); with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000) insert into t select i, hex(i * 7919), i / 3.0 from n; create index j on t(b); select count(*), sum(length(b)), round(sum(c), 3) from t; select * from t order by b desc limit 5; delete from t where a % 3 = 0; vacuum; pragma integrity_check; select count(*) from t" && sqlite3 x.db "select b from t where b like \"%FF%\" limit 3; selec"'
same gcc gcc 'printf "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\nint main(void) { char* p = strdup(\"made\"); puts(p); free(p); return 2; }\n" >a.c; gcc -O2 -g a.c -o a && ./a; echo $?; cksum <a; printf "int f(void) { return x; }\n" | gcc -c -x c - -o b.o; echo $?'
same gxx g++ 'printf "#include <map>\n#include <iostream>\n#include <string>\nint main() { std::map<std::string, int> m; for (int i = 0; i < 3000; i++) m[std::to_string(i)] = i; try { throw std::string(\"thrown\"); } catch (std::string& s) { std::cout << s << m.size() << std::endl; } }\n" >a.cc; g++ -O1 a.cc -o a && ./a; echo $?'
same git git 'export GIT_AUTHOR_DATE="1700000000 +0000" GIT_COMMITTER_DATE="1700000000 +0000" GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
git init -q -b main r && cd r && for i in 1 2 3 4 5 6 7 8; do seq $i $((i * 900)) >f$i; git add . && git commit -q -m "number $i" || exit 1; done
git log --stat | cksum; git gc -q 2>&1; git fsck 2>&1 | cat; git rev-parse HEAD; git diff HEAD~3 | cksum; git blame f8 | tail -n 2; git clone -q . ../c && cd ../c && git rev-parse HEAD; git checkout nothing; echo $?; cd .. && rm -rf r c'
same jq jq 'seq 1 20000 | jq -sc "map({k: (. % 91 | tostring), v: (. * 3)}) | group_by(.k) | map({k: .[0].k, n: length, s: (map(.v) | add)})" | md5sum; echo "{" | jq .; echo $?'
same xz xz 'seq 1 300000 | xz -6 -T2 | xz -dc | md5sum; seq 1 300000 | gzip -9n | cksum; echo no | xz -dc; echo $?'
same tar tar 'mkdir d && for i in $(seq 1 200); do seq 1 $i >d/$i; done; tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf - d | md5sum; tar tf nothing; echo $?'
same node node 'node -e "let m = new Map(); for (let i = 0; i < 100000; i++) m.set(i % 999, \"x\".repeat(i % 99)); let b = []; for (let i = 0; i < 300; i++) b.push(Buffer.alloc(10000 + i, i)); console.log(m.size, b.reduce((n, x) => n + x[5], 0)); process.exit(8)"'
same make make 'printf "all: %s\n" "$(seq -s " " -f "t%g" 1 300)" >Makefile; printf "t%%:\n\t@echo \$@ \$(words \$(MAKEFLAGS)) x\n" >>Makefile; make | sort | cksum; make nothing; echo $?'
same openssl openssl 'seq 1 50000 | openssl sha256; openssl enc -aes-256-ctr -K 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff -iv 00000000000000000000000000000000 -in /usr/bin/env | sha256sum; openssl nothing; echo $?'
same cmake cmake 'printf "cmake_minimum_required(VERSION 3.10)\nset(l \"\")\nforeach(i RANGE 3000)\nlist(APPEND l \${i})\nendforeach()\nlist(LENGTH l n)\nmessage(STATUS \${n})\n" >a.cmake; cmake -P a.cmake; cmake -P nothing.cmake; echo $?'
same php php 'php -r "\$a = []; for (\$i = 0; \$i < 200000; \$i++) \$a[\"k\" . (\$i % 5000)] = str_repeat(\"x\", \$i % 50); echo count(\$a), \" \", md5(json_encode(\$a)), \"\n\"; exit(3);"'
same ruby ruby 'ruby -e "h = Hash.new { |x, k| x[k] = [] }; 100000.times { |i| h[i % 777] << i.to_s * (i % 7) }; puts h.values.map(&:size).sum, h.values.flatten.join.size; exit 3"'
same lua lua5.4 'lua5.4 -e "local t = {} for i = 1, 100000 do t[i % 999] = (t[i % 999] or \"\") .. i % 10 end local n = 0 for _, v in pairs(t) do n = n + #v end print(n) os.exit(3)"'

echo "$ran programs"
[ $ran -ge 4 ] || complain "only $ran programs were there to run"
finish
