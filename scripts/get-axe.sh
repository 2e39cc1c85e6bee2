#!/bin/sh
# Fetches axe-core (MPL-2.0), with which a test looks whether the pages of tslab web are accessible, into build/axe. Nothing that
# is built or installed has anything of it; without it that part of the test is skipped.
# Usage: get-axe.sh      needs npm; does nothing when it is there already
# Exit status: 0 it is there, 1 it could not be had, or is not what it should be.
set -u
[ $# -eq 0 ] || {
    echo "get-axe.sh: takes no argument, not '$1'" >&2
    exit 2
}
cd "$(dirname "$0")/.." || exit 1
to=$PWD/build/axe version=4.14.1

[ -f "$to/axe.min.js" ] && exit 0
command -v npm >/dev/null || {
    echo "get-axe.sh: npm, which fetches axe-core, is not installed" >&2
    exit 1
}
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
# Without a network the defaults wait for minutes; what a cache has need not be asked for, its sum is compared anyway.
if ! { npm pack --loglevel=error --prefer-offline --no-update-notifier --fetch-retries=1 --fetch-retry-mintimeout=1000 \
    --fetch-retry-maxtimeout=3000 --fetch-timeout=60000 "axe-core@$version" >/dev/null 2>log </dev/null && tar -xzf "axe-core-$version.tgz"; }; then
    echo "get-axe.sh: npm could not fetch axe-core $version" >&2
    grep -v "complete log of this run\|\.log$" log | tail -n 3 >&2
    exit 1
fi
if ! echo "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c  package/axe.min.js" | sha256sum --check --quiet; then
    echo "get-axe.sh: axe-core $version is not what it was; nothing of it is used" >&2
    exit 1
fi
# What has the name is whole, whenever this is ended.
mkdir -p "$to" && cp package/axe.min.js "$to/part" && mv "$to/part" "$to/axe.min.js"
