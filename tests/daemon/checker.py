"""check_dashboard.py finds each fault that is put into the dashboard, and says which."""
import contextlib
import copy
import importlib.util
import io
import json
import os
import sys

from kit import SOURCE, check, finish

spec = importlib.util.spec_from_file_location("checker", os.path.join(SOURCE, "tools", "check_dashboard.py"))
checker = importlib.util.module_from_spec(spec)
spec.loader.exec_module(checker)
board = json.load(open(os.path.join(SOURCE, "share", "grafana", "temporal-slab.json")))


def complaints(change):
    changed = copy.deepcopy(board)
    change(changed)
    said = io.StringIO()
    checker.complaints = 0
    with contextlib.redirect_stdout(said):
        checker.check_file(changed)
    return said.getvalue()


def panel(b):
    return next(p for p in b["panels"] if p["type"] != "row")


check(complaints(lambda b: None) == "", complaints(lambda b: None))
for said, change in (
    ("panels", lambda b: b.update(panels=b["panels"][:3])),
    ("refresh", lambda b: b.update(refresh="1h")),
    ("variables", lambda b: b["templating"]["list"].pop()),
    ("comes twice", lambda b: panel(b).update(id=b["panels"][5]["id"])),
    ("comes twice", lambda b: panel(b).update(title=b["panels"][5]["title"])),
    ("leaves the grid", lambda b: panel(b)["gridPos"].update(x=20)),
    ("covers", lambda b: panel(b)["gridPos"].update(y=12)),
    ("no question", lambda b: panel(b).update(description="This is shown.")),
    ("no unit", lambda b: panel(b)["fieldConfig"]["defaults"].pop("unit")),
    ("asks nothing", lambda b: panel(b).update(targets=[])),
    ("data source of its own", lambda b: panel(b)["targets"][0]["datasource"].update(uid="x")),
    ("ignores the job", lambda b: panel(b)["targets"][0].update(expr="temporal_slab_rss_bytes")),
    ("interval", lambda b: panel(b)["targets"][0].update(expr='rate(temporal_slab_x{job=~"$job",instance=~"$instance"}[1m])')),
    ("ignores the label", lambda b: panel(b)["targets"][0].update(expr='temporal_slab_label_live_bytes{job=~"$job",instance=~"$instance"}')),
    ("leads nowhere", lambda b: b["links"][0].update(url="/somewhere")),
    ("no links", lambda b: b.update(links=[])),
    ("no marks", lambda b: b["annotations"].update(list=[])),
    ("no legend", lambda b: panel(b)["targets"][0].update(legendFormat="")),
):
    check(said in complaints(change), said, complaints(change))

answers = {"up": ([1.0], None), "temporal_slab_gone": ([], None), "bad(": ([], "parse error")}
checker.ask = lambda prometheus, query: answers[query]
pages = ["", "temporal_slab_late 1\n"]  # a family that comes with the second reading
checker.fetch = lambda url: pages.pop(0)
late = checker.Names("")
check(late.lacks("temporal_slab_late", checker.time.monotonic() + 9) == [], "a name that comes later is missed")


def named(names):
    page = checker.Names.__new__(checker.Names)
    page.update(names)
    return page


for query, names, said in (("up", set(), ""), ("temporal_slab_gone", {"temporal_slab_gone"}, "no number"),
                           ("temporal_slab_gone", {"temporal_slab_gone_total"}, "does not have"), ("bad(", set(), "cannot be read")):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        checker.check_query("x", query, "", named(names), 0)
    check(said in out.getvalue() and bool(said) == bool(out.getvalue()), query, out.getvalue())
finish()
