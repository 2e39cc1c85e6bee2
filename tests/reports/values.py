"""Compares what the writers printed of one report with the C fields themselves: values.py FIELDS JSON PROMETHEUS.

Every field must be in the document under its key, exactly; every field with a family must be in the Prometheus text, in
its unit, under the labels of its row. FIELDS is as print.c says.
"""

import json
import math
import re
import sys
from decimal import Decimal

PREFIX = "temporal_slab_"
SECTIONS = {
    "DOCUMENT": None, "GLOBAL": None, "REGISTRY": "label_registry", "CLASS": "classes", "EPOCH": "epochs",
    "SAMPLING": "slowpath_sampling", "REFUSAL": "refusals", "PHASE": "phases", "LABEL": "labels",
    "CLOSE": "closes",
}
STATES = ["ACTIVE", "CLOSING"]
RING = 1024
problems = []


def complain(text):
    problems.append(text)


def read_fields(path):
    rows = []
    with open(path, encoding="ascii") as lines:
        for line in lines:
            section, row, key, kind_of, kind, unit, family, value = line.rstrip("\n").split("\t")
            rows.append(dict(section=section, row=int(row), key=key, type=kind_of, kind=kind, unit=unit, family=family, text=value))
    return rows


def repaired(raw):
    """UTF-8 in which each byte that is part of no character has become U+FFFD."""
    out, at = "", 0
    while at < len(raw):
        for length in (1, 2, 3, 4):
            try:
                out += raw[at:at + length].decode("utf-8")
                at += length
                break
            except UnicodeDecodeError:
                pass
        else:
            out += "\ufffd"
            at += 1
    return out


def finite(v):
    return v if math.isfinite(v) else 0.0


def value_of(f):
    if f["type"] == "F64":
        return float(f["text"])
    if f["type"] == "FLAG":
        return f["text"] == "true"
    if f["type"] == "STATE":
        return STATES[int(f["text"])]
    if f["type"] == "STRING":
        return repaired(bytes.fromhex(f["text"]))
    if f["type"] in ("BY_LABEL", "DOUBLING", "LATENCY", "LIST"):
        return [int(n) for n in f["text"].split(",")]
    return int(f["text"])


def check_json(fields, document):
    for f in fields:
        section = SECTIONS[f["section"]]
        row = document if section is None else document[section]
        if isinstance(row, list):
            row = row[f["row"]]
        where = "%s[%d].%s" % (section, f["row"], f["key"])
        want = value_of(f)
        if f["type"] == "F64":
            want = finite(want)
        got = row.get(f["key"], "nothing")
        if got != want or isinstance(got, bool) != (f["type"] == "FLAG"):
            complain("json: %s is %r, not %r" % (where, got, want))
        if f["type"] == "BY_LABEL":
            sparse = {str(i): n for i, n in enumerate(want) if n != 0}
            got = row["contention_by_label"].get(f["key"][:-len("_by_label")], "nothing")
            if got != sparse:
                complain("json: contention_by_label of %s is %r, not %r" % (where, got, sparse))


def check_derived(document):
    for c in document["classes"]:
        taken = min(c["lock_fast_acquire"] + c["lock_contended"], 2**64 - 1)
        if c["lock_acquisitions"] != taken:
            complain("json: lock_acquisitions of class %d" % c["class_index"])
        for key, part, whole, scale in (("lock_contention_pct", "lock_contended", taken, 100.0),
                                        ("cas_retry_rate", "bitmap_alloc_cas_retries", c["bitmap_alloc_attempts"], 1.0)):
            want = scale * float(c[part]) / float(whole) if whole else 0.0
            if not math.isclose(c[key], want):
                complain("json: %s of class %d is %r, not %r" % (key, c["class_index"], c[key], want))
    s = document["slowpath_sampling"]
    for mean, total, count in (("avg_wall_ns", "wall_ns_sum", "samples"), ("avg_cpu_ns", "cpu_ns_sum", "samples"),
                               ("avg_wait_ns", "wait_ns_sum", "samples"), ("avg_repair_cpu_ns", "repair_cpu_ns_sum", "repair_count"),
                               ("avg_repair_wait_ns", "repair_wait_ns_sum", "repair_count")):
        want = float(s[total]) / float(s[count]) if s[count] else 0.0
        if not math.isclose(s[mean], want):
            complain("json: %s is %r, not %r" % (mean, s[mean], want))
    if s["enabled"] is not (s["period"] != 0):
        complain("json: enabled does not go with period")
    registry = [(e["id"], e["label"]) for e in document["label_registry"]["labels"]]
    if registry != [(e["label_id"], e["label"]) for e in document["labels"]]:
        complain("json: the registry's labels are not those of `labels`")


SAMPLE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$', re.S)
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|$)', re.S)
UNESCAPE = {"\\n": "\n", "\\\\": "\\", '\\"': '"'}


def read_prometheus(path):
    """{(name, sorted labels): value text}; refuses doubled series, unknown lines and families that are not in one piece."""
    series, seen, current = {}, set(), None
    with open(path, encoding="utf-8", newline="\n") as whole:
        text = whole.read()
    for line in text.split("\n")[:-1]:
        if line.startswith("# TYPE "):
            current = line.split(" ")[2]
            if current in seen:
                complain("prometheus: %s begins twice" % current)
            seen.add(current)
            continue
        if line.startswith("# HELP "):
            continue
        match = SAMPLE.match(line)
        if match is None or current is None or not match.group(1).startswith(current):
            complain("prometheus: what is %r?" % line)
            continue
        labels, rest = {}, match.group(2) or ""
        while rest:
            pair = LABEL.match(rest)
            if pair is None or pair.group(1) in labels:
                complain("prometheus: bad labels in %r" % line)
                break
            labels[pair.group(1)] = re.sub(r'\\["\\n]', lambda m: UNESCAPE[m.group(0)], pair.group(2))
            rest = rest[pair.end():]
        key = (match.group(1), tuple(sorted(labels.items())))
        if key in series:
            complain("prometheus: %r twice" % (key,))
        series[key] = match.group(3)
    return series


def shown_label(document, label_id):
    for row in document["labels"]:
        if row["label_id"] == label_id:
            text = row["label"]
            return text + " #%d" % label_id if "\ufffd" in text else text
    last = document["labels"][-1]["label_id"] if document["labels"] else 0
    return shown_label(document, last) if label_id > last else " #%d" % label_id


def labels_of(f, document):
    if f["section"] == "CLASS":
        c = document["classes"][f["row"]]
        return {"class": str(c["class_index"]), "object_size": str(c["object_size"])}
    if f["section"] == "EPOCH":
        e = document["epochs"][f["row"]]
        return {"epoch": str(e["epoch_id"]), "state": e["state"], "label": shown_label(document, e["label_id"])}
    if f["section"] == "LABEL":
        return {"label": shown_label(document, document["labels"][f["row"]]["label_id"])}
    return {}


def has_series(f, document):
    """Of an epoch: whether its ring id names it now."""
    if f["section"] != "EPOCH":
        return True
    row = document["epochs"][f["row"]]
    return row["epoch_id"] < RING and not any(e["epoch_id"] == row["epoch_id"] and e["epoch_era"] > row["epoch_era"] for e in document["epochs"])


def in_unit(f, value):
    if f["type"] == "F64":
        return Decimal(repr(value / 100.0 if f["unit"] == "PERCENT" else value)) if math.isfinite(value) else value
    return Decimal(value).scaleb(-9) if f["unit"] == "NS" else Decimal(value)


def same(text, want):
    if isinstance(want, float):
        return text == ("NaN" if math.isnan(want) else "+Inf" if want > 0 else "-Inf")
    return text is not None and Decimal(text) == want


def check_histogram(f, name, labels, series):
    buckets = value_of(f)
    total = min(sum(buckets), 2**64 - 1)
    got = series.pop((name + "_count", tuple(sorted(labels.items()))), None)
    if got != (str(total) if total else None):
        complain("prometheus: %s_count%r is %s, not %d" % (name, labels, got, total))
    if f["type"] == "DOUBLING": # nobody adds the values up: the middles of their buckets stand for them
        want = sum(n * 1.5 * 2**i for i, n in enumerate(buckets)) / (1e9 if f["unit"] == "NS" else 1)
        got = series.pop((name + "_sum", tuple(sorted(labels.items()))), None)
        if (got is not None) != (total > 0) or total > 0 and not math.isclose(float(got), want, rel_tol=1e-12):
            complain("prometheus: %s_sum%r is %s, not %s" % (name, labels, got, want))
    for i in range(len(buckets)) if total else ():
        top = 2 ** (i + 1) - 1 if f["type"] == "DOUBLING" else i if i < 4 else ((5 + i % 4) << (i // 4 - 1)) - 1
        edge = Decimal(top).scaleb(-9) if f["unit"] == "NS" else Decimal(top)
        edge = "+Inf" if i == len(buckets) - 1 else format(edge.normalize(), "f")
        got = series.pop((name + "_bucket", tuple(sorted({**labels, "le": edge}.items()))), None)
        want = str(min(sum(buckets[:i + 1]), 2**64 - 1))
        if got != want and not (got is None and f["type"] == "DOUBLING" and i % 2 == 0):
            complain("prometheus: bucket %s of %s%r is %s, not %s" % (edge, name, labels, got, want))


def check_prometheus(fields, document, series):
    phases = {}
    for f in fields:
        if f["family"] == "-" or not has_series(f, document):
            continue
        name, _, fixed = (PREFIX + f["family"]).partition("{")
        labels = labels_of(f, document)
        if fixed:
            word, _, text = fixed.rstrip("}").partition("=")
            labels[word] = text
        if f["kind"] == "INFO":
            if series.pop((name, ((f["key"], document[f["key"]]),)), None) != "1":
                complain("prometheus: no %s of %r" % (name, document[f["key"]]))
            continue
        if f["kind"] == "HISTOGRAM":
            check_histogram(f, name, labels, series)
            continue
        value = int(f["text"]) if f["type"] == "STATE" else value_of(f)
        if f["section"] == "PHASE":
            sums = phases.setdefault((name, shown_label(document, document["phases"][f["row"]]["label_id"])), [])
            sums.append((f, value))
            continue
        key = (name + ("_sum" if f["kind"] == "SUM" else ""), tuple(sorted(labels.items())))
        got = series.pop(key, None)
        if got is None and f["kind"] == "SUM" and value == 0:
            continue  # an empty histogram is left out
        if not same(got, in_unit(f, value)):
            complain("prometheus: %r is %s, not %s" % (key, got, in_unit(f, value)))
    for (name, label), rows in phases.items():
        values = [value for _, value in rows]
        value = max(values) if rows[0][0]["kind"] == "PEAK" else min(sum(values), 2**64 - 1)
        got = series.pop((name, (("label", label),)), None)
        if not same(got, in_unit(rows[0][0], value)):
            complain("prometheus: %s of %r is %s, not %s" % (name, label, got, value))
    for key, of in (("draining_age_ns", "age_ns"), ("draining_bytes", "committed_bytes")):
        for p in document["phases"]:
            wanted = p[of] if p["state"] == "CLOSING" else 0
            if p[key] != wanted:
                complain("json: %s of era %d is %s, not %s" % (key, p["epoch_era"], p[key], wanted))
    computed = {PREFIX + n for n in ("build_info", "class_lock_acquisitions_total", "epoch_rss_bytes", "sampling_enabled")}
    for name, labels in series:
        if name not in computed:
            complain("prometheus: %s%r comes from no field" % (name, labels))
    for name in computed - {name for name, _ in series}:
        if document["classes"] and any(e["epoch_id"] < RING for e in document["epochs"]):
            complain("prometheus: there is no %s" % name)


def no_constant(name):
    raise ValueError(name + " is no JSON")


def main():
    fields = read_fields(sys.argv[1])
    with open(sys.argv[2], encoding="utf-8") as text:
        document = json.load(text, parse_constant=no_constant, object_pairs_hook=unique)
    check_json(fields, document)
    check_derived(document)
    check_prometheus(fields, document, read_prometheus(sys.argv[3]))
    for text in problems[:20]:
        print(text, file=sys.stderr)
    print("%s: %d fields, %d problems" % (sys.argv[2], len(fields), len(problems)))
    return 1 if problems else 0


def unique(pairs):
    if len({key for key, _ in pairs}) != len(pairs):
        complain("json: a key twice in one object: %r" % [key for key, _ in pairs])
    return dict(pairs)


if __name__ == "__main__":
    sys.exit(main())
