#!/bin/bash
# What pages say agrees with what they speak of: links lead to files and headings that exist; the version is that of the public
# header, also in outputs that pages show; the numbers of the README, docs/results/bench.md and docs/production.md are those of the results
# that they name. The README stays short.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
cd "$TSLAB_SOURCE_DIR" || exit 1
pages=$(find . -name '*.md' -not -path './build/*' -not -path './.git/*' | sed 's|^\./||' | sort)

[ "$(wc -l <README.md)" -le 120 ] || complain "README.md has $(wc -l <README.md) lines: at most 120, the rest belongs into docs/"

# Headings as GitHub names them: FILE#name.
for page in $pages; do
    awk -v page="$page" '/^```/ { code = !code } !code && /^#+ / {
        sub(/^#+ /, ""); gsub(/\[|\]\([^)]*\)/, ""); name = tolower($0)
        gsub(/[^a-z0-9 _-]/, "", name); gsub(/ /, "-", name); print page "#" name }' "$page"
done >"$scratch/headings"
grep -qx 'docs/semantics.md#limits' "$scratch/headings" || fail "headings are not found"

links=0
while IFS=: read -r page target; do
    links=$((links + 1))
    case $target in http*|mailto*) continue ;; '#'*) file=$page ;; *) file=$(dirname "$page")/${target%%#*} ;; esac
    file=$(realpath -m --relative-to=. "$file")
    [ -e "$file" ] || complain "$page links to $target, which is not there"
    case $target in
    *'#'*) grep -qxF "$file#${target#*#}" "$scratch/headings" || complain "$page links to $target: no such heading" ;;
    esac
done < <(for page in $pages; do
    # shellcheck disable=SC2016  # backquotes of Markdown
    awk '/^```/ { code = !code } !code && !/^    / { gsub(/`[^`]*`/, ""); print }' "$page" |
        grep -oE '\]\([^) ]+\)' | sed "s|^](\(.*\))\$|$page:\1|"
done)
[ "$links" -gt 300 ] || complain "only $links links found"

# One version: that of the header.
part() { sed -n "s/^#define TSLAB_VERSION_$1 //p" include/slab_alloc.h; }
minor=$(part MAJOR).$(part MINOR) version=$(part MAJOR).$(part MINOR).$(part PATCH)
grep -q "^Version $version, " README.md || complain "README.md is not of version $version"
for file in README.md docs/upgrading.md docs/installing.md tests/install/*/CMakeLists.txt; do
    wrong=$(grep -noE 'find_package\(temporal-slab [0-9.]+' "$file" | grep -v " $minor\$")
    [ -z "$wrong" ] || complain "$file: $wrong, and this is $minor"
done
wrong=$(grep -nE 'temporal-slab [0-9]+\.[0-9]+\.[0-9]+' $pages | grep -v "temporal-slab $version" | grep -v '^CHANGELOG')
[ -z "$wrong" ] || complain "outputs of another version: $wrong"
closed=$(sed -nE 's/^## \[([0-9.]+)\] - [0-9-]{10}$/\1/p' CHANGELOG.md | head -n 1) # what was measured before the version rose
wrong=$(grep -nE '^\| tslab \| [0-9]+\.[0-9]+\.[0-9]+ \|' $pages | grep -v "| tslab | \($version\|$closed\) |")
[ -z "$wrong" ] || complain "rows of another version: $wrong"
wrong=$(grep -nE '(^|[^0-9.,-])1 (calls|classes|functions|labels|objects|phases|samples|slabs|things)([^a-z]|$)' $pages | grep -v '^CHANGELOG')
[ -z "$wrong" ] || complain "no program of this version says so: $wrong"
[ "$(sed -nE 's/^## \[([0-9.]+)\] - ([0-9-]{10}|unreleased)$/\1/p' CHANGELOG.md | head -n 1)" = "$version" ] ||
    complain "CHANGELOG.md does not begin with $version"

# The table of performance: a row names one of the results, its cells are those of the run.
bench=docs/results/tables/bench.md rows=0
cell() { # SECTION ROW COLUMN-NAME
    awk -F' *[|] *' -v section="$1" -v row="$2" -v name="$3" '
        /^##/ { in_it = $0 == section }
        !in_it { next }
        $2 == "row" { for (i = 2; i <= NF; i++) if ($i == name) column = i }
        index($2, row) == 1 && column { gsub(/\*/, "", $column); print $column; exit }' $bench
}
while IFS= read -r line; do
    row=$(sed -nE 's/.*\(`([^`]+)`\).*/\1/p' <<<"$line")
    [ -n "$row" ] || continue
    rows=$((rows + 1))
    wanted="$(cell '## All numbers' "$row," temporal-slab)"
    for name in glibc mimalloc jemalloc snmalloc tcmalloc; do wanted="$wanted | $(cell '### General allocators' "$row," $name)"; done
    [ "${line#*\`) | }" = "$wanted |" ] || complain "$row: $bench says $wanted"
done < <(grep -h '^| ' README.md docs/results/bench.md)
[ "$rows" -eq 19 ] || complain "README.md and docs/results/bench.md have $rows rows of performance, not 6 and 13"
grep -qF "a pair takes $(awk -F' *[|] *' '$2 == "row" { on = $3 == "snmalloc-checks" } on && /^\| pair: alloc/ { print $3; exit }' $bench) ns" README.md ||
    complain "README.md: the pair of snmalloc-checks"
sums=$(sed -nE 's/^Against the best .*: ([0-9]+) won, ([0-9]+) level.*, ([0-9]+) behind\.$/\3 \1 \2/p' $bench)
read -r behind won level <<<"$sums"
grep -qF "the $behind of $((behind + won + level)) in which another" README.md || complain "README.md: how many rows are behind"
tr '\n' ' ' <docs/results/bench.md | grep -qF "$won won, $level level (within 5 %), $behind behind" || complain "docs/results/bench.md: how many rows are behind"

# What docs/production.md says of the cost is of the same run.
observed() { cell '### What being observed costs' "$1" "$2"; }
tail_of() { cell '### Ways of using temporal-slab' 'batch_tail: alloc p99.9,' "$1"; }
for words in "pair takes $(observed pair: tslab-sampled) times" "request $(observed 'request: 1 thread' tslab-sampled) times" \
    "from $(tail_of tslab) to $(tail_of tslab-sampled) ns" "a random object takes $(observed mixed: tslab-domain) times"; do
    tr -s ' \n' ' ' <docs/production.md | grep -qF "$words" || complain "docs/production.md does not say: $words"
done
finish
