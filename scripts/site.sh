#!/bin/bash
# Builds the site of docs/ into build/site: pages, reference of the public headers, search. A link that leads nowhere, or a page that
# no section of site/mkdocs.yml has, ends it.
# Usage: site.sh [--get | --out DIR]
#   --get      only fetches what it is built with (site/requirements.txt, by pip) into build/site-tools
#   --out DIR  builds into DIR
# It needs python3 with venv, and doxygen (make deps FOR=site).
# Exit status: 0; 1 something is wrong with the pages; 2 wrong arguments; 3 what it is built with is not there and cannot be fetched.
set -u
out="" get=no
case ${1:-} in
"") ;;
--get) get=yes ;;
--out) out=${2:-} ;;
*)
    echo "site.sh: no option is called '$1'; usage: site.sh [--get | --out DIR]" >&2
    exit 2
    ;;
esac
[ "${1:-}" != --out ] || [ -n "$out" ] || {
    echo "site.sh: --out needs a folder" >&2
    exit 2
}
[ -z "$out" ] || out=$(realpath -m "$out")
cd "$(dirname "$0")/.." || exit 1
tools=$PWD/build/site-tools
: "${out:=$PWD/build/site}"

# The folder gets its name when all is in it, whenever this is ended; another run may have been faster.
fetch() {
    local python made log=build/site-tools.log
    made=$tools.$$
    mkdir -p build && : >$log
    trap 'rm -rf "$made"' RETURN
    for python in python3 /usr/bin/python3; do
        rm -rf "$made"
        "$python" -m venv "$made" >>$log 2>&1 && break
    done
    [ -x "$made/bin/pip" ] || {
        echo "site.sh: no python3 here makes a virtual environment (Debian package python3-venv); see $log" >&2
        return 3
    }
    "$made/bin/pip" install --disable-pip-version-check --retries 1 --timeout 30 -r site/requirements.txt >>$log 2>&1 || {
        echo "site.sh: pip cannot fetch site/requirements.txt; see $log" >&2
        return 3
    }
    cp site/requirements.txt "$made/requirements.txt" && rm -rf "$tools" && mv -T "$made" "$tools"
}
if ! cmp -s site/requirements.txt "$tools/requirements.txt"; then
    fetch || exit 3
fi
[ $get = no ] || exit 0
command -v doxygen >/dev/null || {
    echo "site.sh: doxygen is not in PATH (make deps FOR=site)" >&2
    exit 3
}
# By the module, since the programs of a virtual environment name the folder that it was made in.
# Not --quiet, which hides what --strict counts.
mkdir -p build
if ! PYTHONDONTWRITEBYTECODE=1 "$tools/bin/python" -m mkdocs build --strict --clean --config-file site/mkdocs.yml --site-dir "$out" >build/site.log 2>&1; then
    grep -v '^INFO' build/site.log >&2
    exit 1
fi
# What readers have: no page asks another machine for anything.
outside=$(grep -rlE '(<script|<img|<source|<iframe)[^>]* src="(https?:)?//|<link [^>]*href="(https?:)?//' "$out" --include='*.html')
[ -z "$outside" ] || {
    echo "site.sh: these pages need the network:" $outside >&2
    exit 1
}
echo "$out/index.html"
