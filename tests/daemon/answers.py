"""tslabd: each route answers what it should, in the format asked for; what is not served is refused with the right status;
flags do what they say and wrong ones are told of."""
import json
import re
import signal
import subprocess
import sys
import time

from kit import TSLABD, Daemon, check, finish, series, wait_until

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPEN = "application/openmetrics-text; version=1.0.0; charset=utf-8"
ROUTES = {
    "/": "text/plain; charset=utf-8",
    "/metrics": TEXT,
    "/stats.json": "application/json; charset=utf-8",
    "/doctor": "text/plain; charset=utf-8",
    "/healthz": "text/plain; charset=utf-8",
    "/readyz": "text/plain; charset=utf-8",
}


def routes(d):
    for path, kind in ROUTES.items():
        got, head = d.ask(path), d.ask(path, method="HEAD")
        check(got.code == 200 and got.headers["content-type"] == kind, path, got)
        check(int(got.headers["content-length"]) == len(got.raw.partition(b"\r\n\r\n")[2]), path, "length")
        check(head.code == 200 and head.body == "" and head.headers["content-type"] == kind, "HEAD", path, head)
        for reply in got, head:
            check("default-src 'self'" in reply.headers["content-security-policy"], path, reply)
            check(reply.headers["x-content-type-options"] == "nosniff", path, reply)
            check(reply.headers["cache-control"] == "no-store" and reply.headers["connection"] == "close", path, reply)
        check(d.ask(path + "?x=1").code == 200, path, "with a query")
    check("tslab web --pid %d" % d.process.pid in d.ask("/").body and d.ask("/").body.count("\n") == 1, "/", d.ask("/"))
    check(d.ask("/healthz").body == "ok\n" and d.ask("/readyz").body == "ready\n", "health")
    for path in "/nothing", "/metrics/", "//", "/../etc/passwd", "/%2e%2e/etc/passwd", "/page.js", "/reports.json", "/METRICS", "/stats.json%00", "/%6detrics":
        check(d.ask(path).code == 404, path)
    for method in "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "BREW":
        got = d.ask("/metrics", method=method)
        check(got.code == 405 and got.headers["allow"] == "GET, HEAD", method, got)


def documents(d):
    stats = json.loads(d.ask("/stats.json").body)
    check(stats["pid"] == d.process.pid and stats["schema_version"] == 3, stats["pid"])
    check(wait_until(lambda: json.loads(d.ask("/stats.json").body)["closes"]), "no close ever")
    closed = json.loads(d.ask("/stats.json").body)["closes"][0]
    check(closed["label"] in ("GET /products", "GET /search", "POST /cart", "GET /home"), closed)
    check("1. Leaks" in d.ask("/doctor").body, "doctor")


def hosts(d):
    port = ":%d" % d.port
    for host in "127.0.0.1" + port, "127.0.0.1", "localhost" + port, "LocalHost", "127.1.2.3:80", "[::1]" + port:
        check(d.ask("/healthz", host=host).code == 200, host)
    for host in ("evil.example", "evil.example" + port, "localhost.evil.example", "10.0.0.1", "127.0.0.1.evil.example",
                 "127.0.0.1:evil", "[::1", "[2001:db8::1]", "0.0.0.0", ":" + str(d.port), "user@127.0.0.1", "a" * 300):
        for path in "/metrics", "/", "/nothing":
            check(d.ask(path, host=host).code == 403, host, path)
    check(d.ask("/healthz", host="").code == 400, "no Host")
    check(d.ask("/healthz", host="", version="1.0").code == 200, "no Host, HTTP/1.0")
    check(d.ask("/healthz", headers=["Host: evil.example"]).code == 400, "two Hosts")
    with Daemon("--allow-host=metrics.example", "--allow-host", "other.example") as named:
        check(named.ask("/healthz", host="Metrics.example:1").code == 200, "allowed host")
        check(named.ask("/healthz", host="other.example").code == 200, "second allowed host")
        check(named.ask("/healthz", host="evil.example").code == 403, "a host that is not")


def formats(d):
    for accept, kind in (
        (None, TEXT), ("*/*", TEXT), ("text/plain", TEXT), ("application/json", TEXT),
        ("application/openmetrics-text", OPEN), ("application/openmetrics-text; version=1.0.0", OPEN),
        ("application/openmetrics-text;version=2.0.0", TEXT), ("application/openmetrics-text;q=0", TEXT),
        ("application/openmetrics-text;q=0.2, text/plain;q=0.9", TEXT),
        ("text/plain;q=0.2,APPLICATION/OpenMetrics-Text;Q=0.9", OPEN),
        ("application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
         "text/plain;version=0.0.4;q=0.5,*/*;q=0.1", OPEN), (",;,=;q", TEXT), ("application/openmetrics-textual", TEXT),
    ):
        got = d.ask("/metrics", headers=["Accept: " + accept] if accept else [])
        check(got.code == 200 and got.headers["content-type"] == kind, accept, got)
    text, open_ = d.ask("/metrics").body, d.ask("/metrics", headers=["Accept: application/openmetrics-text"]).body
    check(len(set(re.findall(r"^# TYPE (temporal_slab_\w+)", text, re.M))) > 50, "fewer than 50 metrics")
    check(open_.endswith("\n# EOF\n") and open_.count("# EOF") == 1, open_[-200:])
    check("# EOF" not in text and "untyped" not in open_, "the formats are mixed")
    types = dict(re.findall(r"^# TYPE (\S+) (\w+)$", open_, re.M))
    check(types["temporal_slab_madvise_calls"] == "counter" and types["temporal_slab_closing_epoch_count"] == "unknown", types)
    for name in series(open_):
        base = name.partition("{")[0]
        family = next((f for f in (base, re.sub("_(total|bucket|sum|count)$", "", base)) if f in types), None)
        check(family is not None, "no type:", name)
        check((types.get(family) == "counter") == base.endswith("_total"), types.get(family), name)
        if base.endswith("_bucket"):
            bound = re.search(r'le="([^"]*)"', name)[1]
            check(bound == "+Inf" or "." in bound or "e" in bound, name)
    def names(page):  # epochs, phases and labels come and go; bounds look different
        return {re.sub(r'le="[^"]*"', "le", n) for n in series(page)
                if not re.match("tslabd_http|temporal_slab_(epoch|phase|label)_", n)}
    check(names(text) == names(open_), "series differ:", names(text) ^ names(open_))
    for page_ in text, open_: # what a strict parser refuses
        values = series(page_)
        for name, value in values.items():
            base, brace, rest = name.partition("{")
            if types.get(re.sub("_(sum|count)$", "", base)) != "histogram" or base.endswith("_bucket"):
                continue
            check(float(value) == float(value) and float(value) >= 0, "no number:", name, value)
            twin = re.sub("_sum$", "_count", base) if base.endswith("_sum") else re.sub("_count$", "_sum", base)
            check(twin + brace + rest in values, name, "without", twin)
    check("temporal_slab_label_phase_duration_seconds_count" in open_, "no histogram of what nobody adds up")
    promtool = subprocess.run(["promtool", "check", "metrics"], input=d.ask("/metrics").body, text=True, capture_output=True)
    check(promtool.returncode == 0 and not promtool.stderr, "promtool:", promtool.stderr)


def counters(d):
    """What only grows, grows: two scrapes while the load runs, in the order they were taken."""
    scrape = lambda: d.ask("/metrics").body
    before = scrape()
    kinds = dict(re.findall(r"^# TYPE (\S+) (\w+)$", before, re.M))
    check(wait_until(lambda: (d.metric("tslabd_load_requests_total") or 0) > series(before)["tslabd_load_requests_total"]),
          "the load stands still")
    for _ in range(10):
        after = scrape()
        old, new = series(before), series(after)
        for name, value in old.items():
            base = name.partition("{")[0]
            grows = kinds.get(base) == "counter" or re.search("_(bucket|count|sum)$", base) and kinds.get(
                base.rsplit("_", 1)[0]) == "histogram"
            if grows:
                check(new.get(name, -1) >= value, "fell:", name, value, new.get(name))
        before = after
    row = lambda outcome: new['tslabd_load_objects_total{outcome="%s"}' % outcome]
    check(row("allocated") > 0 and row("allocated") >= row("freed") and row("leaked") == row("failed") == 0, "the load's own counts")
    check(new['tslabd_load_info{pattern="burst"}'] == 1 and new["tslabd_snapshots_total"] > 10, "own metrics")
    check(new['tslabd_http_requests_total{route="/metrics",code="200"}'] > 10, "answers by route")


def run(*arguments):
    return subprocess.run([TSLABD, *arguments], capture_output=True, text=True, timeout=300)


def flags():
    for said, *arguments in (
        ("did you mean --listen?", "--lisen=127.0.0.1:0"), ("did you mean burst?", "--pattern=brust"),
        ("did you mean idle?", "--pattern=idel"), ("see tslabd --help", "stray"), ("needs a value", "--listen"),
        ("takes no value", "--allow-remote=yes"), ("like 127.0.0.1:8080 or [::1]:8080", "--listen=localhost:8080"),
        ("like 127.0.0.1:8080", "--listen=127.0.0.1"), ("like 127.0.0.1:8080", "--listen=127.0.0.1:65536"),
        ("like 127.0.0.1:8080", "--listen=127.0.0.1:"), ("like 127.0.0.1:8080", "--listen=[127.0.0.1]:1"),
        ("like 127.0.0.1:8080", "--listen=127.0.0.1:1x"), ("add --allow-remote", "--listen=0.0.0.0:0"),
        ("add --allow-remote", "--listen=[::]:0"), ("like metrics.example", "--allow-host=http://x"),
        ("at most", *["--allow-host=x"] * 17), ("takes a whole number from 1", "--max_connections=0"),
        ("takes 0, or 16", "--sampling_period=3"), ("takes 0, or 65536", "--max_bytes=12"), ("--threads changes a pattern", "--threads=2"),
        ("takes a number from 0.1", "--timeout_s=0"), ("set both", "--pattern=burst", "--objs_min=500"),
    ):
        got = run(*arguments)
        check(got.returncode == 2 and said in got.stderr and got.stderr.startswith("tslabd: ") and got.stdout == "",
              arguments, got.returncode, got.stderr)
    got = run("--help")
    check(got.returncode == 0 and got.stderr == "", got.stderr)
    for word in ("--listen", "--allow-remote", "--pattern", "--threads", "--stale_after_s", "/metrics", "/readyz", "burst", "idle", "EXIT STATUS"):
        check(word in got.stdout, "--help has no", word)
    check(re.fullmatch(r"tslabd \d+\.\d+\.\d+\n", run("--version").stdout), "--version")
    with Daemon() as first:
        got = run("--listen=127.0.0.1:%d" % first.port)
        check(got.returncode == 1 and "Address already in use" in got.stderr and "chooses a free port" in got.stderr, got)
        check(first.pattern == "idle" and first.said() == "", first.said())
        got = json.loads(first.ask("/stats.json").body)
        check(got["closes"] == got["phases"] == [] and first.metric('tslabd_load_info{pattern="idle"}') == 1, got["closes"], got["phases"])
    with Daemon("--allow-remote", listen="0.0.0.0:0") as open_:
        check("warning: other machines can reach 0.0.0.0:%d" % open_.port in open_.said(), open_.said())
        check(open_.ask("/healthz", host="192.0.2.7").code == 200, "a machine's address")
        check(open_.ask("/healthz", host="evil.example").code == 403, "a foreign name")


def first_answer(*arguments):
    """Of a load that has served its first requests at once and the next one comes in an hour; nobody has asked before."""
    with Daemon("--pattern=steady", "--req_rate=0.0003", *arguments) as slow:
        time.sleep(2.5)  # more than the daemon waits between two looks at its load
        got = slow.ask("/healthz")
        check(slow.ask("/readyz").code == slow.ask("/metrics").code == 200, "does not answer because its load stands still")
        check(slow.end(signal.SIGTERM) == 0, "a load that stands still keeps it from ending")
        return got


def health():
    """A load that serves nothing is told of, even to who asks for the first time; where there is none nothing is missed."""
    still = lambda got: got.code == 503 and got.headers["retry-after"] == "1" and re.fullmatch(
        r"the load is stuck: it has served no request for \d+\.\d s\.\n", got.body)
    check(wait_until(lambda: still(first_answer("--stale_after_s=0.5"))), "a load that stands still is healthy")
    check(first_answer("--stale_after_s=0").body == "ok\n", "0: never")
    with Daemon("--stale_after_s=0.001") as idle:
        check([idle.ask("/healthz").code for _ in range(3)] == [200] * 3, "an idle one is not healthy")


with Daemon("--pattern=burst") as daemon:
    routes(daemon)
    documents(daemon)
    hosts(daemon)
    formats(daemon)
    counters(daemon)
    check(daemon.said() == "", daemon.said())
flags()
health()
finish()
