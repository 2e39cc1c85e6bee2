#!/bin/bash
# The site is built from docs/ without a complaint: links and headings that links name are there, each page stands in a section, public
# functions have a place in the reference, and the search knows them. Then that a broken link, a heading that is gone and a page
# without a section are found.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
need python3
need doxygen "doxygen is not installed"
clean

# A copy: the build keeps its tools in build/ of the tree, and this test breaks pages.
mkdir -p tree/build
(cd "$TSLAB_SOURCE_DIR" && tar -c --exclude=./build --exclude=./.git --exclude=./rust/target .) | tar -x -C tree
"$TSLAB_SOURCE_DIR/scripts/site.sh" --get 2>err || skip "what the site is built with cannot be fetched: $(tail -c 300 err)"
ln -s "$TSLAB_SOURCE_DIR/build/site-tools" tree/build/site-tools

built() { # STATUS
    expect "$1" tree/scripts/site.sh --out site
}
built 0
[ "$(find site -name '*.html' | wc -l)" -gt 150 ] || complain "the site has $(find site -name '*.html' | wc -l) pages only"
for function in $("$TSLAB_SOURCE_DIR/scripts/public-functions.sh"); do
    grep -qrE "id=\"?$function[\" >]" site/api || complain "the reference has no $function"
done
grep -q '"location":"api/epoch_domain.h.html#epoch_domain_drain"' site/search/search_index.json || complain "the search does not know epoch_domain_drain"
for theme in default slate; do has site/index.html "data-md-color-scheme=\"$theme\""; done
if command -v chromium || command -v chromium-headless-shell || command -v google-chrome; then
    PYTHONDONTWRITEBYTECODE=1 python3 "$TSLAB_SOURCE_DIR/tests/site/search.py" site || complain "the site in a browser"
else
    echo "skipped: no chromium (make deps FOR=browser)"
fi

cp tree/docs/limits.md page
echo '[nothing](no-such-page.md)' >>tree/docs/limits.md
built 1
has err 'limits.md.*no-such-page.md'
{ cat page && echo '[nothing](semantics.md#no-such-heading)'; } >tree/docs/limits.md
built 1
has err 'limits.md.*#no-such-heading'
cp page tree/docs/limits.md
echo '# Nowhere' >tree/docs/nowhere.md
built 1
has err 'nowhere.md'
finish
