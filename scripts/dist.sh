#!/bin/sh
# Makes the source archive of a release: what the commit has, no more, the same bytes whoever makes it and when. The library builds
# and tests from it without git.
# Usage: dist.sh [FOLDER]     where it goes, build without one; it is named temporal-slab-VERSION.tar.gz
set -eu
case ${1:-} in -*)
    echo "usage: dist.sh [FOLDER]" >&2
    exit 2
    ;;
esac
folder=$(realpath -m "${1:-$(dirname "$0")/../build}")
cd "$(dirname "$0")/.."
[ -e .git ] || {
    echo "dist.sh: an archive is made of a commit, and this is no git repository" >&2
    exit 1
}
version=$(git show HEAD:include/slab_alloc.h | sed -n 's/^#define TSLAB_VERSION_[A-Z]* //p' | paste -sd .)
name=temporal-slab-$version
[ -z "$(git status --porcelain --untracked-files=no)" ] || echo "dist.sh: changes that are not committed are left out" >&2
mkdir -p "$folder"
# Owners, times and modes are the commit's; gzip is told to keep neither its own time nor a name.
git -c tar.umask=0022 archive --format=tar --prefix="$name/" HEAD | gzip -9n >"$folder/$name.tar.gz.new"
mv "$folder/$name.tar.gz.new" "$folder/$name.tar.gz"
echo "$folder/$name.tar.gz, of $(git rev-parse --short HEAD)"
