#!/bin/bash
# Who names a metric elsewhere names one of the table (src/stats/metrics.def): dashboard, alerts and their tests, documents,
# scripts, the keys that tslab looks up. What tslabd, `tslab serve` and `tslab web` count of themselves has one line
# in their sources, and docs say the same names.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
cd "$TSLAB_SOURCE_DIR" || exit 1

table=tslab/internal/metrics/metrics.tsv # tests/law/metrics.sh holds it to metrics.def
awk -F'\t' '$1 == "metric" && $7 != "-" {
        name = $7; sub(/\{.*/, "", name); print name
        if ($5 == "HISTOGRAM") print name "_bucket\n" name "_sum\n" name "_count" }' $table | sort -u >"$scratch/families"
awk -F'\t' '$1 == "metric" { print $3 }' $table | sort -u >"$scratch/keys"
sed -nE 's/.*prometheus\.GaugeOpts\{Name: "temporal_slab_(\w+)", Help: .*/\1/p' tslab/internal/cli/serve.go tslab/internal/web/fleet.go | sort -u >"$scratch/serve"
sed -nE 's/.*(self_family|number)\(t, "(\w+)", "(counter|gauge)".*/tslabd_\2/p' daemon/*.c | sort >"$scratch/daemon"
[ "$(wc -l <"$scratch/families")" -gt 150 ] && [ "$(wc -l <"$scratch/keys")" -gt 150 ] || fail "the table cannot be read"
[ "$(wc -l <"$scratch/serve")" -eq 3 ] && [ "$(wc -l <"$scratch/daemon")" -gt 10 ] || fail "the programs' own families cannot be read"

strangers() { # KNOWN: names on standard input that are not there; one that ends in _ stands for all that begin so
    sort -u | comm -23 - <(sort -u "$1") | while read -r name; do
        case $name in *_) grep -q "^$name" "$1" && continue ;; esac
        echo "$name"
    done | xargs
}
sort -u "$scratch/families" "$scratch/serve" >"$scratch/known"
[ "$(printf 'rss_bytes\nlabel_\ngone_\nrss_byte\n' | strangers "$scratch/known")" = "gone_ rss_byte" ] || fail "strangers are not found"

# Names with their prefix. temporal_slab_static and temporal_slab_preload are libraries.
for file in README.md $(find docs share daemon tools scripts examples demo tslab -type f ! -name metrics.tsv) tests/daemon/alerts_test.yml; do
    found=$(grep -ohE '\btemporal_slab_[a-z_]+' "$file" | sed 's/^temporal_slab_//' | grep -vxE 'static|preload' | strangers "$scratch/known")
    [ -z "$found" ] || complain "$file: the table of metrics has no $found"
done
twice=$(uniq -d "$scratch/daemon")
[ -z "$twice" ] || complain "families of tslabd begin in two places: $twice"
diff -u --label "families in daemon/" "$scratch/daemon" --label docs/monitoring.md \
    <(grep -E '^\| `tslabd_' docs/monitoring.md | cut -d'|' -f2 | grep -oE 'tslabd_[a-z_]+' | sort) >&2 ||
    complain "docs/monitoring.md does not list what tslabd counts of itself"

# Keys of rows in Go; a wrong one would panic when its line runs.
found=$(grep -rhoE --include='*.go' --exclude='*_test.go' '\.(U|F|S|Tells)\("[a-z_]+"|metrics\.Of\(.*\)\.Find\("[a-z_]+"|Total\(metrics\.\w+, "[a-z_]+"|sortDescending\(\w+, "[a-z_]+"' tslab |
    grep -oE '"[a-z_]+"' | tr -d '"' | tee "$scratch/looked_up" | strangers "$scratch/keys")
[ "$(wc -l <"$scratch/looked_up")" -gt 100 ] || complain "no keys found in tslab/"
[ -z "$found" ] || complain "tslab/: the table of metrics has no key $found"
finish
