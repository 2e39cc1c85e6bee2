"""tslabd and the segments of other processes: it shows what they have published, whether they run, are stopped or are being
killed; says with the right status what it cannot show; and a segment that lies neither ends nor delays it."""
import contextlib
import json
import os
import re
import signal
import subprocess
import sys

from kit import SOURCE, TSLABD, Daemon, check, finish, series, wait_until

JSON, TEXT = "application/json; charset=utf-8", "text/plain; charset=utf-8"


class Process:
    """A program that runs until its block ends."""

    def __init__(self, *arguments, **how):
        self.p = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **how)
        self.pid = self.p.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.p.kill()
        self.p.communicate()


def shown(pattern="burst"):
    """Another tslabd, which has a segment."""
    p = Process(TSLABD, "--listen=127.0.0.1:0", "--pattern=" + pattern, env=dict(os.environ, TSLAB_OPTIONS="segment=1"))
    p.p.stdout.readline()
    return p


def path(p, what="stats.json"):
    return "/processes/%d/%s" % (p.pid, what)


def refused(d, where, code, words, kind=None):
    """The same status for both documents, JSON for the one and a line for the other."""
    for what in "stats.json", "metrics":
        url = where % what
        got = d.ask(url)
        check(got.code == code and words in got.body, url, got)
        is_json = what == "stats.json"
        check(got.headers.get("content-type") == (JSON if is_json else TEXT), url, got)
        if is_json:
            check(words in json.loads(got.body)["error"], url, got.body)
        check(("retry-after" in got.headers) == (code == 503), url, got)


def parent(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
            return int(f.read().rsplit(")", 1)[1].split()[1])
    except (OSError, IndexError):
        return 0


def the_list(d):
    got = d.ask("/processes")
    check(got.code == 200 and got.headers["content-type"] == JSON, got)
    return json.loads(got.body)


def listed(d):
    return {row["pid"]: row for row in the_list(d)["processes"]}


def in_the_list(d, p, right):
    """A list ends after half a second, which a slow machine may need for less than all: another one is made then."""
    found = lambda: right(listed(d).get(p.pid, {"allocators": []}))
    check(wait_until(found), "not listed, or not so:", the_list(d))


def nothing_left_out(d):
    """Other programs on this machine may show what they like, so that a list with theirs says nothing."""
    body = the_list(d)
    return body["left_out"] == 0 or any(parent(row["pid"]) != os.getpid() for row in body["processes"])


def honest(state):
    """A row that says so of the process, and how old its figures are."""
    def right(row):
        age = row.get("age_ns")
        return age is not None and age >= 0 and row["command"] == "tslabd" and row["allocators"] == [
            {"allocator": 0, "state": state, "age_ns": age, "changed_since": row["allocators"][0]["changed_since"]}]
    return right


def health(d, p, query=""):
    got = d.ask(path(p, "healthz") + query)
    check(got.headers["content-type"] == TEXT and ("retry-after" in got.headers) == (got.code == 503), got)
    return got.code, got.body


def alive(d, p):
    in_the_list(d, p, honest("running"))
    code, said = health(d, p)
    check(code == 200 and re.fullmatch(r"ok, running, figures of \d+\.\d s ago\n", said), code, said)
    with Daemon("--stale_after_s=0.01") as hurried:  # publications are ten times as far apart
        stale = lambda: re.fullmatch(r"the numbers stand still, running, figures of \d+\.\d s ago\.\n", health(hurried, p)[1])
        check(wait_until(stale), "stale figures are healthy", health(hurried, p))
    check(wait_until(lambda: nothing_left_out(d)), "every list leaves some out")
    check(os.getpid() not in listed(d) and d.process.pid not in listed(d), "processes without a segment")
    check(wait_until(lambda: d.ask("/processes").body == d.ask("/processes").body), "the list is made anew each time")
    objects = lambda: json.loads(d.ask(path(p)).body)["total_slow_path_hits"]
    first = objects()
    check(wait_until(lambda: objects() > first), "the figures stand still")


def lasting(document):
    """Without how old it is, which no two answers agree about."""
    return {key: value for key, value in document.items() if key not in ("figures_age_ns", "phases_age_ns", "changed_since")}


def is_stopped(pid):
    """True when all its threads are."""
    states = []
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/stat") as stat:
            states.append(stat.read().rpartition(")")[2].split()[0])
    return all(state in "Tt" for state in states)


def stopped(d, p):
    """A process that does not run is read like any other, and says the same to every reader."""
    os.kill(p.pid, signal.SIGSTOP)
    check(wait_until(lambda: is_stopped(p.pid)), "it does not stop")  # on a busy machine some time after the signal
    got = d.ask(path(p))
    document = json.loads(got.body)
    check(got.code == 200 and got.headers["content-type"] == JSON and document["pid"] == p.pid, got)
    check(document["process_state"] == "stopped" and document["publication"] > 0, document["process_state"], document["publication"])
    again = [lasting(json.loads(d.ask(path(p) + query).body)) for query in ("", "?allocator=0")]
    check(again == [lasting(document)] * 2, "a stopped process changes")
    check(json.loads(d.ask(path(p)).body)["figures_age_ns"] > document["figures_age_ns"], "figures that do not age")
    dump = os.path.join(os.path.dirname(TSLABD), "stats_dump")
    if os.path.exists(dump):
        said = subprocess.run([dump, "--no-text", "--pid", str(p.pid)], capture_output=True, text=True, timeout=300)
        check(lasting(json.loads(said.stdout)) == lasting(document), "stats_dump reads other figures", said.stderr)
    else:
        print("not compared with stats_dump, which was not built")
    page = d.ask(path(p, "metrics"))
    check(page.code == 200 and page.headers["content-type"].startswith("text/plain; version=0.0.4"), page)
    found = series(page.body)
    check(found["temporal_slab_live_bytes"] == document["live_bytes"], "live bytes")
    check(not [name for name in found if not name.startswith("temporal_slab_")], "metrics of the server among them")
    promtool = subprocess.run(["promtool", "check", "metrics"], input=page.body, text=True, capture_output=True)
    check(promtool.returncode == 0, "promtool:", promtool.stderr)
    page = d.ask(path(p, "metrics"), headers=["Accept: application/openmetrics-text"])
    check(page.headers["content-type"].startswith("application/openmetrics") and page.body.endswith("# EOF\n"), page)
    in_the_list(d, p, honest("stopped"))
    code, said = health(d, p)
    check(code == 503 and said.startswith("the numbers stand still, stopped, figures of "), code, said)
    with Daemon("--stale_after_s=0") as patient:
        check(health(patient, p)[0] == 503, "a stopped process is healthy")
    refused(d, "/processes/%d/%%s?allocator=1" % p.pid, 404, "no such allocator")
    refused(d, "/processes/%d/%%s?allocator=99999" % p.pid, 404, "no such allocator")
    for value in "", "x", "-1", "1x", "123456":
        refused(d, "/processes/%d/%%s?allocator=%s" % (p.pid, value), 400, "takes a number")


def killed(d, p):
    """Somebody reads it while it ends."""
    os.kill(p.pid, signal.SIGCONT)
    codes = []
    for n in range(40):
        if n == 10:
            os.kill(p.pid, signal.SIGKILL)
        codes.append(d.ask(path(p, ("stats.json", "metrics")[n % 2])).code)
    check(set(codes[:10]) == {200} and set(codes) <= {200, 404}, codes)
    check(wait_until(lambda: d.ask(path(p)).code == 404), "answers for a dead process")
    refused(d, "/processes/%d/%%s" % p.pid, 404, "no process" if d.ask(path(p)).body.count("no process") else "no such")
    check(health(d, p)[0] == 404, "a dead process", health(d, p))
    check(wait_until(lambda: p.pid not in listed(d)), "a dead process in the list")


def strangers(d):
    refused(d, "/processes/%d/%%s" % os.getpid(), 404, "shows no statistics")
    refused(d, "/processes/999999999/%s", 404, "no such process")
    for bad in ("/processes/", "/processes/1", "/processes/1/", "/processes//stats.json", "/processes/01/metrics",
                "/processes/0/metrics", "/processes/-1/metrics", "/processes/self/stats.json", "/processes/1x/metrics",
                "/processes/1/../metrics", "/processes/12345678901/metrics", "/processes/1/stats.json/", "/processes/1/maps"):
        got = d.ask(bad)
        check(got.code == 404 and "There are /" in got.body, bad, got)
    check(d.ask("/processes", method="POST").code == 405, "POST")
    check(d.ask("/processes", host="evil.example").code == 403, "another host")
    if os.geteuid() == 0:
        with Process("sleep", "600", user=65534) as other:
            refused(d, "/processes/%d/%%s" % other.pid, 403, "another user's")
    elif os.stat("/proc/1").st_uid != os.geteuid():
        refused(d, "/processes/1/%s", 403, "another user's")
    else:
        print("not tried with another user's process: there is none")


LIARS = (
    ("honest", 200, None), ("second", 200, None), ("ended", 200, None), ("two", 200, None), ("future", 200, None), ("garbage", 502, "damaged"),
    ("version", 502, "another kind"), ("huge", 502, "larger than any"), ("rows", 502, "more rows"),
    ("inconsistent", 503, "inconsistent"), ("unpublished", 503, "has published"),
)
ROWS = {
    "garbage": lambda row: "damaged" in row.get("error", ""),
    "future": lambda row: [a["state"] for a in row["allocators"]] == ["running"] and row["age_ns"] is None,
    "second": lambda row: [a["state"] for a in row["allocators"]] == ["inconsistent", "running"],
    "ended": lambda row: [a["state"] for a in row["allocators"]] == ["ended", "running"],
    "inconsistent": lambda row: [a["age_ns"] for a in row["allocators"]] == [None],
}


def two(d, p):
    """Of two allocators that live the document has their sums, the rows of both, and the document of each."""
    whole, *each = [json.loads(d.ask(path(p) + query).body) for query in ("", "?allocator=0", "?allocator=1")]
    parts = whole["by_allocator"]
    check([part["allocator"] for part in parts] == [0, 1] and parts[1]["live_bytes"] == 12345 != parts[0]["live_bytes"], parts)
    for key in "live_bytes", "live_objects", "objects_allocated", "metadata_bytes", "reserved_bytes", "open_phases":
        check(whole[key] == sum(part[key] for part in parts), key, whole[key], [part[key] for part in parts])
    for key in "rss_bytes_current", "allocators", "page_size", "pid", "schema_version", "limit_bytes", "limit_name":
        check(whole[key] == parts[0][key], key, whole[key], parts[0][key])
    samples = whole["slowpath_sampling"]["samples"]
    check(samples == sum(part["slowpath_sampling"]["samples"] for part in parts), "samples", samples)
    for part, alone in zip(parts, each):
        check("by_allocator" not in part and "by_allocator" not in alone, "a document inside of a part")
        for name in "classes", "labels", "phases", "epochs", "closes":
            rows = [row for row in whole[name] if row["allocator"] == part["allocator"]]
            check(rows == part[name], name, rows, part[name])
            plain = [{key: value for key, value in row.items() if key != "allocator"} for row in rows]
            check(plain == alone[name], name, plain, alone[name])
    check(whole["label_registry"]["labels"] == 2 * parts[0]["label_registry"]["labels"], whole["label_registry"])
    check(d.ask(path(p) + "?allocator=2").code == 404, "a third allocator")


def liars(d, segment):
    with contextlib.ExitStack() as all_:
        forged = {kind: all_.enter_context(Process(sys.executable, SOURCE + "/tests/daemon/forge.py", kind, segment))
                  for kind, _, _ in LIARS}
        for kind, code, words in LIARS:
            p = forged[kind]
            check(p.p.stdout.readline() == "ready\n", kind, "did not begin")
            if code == 200:
                check(d.ask(path(p)).code == 200 and d.ask(path(p, "metrics")).code == 200, kind, d.ask(path(p)))
            else:
                refused(d, "/processes/%d/%%s" % p.pid, code, words)
            check(d.ask("/healthz").code == 200, kind, "no answer any more")
        p = forged["second"]
        refused(d, "/processes/%d/%%s?allocator=0" % p.pid, 503, "inconsistent")
        check(d.ask(path(p) + "?allocator=1").code == 200, "the second allocator")
        p = forged["ended"]
        live = [json.loads(d.ask(path(p) + which).body)["live_bytes"] for which in ("", "?allocator=1", "?allocator=0")]
        check(live[0] == live[1] == 12345 != live[2], "not the living allocator's", live)
        check(health(d, p, "?allocator=0")[1].startswith("the numbers stand still, ended, "), health(d, p, "?allocator=0"))
        two(d, forged["two"])
        for kind, code in ("garbage", 502), ("inconsistent", 503), ("unpublished", 503):
            check(health(d, forged[kind])[0] == code, kind, health(d, forged[kind]))
        check(health(d, p, "?allocator=x")[0] == 400, "no number")
        for kind, right in ROWS.items():
            in_the_list(d, forged[kind], right)


def copy_segment(pid):
    for fd in os.listdir("/proc/%d/fd" % pid):
        link = "/proc/%d/fd/%s" % (pid, fd)
        if "temporal-slab" in os.readlink(link):
            open("segment", "wb").write(open(link, "rb").read())
            return "segment"
    sys.exit("FAILED: the process has no segment")


with Daemon() as daemon:
    with shown() as process:
        alive(daemon, process)
        stopped(daemon, process)
        copy = copy_segment(process.pid)
        killed(daemon, process)
    strangers(daemon)
    liars(daemon, copy)
    routes = {re.search('route="([^"]*)"', n)[1] for n in series(daemon.ask("/metrics").body) if "http_requests" in n}
    check({"/processes", "/processes/PID/stats.json", "/processes/PID/metrics", "/processes/PID/healthz", "other"} <= routes, routes)
    check('code="0"' not in daemon.ask("/metrics").body, "a status that is not counted")
    check(daemon.end(signal.SIGTERM) == 0 and daemon.said() == "", daemon.said())
off = "/processes/%d/%%s" % os.getpid()
with Daemon("--processes=off") as daemon:
    refused(daemon, off, 404, "--processes=on")
    check(daemon.ask("/processes").code == 404, "a list although it is off")
with Daemon("--allow-remote", listen="0.0.0.0:0") as daemon:
    refused(daemon, off, 404, "--processes=on")
with Daemon("--processes=on", "--allow-remote", listen="0.0.0.0:0") as daemon:
    check(daemon.ask("/processes").code == 200, "no list although it is on")
got = subprocess.run([TSLABD, "--processes=yes"], capture_output=True, text=True, timeout=300)
check(got.returncode == 2 and "takes on|off, not 'yes'" in got.stderr, got)
finish()
