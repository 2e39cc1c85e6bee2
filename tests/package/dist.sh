#!/bin/bash
# The source archive is the same whoever makes it, and what is in it builds and passes tests where there is no git.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
[ -e "$TSLAB_SOURCE_DIR/.git" ] || skip "no git repository: the archive is made of a commit"
need git
clean
# What is tested is the tree as it stands: committed in a copy, with a time that is long past.
git -c advice.detachedHead=false clone -q --no-hardlinks --depth 1 "file://$TSLAB_SOURCE_DIR" copy >said 2>&1 || fail "no copy: $(cat said)"
(cd "$TSLAB_SOURCE_DIR" && git ls-files -z --cached --others --exclude-standard | xargs -0 ls -d 2>/dev/null | tar cf - -T -) | tar xf - -C copy
(cd copy && git add -A && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m tree --date="2001-02-03T04:05:06Z") || fail "no commit"
copy/scripts/dist.sh one >said || fail "no archive: $(cat said)"
(umask 077 && TZ=Asia/Tokyo git clone -q copy other && touch other/README.md && sleep 1 && other/scripts/dist.sh two >said) || fail "no second archive"
cmp one/*.gz two/*.gz || complain "the same commit gives two archives"
name=$(basename one/*.gz .tar.gz)
[[ $name = temporal-slab-[0-9]*.[0-9]*.[0-9]* ]] || complain "it is called $name"

away=$(mktemp -d) # outside of any repository
trap 'rm -rf "$away"' EXIT
tar xzf "one/$name.tar.gz" -C "$away"
find "$away/$name" -name '*.o' -o -name '*.so' -o -name '*.a' -o -name .git | grep . && complain "it has what is built"
mkdir bin
printf '#!/bin/sh\necho git >>"%s/calls"\nexit 1\n' "$PWD" >bin/git
chmod +x bin/git
export PATH=$PWD/bin:$PATH
programs="unit_test_kit unit_test_size_class contract_epochs contract_domains misuse_double_free_sequence"
cd "$away/$name" || exit 1
cmake -G Ninja -S . -B build/t -DCMAKE_C_FLAGS_RELEASE=$cheap -DTSLAB_BUILD_TESTS=ON >"$away/said" 2>&1 || fail "no configure: $(tail "$away/said")"
# shellcheck disable=SC2086  # words
ninja -C build/t temporal_slab temporal_slab_static $programs >"$away/said" 2>&1 || fail "it does not build: $(tail "$away/said")"
pattern="^($(tr ' ' '\n' <<<"$programs" | sed 's|_|/|' | paste -sd '|')|law/(exports|includes|pages|circles|sizes))$"
ctest --test-dir build/t -R "$pattern" --output-on-failure >"$away/said" 2>&1 || fail "tests: $(tail -n 30 "$away/said")"
tail -n 4 "$away/said"
cd - >/dev/null || exit 1
[ ! -e calls ] || complain "git was called"
finish
