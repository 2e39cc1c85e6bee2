#!/bin/bash
# One table of metrics: every field of the statistics has one line in src/stats/metrics.def, what is generated from
# it is up to date, and families are named as Prometheus wants and as users know them.
set -eu
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
cd "$TSLAB_SOURCE_DIR"

# Fields of a structure, one a line, of preprocessed text on one line. Members of ThreadStats are named sum.FIELD.
structures=$(cc -E -P -std=gnu11 -Iinclude -Isrc src/stats/report.h | tr '\n' ' ')
fields_of() {
    grep -oE "typedef struct $1 \{[^}]*\} $1;" <<<"$structures" | sed -E 's/^[^{]*\{(.*)\}.*$/\1/' | tr ';' '\n' |
        sed -E 's/^ *[A-Za-z_0-9]+\*? +//; s/ *\[[^]]*\]//g; s/^ +//; s/ +$//' | tr ',' '\n' | tr -d ' *' | grep -v '^$' || true
}
lines_of() {
    sed -nE "s/^(METRIC|RENAMED)\($1, ([a-z_.A-Z0-9]+),.*/\2/p" src/stats/metrics.def
}
compare() { # SECTION WANTED
    local twice
    twice=$(lines_of "$1" | sort | uniq -d)
    [ -z "$twice" ] || complain "metrics.def has more than one line of $1 for: $twice"
    diff -u --label "C fields of $1" <(sort <<<"$2") --label metrics.def <(lines_of "$1" | sort) >&2 ||
        complain "the lines of $1 in src/stats/metrics.def are not the fields of its structure"
}

while IFS=, read -r section row; do
    fields=$(fields_of "$row")
    [ -n "$fields" ] || complain "no structure $row"
    case $section in
    SAMPLING) fields=$(grep -vx sum <<<"$fields"; fields_of ThreadStats | sed 's/^/sum./') ;;
    DOCUMENT) # what holds the rows is no number
        fields=$(grep -vxE 'global|refusals|sampling|classes|class_count|epochs|epoch_rows|phases|phase_count|labels|label_count|label_ids|max_labels|closes|close_count|settled|mapping|mapping_bytes' <<<"$fields") ;;
    REGISTRY) fields=$(grep -xE 'label_ids|max_labels' <<<"$fields") ;;
    esac
    compare "$section" "$fields"
done < <(sed -nE 's/^SECTION\(([A-Z]+), ([A-Za-z]+),.*/\1,\2/p' src/stats/metrics.def)

# What is generated.
for what in page:docs/metrics.md schema:share/stats.schema.json schema:tslab/internal/metrics/stats.schema.json \
    table:tslab/internal/metrics/metrics.tsv; do
    diff -u "${what#*:}" <(scripts/metrics.sh "${what%%:*}") >&2 || complain "${what#*:} is out of date: scripts/metrics.sh writes it"
done

# Families: kind, type and name of each line.
table=$(sed -nE -e 's/^METRIC\(([A-Z]+), ([a-z_.0-9]+), ([A-Z0-9_]+), ([A-Z]+), ([A-Z]+), ("[^"]+"|JSON_ONLY), .*/\1 \2 \3 \4 \5 \6/p' \
    -e 's/^RENAMED\(([A-Z]+), ([a-z_.]+), "[a-z_]+", ([A-Z0-9_]+), ([A-Z]+), ([A-Z]+), ("[^"]+"|JSON_ONLY), .*/\1 \2 \3 \4 \5 \6/p' \
    -e 's/^DERIVED\(([A-Z]+), ([a-z_]+), ([A-Z0-9_]+), ([A-Z]+), ([A-Z]+), ("[^"]+"|JSON_ONLY), .*/\1 \2 \3 \4 \5 \6/p' src/stats/metrics.def)
[ "$(wc -l <<<"$table")" = "$(grep -cE '^(METRIC|RENAMED|DERIVED)\(' src/stats/metrics.def)" ] ||
    complain "a line of src/stats/metrics.def has a form that this test does not read"
while read -r section field type kind unit family; do
    family=$(tr -d '"' <<<"$family")
    case $family:$kind:$type in
    JSON_ONLY:IDENTITY:* | JSON_ONLY:COPY:* | JSON_ONLY:*:BY_LABEL) continue ;;
    JSON_ONLY:*) complain "$section $field: a $kind needs a Prometheus family"; continue ;;
    *:IDENTITY:* | *:COPY:* | *:BY_LABEL) complain "$section $field: a $kind makes no series of its own" ;;
    esac
    name=${family%%\{*}
    [[ $name =~ ^[a-z][a-z_]*$ ]] || complain "$name is no family name"
    case $kind:$name in
    COUNTER:*_total) ;;
    COUNTER:* | *:*_total) complain "$name: counters end in _total, and nothing else does" ;;
    esac
    case $unit:$name in
    NS:*_seconds | NS:*_seconds_total | SECONDS:*_seconds | SECONDS:*_seconds_total) ;;
    NS:* | SECONDS:*) complain "$name: times are in seconds" ;;
    esac
done <<<"$table"
families=$(awk '$6 != "JSON_ONLY" && $4 != "SUM" { print $6 }' <<<"$table" | tr -d '"')
twice=$(sort <<<"$families" | uniq -d)
[ -z "$twice" ] || complain "families of several lines: $twice"

# What explains a family stands alone: on a page of metrics nobody has read the line before it, or the row that it is of.
leaning=$(scripts/metrics.sh table | awk -F'\t' '
    $1 == "family" { help[$2] = $3 }
    $1 == "metric" && $7 != "-" && $5 != "SUM" { name = $7; sub(/\{.*/, "", name); if (!(name in help)) help[name] = $8 }
    END {
        for (name in help) {
            h = " " tolower(help[name]) " "
            if (h ~ /[^a-z](the same|as above|it|of these|such)[^a-z]/ || h ~ /^ (its|their) / || split(help[name], words, " ") < 3)
                print name ": " help[name]
        }
    }')
[ -z "$leaning" ] || complain "help of families that says nothing alone: $leaning"

# What reads 0, always or without the option shared, is on the page that says why; what always does makes no series.
zeros=$(sed -n '/^## Numbers that read 0/,/^## /p' docs/which-number.md)
while IFS=$'\t' read -r key family help; do
    case $key:$help in total_*) continue ;; *"Shared mode only"* | *"Always 0"*) ;; *) continue ;; esac
    grep -q "^|[^|]*\`$key\`" <<<"$zeros" || complain "docs/which-number.md does not say why $key reads 0"
    case $family:$help in -:*) ;; *"Always 0"*) complain "$family is always 0 and a series" ;; esac
done < <(scripts/metrics.sh table | awk -F'\t' -v OFS='\t' '$1 == "metric" { print $3, $7, $8 }')

# Names that dashboards and alerts out there ask for.
for name in class_{lock_contended,lock_acquisitions,slow_path_hits,bitmap_alloc_cas_retries,bitmap_alloc_attempts}_total \
    class_current_partial_cas_{failures,attempts}_total slow_cache_miss_total slow_epoch_closed_total \
    madvise_{calls,bytes,failures}_total closing_epoch_count rss_bytes net_slabs scan_mode scan_adapt_{checks,switches}_total \
    epoch_{age_seconds,refcount,rss_bytes,estimated_rss_bytes,reclaimable_slabs,state,rss_before_close,rss_after_close,madvise_bytes}; do
    grep -qx "$name" <<<"$families" || complain "the family $name is gone"
done
finish
