#!/bin/sh
# Fetches files of an npm package into a folder, if they are what they were; get-uplot.sh and get-axe.sh run it.
# Usage: fetch-npm.sh WHO PACKAGE VERSION FOLDER <sums      sums: lines of sha256sum, with names as in the package
# The files lie in FOLDER/package then. Exit status: 0 they are there, 1 they could not be had, or are not what they should be.
set -u
[ $# -eq 4 ] && [ -d "$4" ] || {
    echo "usage: fetch-npm.sh WHO PACKAGE VERSION FOLDER <sums" >&2
    exit 2
}
who=$1 package=$2 version=$3 folder=$4
command -v npm >/dev/null || {
    echo "$who: npm, which fetches $package, is not installed" >&2
    exit 1
}
cat >"$folder/sums"
cd "$folder" || exit 1
# Without a network the defaults wait for minutes; what a cache has need not be asked for, its sums are compared anyway.
if ! { npm pack --loglevel=error --prefer-offline --no-update-notifier --fetch-retries=1 --fetch-retry-mintimeout=1000 \
    --fetch-retry-maxtimeout=3000 --fetch-timeout=60000 "$package@$version" >/dev/null 2>log </dev/null && tar -xzf "$package-$version.tgz"; }; then
    echo "$who: npm could not fetch $package $version" >&2
    grep -v "complete log of this run\|\.log$" log | tail -n 3 >&2
    exit 1
fi
if ! sha256sum --check --quiet sums; then
    echo "$who: $package $version is not what it was; nothing of it is used" >&2
    exit 1
fi
