"""/metrics asked for by 100 connections at a time, in both formats, while the load of tslabd allocates: every request is
answered, whole, with 200. How long that takes is printed, not judged. 1,500 requests a format, or 100,000 of them with
TSLAB_TEST_SCALE > 1 (make check).

Then what is shared: of those who ask at a time many get one answer, and nobody gets one from before he came."""
import json
import os
import signal
import subprocess
import time

from kit import Daemon, Reply, check, finish, read_all, series, wait_until

SCRAPES = os.path.join(os.environ["TSLAB_BUILD_DIR"], "tests/daemon/scrapes")
REQUESTS = 100000 if float(os.environ.get("TSLAB_TEST_SCALE", "1")) > 1 else 1500
METRICS = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
HEALTHY = 'tslabd_http_requests_total{route="/healthz",code="200"}'


def scrapes(d, requests, *more):
    return subprocess.Popen([SCRAPES, str(d.port), "100", str(requests), *more], stdout=subprocess.PIPE, text=True)


def counted(reply):
    return series(reply.body).get(HEALTHY, 0)


def all_answered():
    for kind, accept in ("text", "*/*"), ("OpenMetrics", "application/openmetrics-text"):
        with Daemon("--pattern=burst") as d, scrapes(d, REQUESTS, "/metrics", accept) as client:
            said = client.communicate()[0]
            print(kind + ":", said.strip())
            got = json.loads(said)
            check(client.returncode == 0 and got["status"] == {"200": REQUESTS} and got["lost"] == 0, said)
            page = series(d.ask("/metrics").body)
            check(page['tslabd_http_requests_total{route="/metrics",code="200"}'] == REQUESTS, "counts others")
            check(0 < page["tslabd_snapshots_total"] < REQUESTS, "every answer was made anew:", page["tslabd_snapshots_total"])
            check(page["tslabd_load_requests_total"] > 0 and page["tslabd_connections"] == 1, "load", page["tslabd_connections"])
            check(d.said() == "", d.said())


def nobody_gets_old_numbers():
    with Daemon("--pattern=burst", "--timeout_s=600") as d:
        with scrapes(d, 1000000) as crowd:
            for asked in range(1, 41):
                d.ask("/healthz")
                check(counted(d.ask("/metrics")) == asked, "numbers from before the connection began, at", asked)
            crowd.kill()
        with d.connect() as early:  # connected before an answer was made, and asks long after
            check(counted(d.ask("/metrics")) == 40, "count")
            d.ask("/healthz")
            time.sleep(0.1)
            early.sendall(METRICS)
            check(counted(Reply(read_all(early))) == 41, "an old answer for a connection that was silent")
        head = d.ask("/metrics", method="HEAD")
        check(head.code == 200 and head.body == "" and int(head.headers["content-length"]) > 10000, "HEAD", head)


def slow_answers_are_shared():
    """The longer an answer takes the more are waiting for it. Thousands of ended phases that hold something make it long."""
    spent = "tslabd_snapshot_seconds_total"

    def is_slow():
        before = series(d.ask("/metrics").body)[spent]
        return series(d.ask("/metrics").body)[spent] - before > 0.06  # longer than an answer is kept

    with Daemon("--pattern=leak", "--req_rate=0", "--max_bytes=4000000000", "--timeout_s=600") as d:
        if not check(wait_until(is_slow), "no answer is slow"):
            return
        before = d.metric("tslabd_snapshots_total")
        crowd = [d.connect() for _ in range(40)]
        d.ask("/healthz")  # they have come
        d.process.send_signal(signal.SIGSTOP)  # so that all have asked before one is answered
        for c in crowd:
            c.sendall(METRICS)
        d.process.send_signal(signal.SIGCONT)
        check([Reply(read_all(c)).code for c in crowd] == [200] * 40, "a crowd is not answered")
        for c in crowd:
            c.close()
        made = d.metric("tslabd_snapshots_total") - before - 1
        print("40 slow answers:", made, "made")
        check(0 < made <= 10, "slow answers are not shared:", made)


all_answered()
slow_answers_are_shared()
nobody_gets_old_numbers()
finish()
