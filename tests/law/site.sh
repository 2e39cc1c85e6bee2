#!/bin/bash
# Each page of docs/ stands once in a section of site/mkdocs.yml, and each page there exists; decisions have an index of their own, and
# generated tables stand beside their page.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
clean

faults() { # TREE
    (cd "$1/docs" && find . -name '*.md' -not -path './decisions/*[0-9]*.md' -not -path './results/tables/*' | sed 's|^\./||' | sort) >pages
    sed -n '/^nav:/,$p' "$1/site/mkdocs.yml" | sed -nE 's/^ *- (.*: )?([^ ]+\.md)$/\2/p' | sort >listed
    comm -23 pages <(sort -u listed) | sed 's/^/site\/mkdocs.yml has no section for docs\//'
    uniq -d listed | sed 's/^/site\/mkdocs.yml has several lines for /'
    local page
    while IFS= read -r page; do
        case $page in
        api/index.md) ;;
        api/*) [ -e "$1/include/$(sed 's|^api/||; s|\.md$||' <<<"$page")" ] || echo "site/mkdocs.yml: there is no header for $page" ;;
        tree/*) [ -e "$1/${page#tree/}" ] || echo "site/mkdocs.yml: there is no ${page#tree/}" ;;
        *) [ -e "$1/docs/$page" ] || echo "site/mkdocs.yml: there is no docs/$page" ;;
        esac
    done <listed
    (cd "$1/include" && find . -name '*.h' | sed 's|^\./|api/|; s|$|.md|' | sort) | comm -23 - <(sort -u listed) | sed 's/^/site\/mkdocs.yml has no section for /'
}
found=$(faults "$TSLAB_SOURCE_DIR")
[ -z "$found" ] || complain "$found"
[ "$(wc -l <pages)" -gt 30 ] || complain "only $(wc -l <pages) pages found"

mkdir copy && cp -r "$TSLAB_SOURCE_DIR"/{docs,site,include} copy && touch copy/{README,CHANGELOG,CONTRIBUTING}.md && mkdir copy/src && touch copy/src/README.md
broken() { # WANTED
    faults copy >said
    grep -qxF "$1" said || complain "not found: $1; but: $(cat said)"
}
touch copy/docs/results/nowhere.md copy/include/new.h
sed -i 's/^\( *\)- Limits: limits.md$/&\n\1- Again: limits.md\n\1- Gone: gone.md/' copy/site/mkdocs.yml
broken 'site/mkdocs.yml has no section for docs/results/nowhere.md'
broken 'site/mkdocs.yml has no section for api/new.h.md'
broken 'site/mkdocs.yml has several lines for limits.md'
broken 'site/mkdocs.yml: there is no docs/gone.md'
finish
