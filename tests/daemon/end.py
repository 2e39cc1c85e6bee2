"""tslabd: told to end, it finishes what it is answering and lets nobody else in; what hangs does not keep it; numbers
balance until the end."""
import re
import signal
import socket

from kit import Daemon, Reply, check, finish, read_all, wait_until


def refused(d):
    try:
        socket.create_connection(("127.0.0.1", d.port), 10).close()
        return False
    except ConnectionRefusedError:
        return True
    except ConnectionResetError:  # it came while the listening socket was closed
        return False


for ending in signal.SIGTERM, signal.SIGINT:
    for pattern in "idle", "burst", "contention", "steady":
        with Daemon("--pattern=" + pattern) as daemon:
            check(daemon.ask("/metrics").code == 200, pattern)
            check(daemon.end(ending) == 0 and daemon.said() == "", pattern, ending, daemon.process.returncode, daemon.said())

# A scrape that has begun is answered; who comes later is not let in; readiness tells who is in already.
with Daemon("--pattern=hotspot", "--drain_s=60", "--timeout_s=120") as daemon:
    scrape, probe = daemon.connect(), daemon.connect()
    scrape.sendall(b"GET /metrics HTTP/1.1\r\nHost: loc")
    probe.sendall(b"GET /readyz HTTP/1.1\r\n")
    check(wait_until(lambda: daemon.metric("tslabd_connections") == 3), "not looked after")
    daemon.process.send_signal(signal.SIGTERM)
    check(wait_until(lambda: refused(daemon)), "still lets in")
    scrape.sendall(b"alhost\r\n\r\n")
    got = Reply(read_all(scrape))
    check(got.code == 200 and int(got.headers["content-length"]) == len(got.body.encode()), "the scrape was cut", got)
    probe.sendall(b"Host: localhost\r\n\r\n")
    got = Reply(read_all(probe))
    check(got.code == 503 and got.body == "draining\n" and got.headers["retry-after"] == "1", got)
    check(daemon.process.wait(60) == 0, "status", daemon.process.returncode)

# Who says nothing keeps it for --drain_s only, or until a second signal.
with Daemon("--drain_s=0.2", "--timeout_s=120") as daemon, daemon.connect() as silent:
    check(wait_until(lambda: daemon.metric("tslabd_connections") == 2), "not looked after")
    check(daemon.end(signal.SIGTERM) == 0 and read_all(silent) == b"", "hangs at a client that says nothing")
with Daemon("--drain_s=3600", "--timeout_s=3600") as daemon, daemon.connect() as silent:
    check(wait_until(lambda: daemon.metric("tslabd_connections") == 2), "not looked after")
    daemon.process.send_signal(signal.SIGTERM)
    check(wait_until(lambda: refused(daemon)), "still lets in")
    check(daemon.end(signal.SIGTERM) == 0, "a second signal does not end it")

# SIGUSR1 ends the phase of a load that does not end it by itself.
with Daemon("--pattern=burst", "--epoch_policy=manual") as daemon:
    ended = lambda: sum(float(line.rsplit(" ", 1)[1]) for line in daemon.ask("/metrics").body.splitlines()
                        if re.match(r'temporal_slab_label_phases_ended_total\{label="[A-Z]', line))  # not ids never used
    check(ended() == 0, "phases end by themselves")
    daemon.process.send_signal(signal.SIGUSR1)
    check(wait_until(lambda: ended() == 1), "SIGUSR1 ends no phase")

# A load that leaks is named, and ends at --max_bytes without an end of the program.
with Daemon("--pattern=leak", "--req_rate=0", "--max_bytes=33554432", "--leak_threshold_s=0") as daemon:
    of_label = lambda key: daemon.metric('temporal_slab_label_unexpected_draining_%s{label="POST /orders"}' % key)
    check(wait_until(lambda: of_label("objects")), "no leak is seen")
    check(of_label("phases") > 0 and of_label("objects") >= of_label("phases") and of_label("bytes") > 0, [of_label(key) for key in ("phases", "objects", "bytes")])
    check(wait_until(lambda: 'ACTION: "POST /orders" leaks' in daemon.ask("/doctor").body), "doctor")
    check(wait_until(lambda: daemon.metric('tslabd_load_objects_total{outcome="failed"}') > 0), "no end of memory")
    check(daemon.metric("temporal_slab_committed_bytes") <= 33554432, "over the limit")
    check(daemon.end(signal.SIGTERM) == 0 and daemon.said() == "", daemon.said())
finish()
