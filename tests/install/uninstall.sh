#!/bin/bash
# `make install` leaves a list, and `make uninstall` takes back what is on it and nothing else: another program's files and
# folders stay, also where this library has put some. Neither downloads anything nor calls a package manager.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
clean
mkdir bin
for program in apt-get apt dpkg npm curl wget git; do
    printf '#!/bin/sh\necho %s >>"%s/calls"\nexit 1\n' $program "$PWD" >bin/$program
    chmod +x bin/$program
done
there() { (cd "$1" && find . | sort); }
run() { # STATUS SCRIPT ARGUMENT...
    local wanted=$1 status=0
    shift
    PATH=$PWD/bin:$PATH "$TSLAB_SOURCE_DIR/scripts/$1" "${@:2}" >out 2>err || status=$?
    [ $status -eq "$wanted" ] || fail "$*: exit $status instead of $wanted: $(cat out err)"
}

mkdir -p tree/include tree/share/temporal-slab
touch tree/include/stdio.h tree/share/temporal-slab/notes
there tree >before
run 1 uninstall.sh tree
has err 'nothing was installed in .*tree by make install'
run 0 install.sh install "$PWD/tree"
has out '^installed in .*tree: [0-9]* files, listed in .*/share/temporal-slab/installed$'
has out "^the system does not look for libraries in $PWD/tree/lib.*: programs need LD_LIBRARY_PATH="
for file in include/slab_alloc.h share/temporal-slab/installed; do
    [ -s tree/$file ] || complain "$file is not installed"
    has tree/share/temporal-slab/installed "^$file\$"
done
# Names that others may have carry a prefix; those without are links for now. Each program has a page.
for name in stats_dump synthetic_bench; do
    [ -e "$TSLAB_BUILD_DIR/$name" ] || continue
    prefixed=tslab-${name//_/-}
    [ "$(readlink tree/bin/$name)" = "$prefixed" ] && tree/bin/$name --version >/dev/null || complain "$name is no link to $prefixed"
    [ -s "tree/share/man/man1/$prefixed.1" ] || complain "$prefixed has no manual page"
    tree/bin/$prefixed --help | grep -oE -e '--[a-z_-]+' | sort -u | sed 's/-/\\-/g' | while read -r option; do
        grep -qF -e "$option" "tree/share/man/man1/$prefixed.1" || echo "$option"
    done >left_out
    empty left_out
done
echo include/of_an_earlier_version.h >>tree/share/temporal-slab/installed
touch tree/include/of_an_earlier_version.h
run 0 install.sh install "$PWD/tree"
run 0 uninstall.sh tree
there tree | grep -vE '^\./(bin|lib.*|share(/man.*|/doc|/[a-z-]*completion.*|/zsh.*|/fish.*)?)$' >after
grep -vx ./share before | diff - after >&2 || complain "what was there is not there again, or more"
[ -z "$(find tree -type f -o -type l | grep -vx -e tree/include/stdio.h -e tree/share/temporal-slab/notes)" ] || complain "files stay: $(find tree -type f)"

# The library alone: no program, no folder of one, and what takes all back takes this back.
run 0 install.sh install-lib "$PWD/tree"
(cd tree && find . -type f -o -type l) | sort >lib
for file in include/slab_alloc.h include/tslab.hpp share/man/man7/temporal-slab.7 share/doc/temporal-slab/LICENSE share/temporal-slab/temporal_slab.py; do
    has lib "^\./$file\$"
done
for file in libtemporal_slab.a libtemporal_slab.so temporal-slabConfig.cmake temporal-slab.pc; do has lib "/$file\$"; done
for folder in ./bin man1 prometheus completion; do lacks lib "$folder"; done
run 0 uninstall.sh tree
[ -z "$(find tree -type f -o -type l | grep -vx -e tree/include/stdio.h -e tree/share/temporal-slab/notes)" ] || complain "of the library stay: $(find tree -type f -o -type l)"

# A PREFIX that ends with a slash is the same; none is no PREFIX, and installs nothing where the sources are.
run 0 install.sh install "$PWD/tree//"
has out "^installed in $PWD/tree: "
has tree/share/temporal-slab/installed '^include/slab_alloc.h$'
run 0 uninstall.sh "$PWD/tree/"
[ ! -e tree/include/slab_alloc.h ] || complain "what was installed in tree// stays"
run 2 install.sh install ""
has err 'PREFIX is empty'
run 2 install.sh --nonsense tree
run 2 uninstall.sh ""
run 2 uninstall.sh --nonsense
mkdir narrow && touch narrow/file
run 1 install.sh install "$PWD/narrow/file"
has err 'nothing, or not all, was installed in '
[ "$(grep -c . err)" -ge 2 ] || complain "the cause is not told: $(cat err)"

# With DESTDIR, for packages; and a list that leads elsewhere is not followed.
DESTDIR=$PWD/root run 0 install.sh install /usr
[ -s root/usr/include/slab_alloc.h ] || complain "DESTDIR"
echo ../../precious >>root/usr/share/temporal-slab/installed
touch precious
DESTDIR=$PWD/root run 1 uninstall.sh /usr
[ -e precious ] && [ -e root/usr/include/slab_alloc.h ] || complain "a list that leads elsewhere was followed"
sed -i '\|precious|d' root/usr/share/temporal-slab/installed
DESTDIR=$PWD/root run 0 uninstall.sh /usr
[ -z "$(find root -type f)" ] || complain "files stay below DESTDIR"
[ ! -e calls ] || complain "called: $(cat calls)"
finish
