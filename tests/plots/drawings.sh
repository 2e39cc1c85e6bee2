#!/bin/bash
# Pictures that explain are what their texts say (tools/drawings.py); pages show each of them. And a picture that lags behind, or cannot
# be drawn, is told.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
need python3
clean
export PYTHONDONTWRITEBYTECODE=1
pictures=$TSLAB_SOURCE_DIR/docs/pictures
tested=(python3 "$TSLAB_SOURCE_DIR/tools/drawings.py")

expect 0 --check
empty err
drawings=0
for file in "$pictures"/*.drawing; do
    name=$(basename "$file" .drawing) drawings=$((drawings + 1))
    python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "$pictures/$name.svg" || complain "$name.svg is not XML"
    grep -rqF "pictures/$name.svg)" "$TSLAB_SOURCE_DIR/docs" --include='*.md' || complain "no page shows $name.svg"
done
[ $drawings -ge 5 ] || complain "only $drawings drawings"

mkdir copy && cp "$pictures"/*.drawing "$pictures"/*.svg copy
faulty() { # PATTERN ARGUMENT...
    local pattern=$1
    shift
    expect 1 "$@" --folder copy
    has err "$pattern"
    cp "$pictures"/*.drawing "$pictures"/*.svg copy
}
sed -i 's/>ACTIVE</>ALIVE</' copy/phase-life.svg
faulty 'phase-life.svg is not what its text says' --check
rm copy/region.svg
faulty 'region: .*No such file' --check
echo 'box 10 10 40 20 plain a text that is wider' >>copy/region.drawing
faulty 'region: line [0-9]*: the text is wider than its box'
echo 'box 700 10 100 20 plain out' >>copy/region.drawing
faulty 'region: line [0-9]*: it is outside of the picture'
echo 'circle 1 2 3' >>copy/region.drawing
faulty 'region: line [0-9]*: no thing is called circle'
rm copy/region.drawing
faulty 'region.svg has no text' --check
finish
