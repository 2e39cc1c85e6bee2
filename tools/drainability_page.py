#!/usr/bin/env python3
"""Writes docs/results/tables/drainability.md from what `tslab_drainability --json` wrote, and compares.

    drainability_page.py FULL.json                   writes docs/results/drainability.json and the page of the tables
    drainability_page.py                             writes that page again from the published results
    drainability_page.py --check                     pages and published results agree: tables, and numbers in sentences
    drainability_page.py --check --against RUN.json  and so does each count of another run, however short, with this seed

docs/results/drainability.md is written by hand; `sentences` below has each number of it as the results have it, and a page
without it is refused. The published results are those of the program with fewer points of the course, as rows. Resident sizes
are the kernel's and are not compared with another run; everything else is a count.

Exit status: 0; 1 something differs or cannot be read; 2 for wrong arguments.
"""

import argparse
import json
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = os.path.join(ROOT, "docs", "results", "drainability.md")
TABLES_PAGE = os.path.join(ROOT, "docs", "results", "tables", "drainability.md")
PUBLISHED = os.path.join(ROOT, "docs", "results", "drainability.json")
OTHERS = {"docs/choosing.md": "needed %(least).1f to %(most).1f times as much memory. In the worst-case load, they needed %(beyond_glibc).0f times as much memory as with glibc",
          "docs/coming-from/papers.md": "mixing lifetimes takes %(least).1f to %(most).1f times as much memory as separating them, "
                                        "and %(worst).1f times as much in a load constructed as the worst case"}
COURSE = ("requests", "rss_bytes", "slabs", "committed_bytes", "live_bytes", "closed_slabs", "closed_bytes", "fresh_slabs",
          "reused_slabs", "close_slabs", "closes", "drainable")
LENGTHS = (5000, 10000, 20000, 50000, 100000, 200000)
OF_ARM = ("closes", "drainable", "escaped_objects", "counted_closes", "end_slabs", "left_slabs", "dsr", "theory_dsr", "slab_dsr",
          "theory_slab_dsr", "label_drainability", "label_closed_slabs", "label_pinned_slabs", "defects")
ONE_DECISION, ONE_A_REQUEST, POOL = range(3)


# ---- results ----


def read(path):
    """Results with courses as lists of dictionaries, whichever way they are written."""
    with open(path, encoding="utf-8") as text:
        results = json.load(text)
    for arm in results["routing"] + results["lifetimes"]:
        if "course_rows" in arm:
            arm["course"] = [dict(zip(results["course_columns"], row)) for row in arm.pop("course_rows")]
    return results


def write_small(results, path):
    small = {k: v for k, v in results.items() if k not in ("first_defect", "options")}
    small["command"] = "tslab_drainability"
    small["course_columns"] = COURSE
    for section in "routing", "lifetimes":
        small[section] = []
        for arm in results[section]:
            rows = [[s[c] for c in COURSE] for s in arm["course"] if s["requests"] % 10000 == 0 or s["requests"] == LENGTHS[0]]
            small[section].append({**{k: v for k, v in arm.items() if k != "course"}, "course_rows": rows})
    lists = [k for k in small if isinstance(small[k], list) and small[k] and isinstance(small[k][0], dict)]
    lines = ["  %s: %s" % (json.dumps(k), json.dumps(v)) for k, v in small.items() if k not in lists]
    lines += ["  %s: [\n    %s\n  ]" % (json.dumps(k), ",\n    ".join(map(json.dumps, small[k]))) for k in lists]
    with open(path, "w", encoding="utf-8") as to:
        to.write("{\n%s\n}\n" % ",\n".join(lines))


def at(arm, requests):
    return next(s for s in arm["course"] if s["requests"] == requests)


def last(arm):
    return arm["course"][-1]


def arms_of(results, replaced):
    return [arm for arm in results["lifetimes"] if arm["replaced_per_request"] == replaced]


def life(results, arm):
    return round(results["pool"] / arm["replaced_per_request"])


def kib(number):
    return number // 1024


def rate(sample):
    """Recycled / (new + recycled) slabs, in per cent."""
    return 100 * sample["reused_slabs"] / (sample["reused_slabs"] + sample["fresh_slabs"])


# ---- as text ----


def big(number):
    return "{:,}".format(number)


def share(value, digits=3):
    """0 and 1 only for what is exactly that."""
    if value in (0, 1):
        return "%d" % value
    for d in range(digits, 6):
        text = "%.*f" % (d, value)
        if float(text) != 1 and (float(text) != 0 or d == 5):
            return text
    return text


def theory(value):
    """A chance too small or too large to be seen is 0 or 1."""
    if value < 0.0005 or value > 0.99995:
        return "%d" % round(value)
    return "%.4f" % value if value > 0.9995 else "%.3f" % value


def times(value):
    return "%.1f" % value if value >= 10 else "%.2f" % value


def table(head, rows):
    return ["| %s |" % " | ".join(head), "|%s" % ("---|" * len(head)), *("| %s |" % " | ".join(map(str, row)) for row in rows)]


def per_close(arm, key):
    return "%.2f" % (arm[key] / arm["counted_closes"])


def routing(r):
    mixed, isolated, glibc = r["routing"]
    pair, ends = (mixed, isolated), (5000, 20000, 200000)

    def row(name, get, third=""):
        return [name, *(get(arm) for arm in pair), third]

    def course(arm, key):
        return ", ".join(str(kib(at(arm, n)[key]) if "bytes" in key else at(arm, n)[key]) for n in ends)

    live = {kib(last(arm)["live_bytes"]) for arm in pair}
    return table(["", "mixed", "isolated", "glibc"], [
        row("closes that were drainable", lambda a: "%d of %d" % (a["drainable"], a["closes"])),
        row("DSR, measured and theory", lambda a: "%s, %s" % (share(a["dsr"]), theory(a["theory_dsr"]))),
        row("slabs of an epoch as it ends", lambda a: per_close(a, "end_slabs")),
        row("of these left after its close", lambda a: share(a["left_slabs"] / a["counted_closes"])),
        row("slabs held after 5,000, 20,000, 200,000 requests", lambda a: course(a, "slabs")),
        row("held by closed epochs", lambda a: last(a)["closed_slabs"]),
        row("committed after 200,000 requests, KiB (%s of them live)" % ", ".join(map(str, live)), lambda a: kib(last(a)["committed_bytes"])),
        row("resident after 5,000, 20,000, 200,000 requests, KiB", lambda a: course(a, "rss_bytes"), course(glibc, "rss_bytes")),
        row("slabs taken with fresh pages so far", lambda a: last(a)["fresh_slabs"]),
        row("label", lambda a: share(a["label_drainability"]))])


def lifetimes(r):
    rows = []
    for mixed, isolated, _ in zip(*[iter(r["lifetimes"])] * 3):
        m, i = last(mixed), last(isolated)
        rows.append([big(life(r, mixed)) + (", one an epoch" if mixed["requests_per_epoch"] == 10 else ""),
                     share(mixed["dsr"]), theory(mixed["theory_dsr"]), share(mixed["slab_dsr"]), theory(mixed["theory_slab_dsr"]),
                     m["closed_slabs"], m["slabs"], i["slabs"], kib(m["committed_bytes"]), times(m["committed_bytes"] / i["committed_bytes"]),
                     kib(m["rss_bytes"]), times(m["rss_bytes"] / i["rss_bytes"])])
    return table(["mean life, requests", "DSR", "theory", "slab DSR", "theory", "held by closed epochs, slabs", "held in all", "isolated",
                  "committed, KiB", "to isolated", "resident, KiB", "to isolated"], rows)


def sweep(r):
    n = len(r["published_dsr"])
    kinds = [r["sweep"][k * n:(k + 1) * n] for k in range(3)]
    rows = []
    for k in range(n):
        one, request, pool = (kind[k] for kind in kinds)
        rows.append(["%g" % one["p"], "%g" % r["published_dsr"][k], "%g" % one["dsr"], "%g" % (1 - one["p"]), "%g" % request["dsr"],
                     theory(request["theory_dsr"]), share(pool["dsr"]), theory(pool["theory_dsr"]), share(pool["slab_dsr"]),
                     theory(pool["theory_slab_dsr"]), per_close(pool, "left_slabs") if pool["left_slabs"] else 0])
    return table(["p", "published", "one an epoch: DSR", "1 - p", "one a request: DSR", "(1 - p)<sup>50</sup>", "pool: DSR", "theory",
                  "pool: slab DSR", "theory", "slabs left per close"], rows)


def granules(r):
    n = len(r["published_dsr"])
    shown, rows = range(1, n - 1), []
    for g in (r["granules"][k:k + n] for k in range(0, len(r["granules"]), n)):
        size = g[0]["object_bytes"]
        cells = [c for k in shown for c in (share(g[k]["slab_dsr"]), "(%s)" % theory(g[k]["theory_slab_dsr"]))]
        rows.append([g[0]["objects_per_slab"], "%d KiB" % kib(size) if size >= 1024 else "%d B" % size, *cells])
    return table(["objects a slab", "object"] + [c for k in shown for c in ("p = %g" % r["granules"][k]["p"], "")], rows)


def lengths(r):
    mixed, isolated, _ = r["routing"]
    rows = []
    for n in LENGTHS:
        m, i = at(mixed, n), at(isolated, n)
        rows.append([big(n), "%.1f" % rate(m), share(rate(i), 1), m["fresh_slabs"], i["fresh_slabs"], "%.2f" % (m["fresh_slabs"] / i["fresh_slabs"]),
                     times(m["fresh_slabs"] / at(isolated, 20000)["fresh_slabs"]), m["slabs"], i["slabs"], "%.2f" % (m["slabs"] / i["slabs"])])
    return table(["requests", "rate mixed, %", "rate isolated, %", "fresh slabs mixed", "isolated", "ratio", "mixed so far / isolated after 20,000",
                  "held mixed", "isolated", "**ratio**"], rows)


TABLES = {"routing": routing, "lifetimes": lifetimes, "sweep": sweep, "granules": granules, "lengths": lengths}


def effect(r):
    """Committed memory, mixed to isolated, where sessions live longer: least, most, the worst load; there resident, mixed to glibc."""
    ratios = [last(a)["committed_bytes"] / last(b)["committed_bytes"] for a, b, _ in zip(*[iter(r["lifetimes"])] * 3)]
    longer = [x for x in ratios[:-1] if x > 1]
    return min(longer), max(longer), ratios[-1], last(r["lifetimes"][-3])["rss_bytes"] / last(r["lifetimes"][-1])["rss_bytes"]


def sentences(r):
    """Numbers that stand in sentences of the page."""
    mixed, isolated, _ = r["routing"]
    m, i = last(mixed), last(isolated)
    least, most, worst, beyond_glibc = effect(r)
    bad = r["lifetimes"][-3]
    n = len(r["published_dsr"])
    request, pool = r["sweep"][n + 1], r["sweep"][2 * n + 1]
    return [
        "%d of %d, in every load" % (isolated["drainable"], isolated["closes"]),
        "about the same number of slabs in use (mixed %d, isolated %d)" % (m["slabs"], i["slabs"]),
        "mixed allocation took %d slabs with fresh pages, and isolated allocation took %d" % (m["fresh_slabs"], i["fresh_slabs"]),
        "held %.1f to %.1f times the committed memory" % (least, most),
        "and %.1f times in the worst case" % worst,
        "one slab for each live object (here %d)" % r["pool"],
        "In the worst load, mixed allocation keeps %.0f times as much memory resident" % beyond_glibc,
        "Live objects therefore remained at %d of %d closes (theory: %.0f %%)" % (request["closes"] - request["drainable"], request["closes"], 100 * (1 - request["theory_dsr"])),
        "kept only %.0f %% of an epoch's slabs in use" % (100 * (1 - pool["slab_dsr"])),
        "keeps %d slabs (mixed) and %d slabs (isolated) in use" % (m["slabs"], i["slabs"]),
        "closed epochs keep %d slabs in use" % last(bad)["closed_slabs"],
    ]


# ---- the pages ----

INTRODUCTION = """# Drainability: tables and method

For readers of [drainability](../drainability.md) who want the numbers and how they came about. This page is written by
`tools/drainability_page.py` from [drainability.json](../drainability.json); `tests/bench/drainability_page.sh` compares
it with that file, and the file with a short run.

## Method

A request allocates 200 objects of 96 to 480 bytes, touches them, and frees them before it ends. Beside the requests
there is a pool of 4000 sessions of 256 bytes; each request replaces random ones. An epoch takes 1000 requests. It is
closed (`epoch_close_era`, drain) 4 epochs after its end, its *boundary*. All arms serve 200,000 requests with the same
random choices: 200 epochs, of which 196 reach their boundary. glibc serves the same load without epochs.

| figure | from |
|---|---|
| drainable close | `EpochReceipt.objects_escaped` is 0 |
| DSR | drainable closes / closes |
| slab DSR | 1 - slabs of the epoch after its close / slabs when it ended, `SlabPhaseStats.slabs` |
| held by closed epochs | the same, summed over every epoch that has been closed |
| held, committed, live | `SlabGlobalStats` |
| resident | `slab_rss_bytes`, above the start of the arm, touched code pages included |
| label | `SlabLabelStats.drainability` of the label that all epochs of requests carry |

The program exits with 1 if a close leaves more slabs than objects live in the epoch, if a slab without a session stays,
if closed epochs hold more slabs than there are sessions, if a receipt does not balance, or if a free is refused.
Theory is that of [theory.c](../../../bench/drainability/theory.c): sessions die independently of each other, and a
survivor lies in any slab of its class with the same probability. The model ignores that sessions opened together lie
together. A DSR out of a hundred closes has a standard error of up to 0.05.

Limits: one thread, one class of sessions, uniformly random replacement, synthetic sizes. Resident sizes moved by up to
2 % between runs.

    make drainability                                   # all of it, or build/bench/tslab_drainability afterwards
    build/bench/tslab_drainability --only routing       # or lifetimes, sweep, granules; --seed N for other draws
    build/bench/tslab_drainability --json d.json --csv d.csv
    tools/drainability_page.py d.json                   # writes docs/results/drainability.json and this page
    tools/plot_drainability.py docs/results/drainability.json docs/results/drainability.png
"""
SECTIONS = (
    ("routing", "The published load", "80 of 4000 sessions (2 %) are replaced per request: `--only routing`. A session lives for 50 requests on average and its epoch "
     "is closed after at least 4000 more, so nothing is pinned at the boundary, however sessions are routed. Mixed commits less, because objects that are replaced at "
     "random leave holes in the regions of the isolated domain; with `TSLAB_OPTIONS=bump=2`, which has no regions, isolated commits less."),
    ("lifetimes", "Sessions that live longer", "The same load with fewer replacements: `--only lifetimes`. The last row is the worst that routing can do: one session "
     "in each epoch of 10 requests, so that every live session pins a slab of its own. Of N sessions with mean life L about N e<sup>-lag/L</sup> live at the boundary: "
     "fewer than one takes a lag of L ln N. In the row of lives of 200,000 requests the pool was replaced once."),
    ("sweep", "A share p of the sessions routed wrongly", "100 epochs of 50 requests: `--only sweep`. *One session an epoch* and *one a request* live to the end and are "
     "closed at once; *pool* is the load above, closed 4 epochs later. The published row is that of one decision an epoch, drawn with `rand()` after `srand(42)` in glibc."),
    ("granules", "Objects in a slab", "A slab of k objects, each of which stays with probability p, goes back with probability (1 - p)<sup>k</sup>, in brackets: "
     "`--only granules`, 5000 slabs for each p."),
    ("lengths", "Arms of equal length", "The load of the first table after fewer requests. The rate is slabs taken again / slabs taken, in per cent. Closes return "
     "their slabs to the system here, so isolated never takes one again and its rate is 0; what is held does not depend on the length. The column of mixed so far "
     "against isolated after 20,000 shows what arms of different length do: it grows without end."),
)


def tables_text(results):
    lines = [INTRODUCTION]
    for name, title, text in SECTIONS:
        lines += ["## " + title, "", text, "", *TABLES[name](results), ""]
    return "\n".join(lines).rstrip() + "\n"


def page_faults(text, tables, results):
    faults = []
    made = tables_text(results)
    if made != tables:
        there = tables.splitlines()
        lines = [a for a in made.splitlines() if a not in there]
        faults.append("tables differ; of the results, not on the page: " + (lines[0] if lines else "order"))
    words = " ".join(text.split())
    faults += ["a sentence lacks: " + s for s in sentences(results) if s not in words]
    commit = (results["commit"] or "").split()
    if not commit or commit[0] not in words:
        faults.append("the page does not name the commit of the results")
    for page, sentence in OTHERS.items():
        with open(os.path.join(ROOT, page), encoding="utf-8") as other:
            wanted = sentence % dict(zip(("least", "most", "worst", "beyond_glibc"), effect(results)))
            faults += [] if wanted in " ".join(other.read().split()) else ["%s lacks: %s" % (page, wanted)]
    return faults


def same(name, published, run, keys, faults):
    found = ["%s %s: %s published, %s in the run" % (name, k, published.get(k), run[k]) for k in keys if k in run and run[k] != published.get(k)]
    faults += found
    return len([k for k in keys if k in run])


def compare(published, run):
    """Every count that both have. (faults, how many were compared)"""
    faults, n = [], 0
    if (run["seed"], run["pool"]) != (published["seed"], published["pool"]):
        return ["the run has another seed or pool"], 0
    whole = run["requests"] == published["requests"]
    for section in "routing", "lifetimes":
        known = {(a["name"], a["replaced_per_request"], a["requests_per_epoch"]): a for a in published[section]}
        for arm in run[section]:
            key = (arm["name"], arm["replaced_per_request"], arm["requests_per_epoch"])
            courses = {s["requests"]: s for s in known[key]["course"]}
            for sample in arm["course"]:
                if sample["requests"] in courses and arm["name"] != "glibc":
                    n += same("%s %s after %d" % (section, key, sample["requests"]), courses[sample["requests"]], sample,
                              [c for c in COURSE if c != "rss_bytes"], faults)
            n += same("%s %s" % (section, key), known[key], arm, OF_ARM, faults) if whole else 0
    for a, b in zip(published["sweep"], run["sweep"]):
        n += same("sweep %s, p %g" % (a["name"], a["p"]), a, b, OF_ARM, faults)
    for a, b in zip(published["granules"], run["granules"]):
        if a["slabs"] == b["slabs"]:
            n += same("granules of %d, p %g" % (a["objects_per_slab"], a["p"]), a, b, [k for k in a if k != "defects"], faults)
    return faults, n


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    p.add_argument("results", nargs="?", metavar="FULL.json", help="of a whole run, to be published")
    p.add_argument("--check", action="store_true", help="write nothing, compare")
    p.add_argument("--against", metavar="RUN.json", action="append", default=[], help="of another run; may be repeated")
    p.add_argument("--page", default=PAGE)
    p.add_argument("--tables", default=TABLES_PAGE)
    p.add_argument("--published", default=PUBLISHED, metavar="FILE.json")
    o = p.parse_args()
    if o.check and o.results:
        p.error("--check compares what is published; it takes no FULL.json")
    if o.against and not o.check:
        p.error("--against needs --check")
    try:
        if o.results:
            full = read(o.results)
            if not full["complete"] or full["requests"] != LENGTHS[-1] or full["defects"] or len(full["lifetimes"]) != 24:
                raise ValueError("%s is no whole run without defects" % o.results)
            write_small(full, o.published)
        published = read(o.published)
        if not o.check:
            with open(o.tables, "w", encoding="utf-8") as to:
                to.write(tables_text(published))
        with open(o.page, encoding="utf-8") as text, open(o.tables, encoding="utf-8") as tables:
            faults = page_faults(text.read(), tables.read(), published)
        for path in o.against:
            found, n = compare(published, read(path))
            faults += found if found or n else ["%s: nothing to compare" % path]
            print("%s: %d counts compared" % (os.path.basename(path), n))
    except (OSError, ValueError, KeyError, StopIteration, IndexError) as error:
        print("drainability_page.py: %s: %s" % (type(error).__name__, error), file=sys.stderr)
        return 1
    for fault in faults[:20]:
        print("drainability_page.py: " + fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
