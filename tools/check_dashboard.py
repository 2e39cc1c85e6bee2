#!/usr/bin/env python3
"""Checks the Grafana dashboard and the alert rules against a live Prometheus that scrapes a live tslabd.

usage: check_dashboard.py --prometheus URL --metrics URL --dashboard FILE [--fleet FILE] [--alerts FILE] [--wait SECONDS]

Of the dashboard itself: every panel has a title, a question, a unit, and takes data source, job and instance from the
variables; panels do not overlap; links lead
somewhere, and ends of phases are marked. Of each query: Prometheus can read it, the metrics it names are on the page of tslabd, and
it returns numbers; for panels of shared mode tslabd has to run with TSLAB_OPTIONS=shared=1. Queries that need two scrapes are
tried again for --wait seconds. --fleet is the dashboard of all processes: its queries are of recorded sums, and return numbers, too.

Exit status: 0 all is well, 1 something is not, 2 wrong command line.
"""
import argparse
import json
import math
import re
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

# Panels that say something of shared mode only, by what has to be counted there: where it is not, they have been shown nothing.
SHARED_MODE = {
    "Allocations that waited for a bank": "temporal_slab_bitmap_alloc_attempts_total",
}
# What tslabd's own page does not have: of tslab serve.
ELSEWHERE = {"temporal_slab_exporter_up"}
VARIABLES = {"ds": "datasource", "job": "query", "instance": "query", "label": "query", "docs": "textbox", "web": "textbox"}
LEAST_PANELS = 18
METRIC = re.compile(r"\b(?:temporal_slab|tslabd)_\w+")
BY_LABEL = re.compile(r"temporal_slab_(?:label|phase|epoch)_\w+")
complaints = 0


def complain(*words):
    global complaints
    complaints += 1
    print("WRONG:", *words)


def fetch(url):
    with urllib.request.urlopen(url, timeout=30) as reply:
        return reply.read().decode()


# ---- the file ----------------------------------------------------------------------------


def has_unit(panel):
    config = panel["fieldConfig"]
    return "unit" in config["defaults"] or any(p["id"] == "unit" for o in config["overrides"] for p in o["properties"])


def check_links(board):
    for link in board["links"]:
        if not re.match(r"(http://\$\{instance\}|\$\{docs\}|\$\{web\})/", link["url"]) or not link["title"] or not link["tooltip"]:
            complain("a link leads nowhere:", link)
    closes = [a for a in board["annotations"]["list"] if "phases_ended_total" in a.get("expr", "")]
    if not board["links"] or not closes or not closes[0]["enable"]:
        complain("no links, or no marks where phases end")


def check_selectors(title, query):
    """Every query is of the chosen job and instance, and of the chosen labels if all it asks for has a label."""
    chosen = ["job", "instance"] + ["label"] * all(BY_LABEL.fullmatch(name) for name in METRIC.findall(query))
    for selector in re.findall(r"\b(?:temporal_slab|tslabd)_\w+(\{[^}]*\})?", query):
        for name in chosen:
            if '%s=~"$%s"' % (name, name) not in selector:
                complain(title, "ignores the", name + ":", query)


def check_file(board):
    panels = [p for p in board["panels"] if p["type"] != "row"]
    if len(panels) < LEAST_PANELS:
        complain("only", len(panels), "panels")
    for key, wanted in (("title", "temporal-slab: allocator observability"), ("refresh", "5s"), ("time", {"from": "now-5m", "to": "now"})):
        if board[key] != wanted:
            complain(key, "is", board[key])
    variables = {v["name"]: v["type"] for v in board["templating"]["list"]}
    if variables != VARIABLES:
        complain("variables", variables)
    check_links(board)
    for what in "id", "title":
        seen = [p[what] for p in board["panels"] if what == "id" or p["type"] != "row"]
        if len(set(seen)) != len(seen):
            complain("an %s comes twice" % what, sorted(seen, key=str))
    taken = {}
    for p in board["panels"]:
        g = p["gridPos"]
        if g["x"] < 0 or g["x"] + g["w"] > 24:
            complain(p["title"], "leaves the grid")
        for cell in ((x, y) for x in range(g["x"], g["x"] + g["w"]) for y in range(g["y"], g["y"] + g["h"])):
            if taken.setdefault(cell, p["title"]) != p["title"]:
                complain(p["title"], "covers", taken[cell])
    for p in panels:
        if "?" not in p.get("description", ""):
            complain(p["title"], "answers no question")
        if not has_unit(p):
            complain(p["title"], "has no unit")
        if not p["targets"]:
            complain(p["title"], "asks nothing")
        for t in p["targets"]:
            if p["datasource"]["uid"] != "${ds}" or t["datasource"]["uid"] != "${ds}":
                complain(p["title"], "has a data source of its own")
            check_selectors(p["title"], t["expr"])
            if "rate(" in t["expr"] and "[$__rate_interval]" not in t["expr"]:
                complain(p["title"], "has a rate of its own interval:", t["expr"])
            if not t.get("legendFormat"):
                complain(p["title"], "has no legend")
    return panels


# ---- live ----------------------------------------------------------------------------------


def names_of(page):
    """Every name that a query may have: of samples, as the page has them."""
    return set(re.findall(r"^([a-zA-Z_:]\w*)[ {]", page, re.M))


class Names(set):
    """What the page has had; a family appears with the first label that it is of."""

    def __init__(self, url):
        super().__init__(names_of(fetch(url)))
        self.url = url

    def lacks(self, query, until):
        """What a query names and the page does not have by then."""
        while True:
            unknown = [n for n in METRIC.findall(query) if n not in self]
            if not unknown or time.monotonic() >= until:
                return unknown
            time.sleep(0.3)
            self.update(names_of(fetch(self.url)))


def ask(prometheus, query):
    """(values, error): numbers that are none are left out."""
    try:
        reply = json.loads(fetch(prometheus + "/api/v1/query?" + urllib.parse.urlencode({"query": query})))
    except urllib.error.HTTPError as e:
        return [], json.loads(e.read() or b"{}").get("error", str(e))
    values = [float(row["value"][1]) for row in reply["data"]["result"]]
    return [v for v in values if not math.isnan(v)], None


def concrete(query):
    for variable, value in (("$__rate_interval", "15s"), ("$job", ".+"), ("$instance", ".+"), ("$label", ".*")):
        query = query.replace(variable, value)
    return query


def check_query(where, query, prometheus, names, until):
    unknown = names.lacks(query, until)
    if unknown:
        return complain(where, "names what tslabd does not have:", unknown)
    while True:
        values, error = ask(prometheus, query)
        if error:
            return complain(where, "cannot be read:", error)
        if values:
            return values
        if time.monotonic() >= until:
            return complain(where, "returns no number:", query)
        time.sleep(0.3)


def check_panels(panels, prometheus, names, wait):
    until, queries = time.monotonic() + wait, 0
    for p in panels:
        for t in p["targets"]:
            queries += 1
            check_query("panel '%s'" % p["title"], concrete(t["expr"]), prometheus, names, until)
        counted = SHARED_MODE.get(p["title"])
        if counted and not any(v > 0 for v in check_query("panel '%s'" % p["title"], counted, prometheus, names, until) or []):
            complain("panel '%s'" % p["title"], "has seen no shared mode:", counted, "is 0")
    for title in SHARED_MODE:
        if title not in [p["title"] for p in panels]:
            complain("there is no panel '%s' any more" % title)
    print("%d panels, %d queries" % (len(panels), queries))


def check_fleet(path, prometheus, wait):
    """The dashboard of all processes: panels like the other's, with queries of records, which Prometheus has to have."""
    board, until = json.load(open(path)), time.monotonic() + wait
    records = {r["name"] for g in json.loads(fetch(prometheus + "/api/v1/rules"))["data"]["groups"] for r in g["rules"] if r["type"] == "recording"}
    used = set()
    for p in board["panels"]:
        if "?" not in p.get("description", "") or not has_unit(p):
            complain(p["title"], "answers no question or has no unit")
        for t in p["targets"]:
            used |= set(re.findall(r"temporal_slab:[\w:]+", t["expr"]))
            if '{job=~"$job"}' not in t["expr"] or p["datasource"]["uid"] != "${ds}":
                complain(p["title"], "ignores the job or the data source:", t["expr"])
            while not ask(prometheus, concrete(t["expr"]))[0]:
                if time.monotonic() >= until:
                    complain("panel '%s'" % p["title"], "returns no number:", t["expr"])
                    break
                time.sleep(0.3)
    if used - records or not used:
        complain("the dashboard of all processes asks for what nobody records:", used - records)
    check_variables(board, prometheus)
    print("%d panels of all processes, %d records" % (len(board["panels"]), len(records)))


def check_marks(board, prometheus, names):
    """Marks may have nothing to mark just now, but their queries are sound."""
    for a in board["annotations"]["list"]:
        check_selectors("mark '%s'" % a["name"], a["expr"])
        unknown = [n for n in METRIC.findall(a["expr"]) if n not in names]
        _, error = ask(prometheus, concrete(a["expr"]))
        if error or unknown:
            complain("mark '%s'" % a["name"], "cannot be read:", error or unknown)


def check_variables(board, prometheus):
    for v in board["templating"]["list"]:
        if v["type"] == "query":
            inner = re.fullmatch(r"label_values\((.*), (\w+)\)", v["query"]["query"])
            url = prometheus + "/api/v1/label/%s/values?" % inner[2] + urllib.parse.urlencode({"match[]": concrete(inner[1])})
            if not json.loads(fetch(url))["data"]:
                complain("variable", v["name"], "has no value")


def check_alerts(path, prometheus, names, wait):
    text, until = open(path).read(), time.monotonic() + wait
    for name in METRIC.findall(text):
        if name not in names | ELSEWHERE:
            complain("an alert names what tslabd does not have:", name)
    wanted = set(re.findall(r"^ *- alert: (\w+)$", text, re.M))
    while True:
        groups = json.loads(fetch(prometheus + "/api/v1/rules"))["data"]["groups"]
        rules = {r["name"]: r for g in groups for r in g["rules"] if r["type"] == "alerting"}
        if set(rules) == wanted and all(r["health"] == "ok" for r in rules.values()):
            break
        if time.monotonic() >= until:
            return complain("Prometheus has other alerts, or they do not work:", {n: r["health"] for n, r in rules.items()})
        time.sleep(0.3)
    print("%d alerts evaluated; %s" % (len(rules), ", ".join("%s %s" % (n, r["state"]) for n, r in rules.items() if r["state"] != "inactive") or "none fires"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for flag in "--prometheus", "--metrics", "--dashboard":
        parser.add_argument(flag, required=True)
    parser.add_argument("--fleet")
    parser.add_argument("--alerts")
    parser.add_argument("--wait", type=float, default=30)
    args = parser.parse_args()
    prometheus = args.prometheus.rstrip("/")
    try:
        board = json.load(open(args.dashboard))
        names = Names(args.metrics)
        panels = check_file(board)
        until = time.monotonic() + args.wait
        while not ask(prometheus, "temporal_slab_build_info")[0] and time.monotonic() < until:
            time.sleep(0.2)
        check_panels(panels, prometheus, names, args.wait)
        check_marks(board, prometheus, names)
        check_variables(board, prometheus)
        if args.fleet:
            check_fleet(args.fleet, prometheus, args.wait)
        if args.alerts:
            check_alerts(args.alerts, prometheus, names, args.wait)
    except (OSError, ValueError, KeyError) as e:
        complain("%s: %s" % (type(e).__name__, e))
    print("%d wrong" % complaints)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
