"""tslabd and clients that mean no good: slow ones, requests that can be read in two ways, too much of everything, more
connections than there is room for, no descriptors left. Afterwards it answers as before, and did not spin."""
import glob
import resource
import selectors
import socket
import subprocess

from kit import TSLABD, Daemon, Reply, check, finish, read_all, readable, series, wait_until

GOOD = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


def well(d):
    return check(d.ask("/healthz").body == "ok\n", "no answer any more")


def bombs(d):
    """Nothing that is too much, or no HTTP, is served, and each is told so or closed."""
    many = b"".join(b"X-%d: y\r\n" % n for n in range(10000))
    for what, raw in {
        "10,000 headers": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + many + b"\r\n",
        "one long header": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 1000000 + b"\r\n\r\n",
        "a long path": b"GET /" + b"a" * 1000000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "a long method": b"G" * 1000000 + b" / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "no line ends": b"a" * 1000000,
        "zeros": bytes(100000) + GOOD,
        "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500) + b"\r\n\r\n",
        "no method": b" / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "a body": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello",
        "a body of 2^64": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 18446744073709551616\r\n\r\n",
        "a negative body": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        "a zero in a name": b"GET /healthz HTTP/1.1\r\nHo\0st: localhost\r\n\r\n",
    }.items():
        got = d.exchange(raw)
        check(b"200 OK" not in got and b"\nok\n" not in got, what, got[:200])
        if got:
            check(400 <= Reply(got).code < 600, what, got[:200])
        well(d)


def smuggled(d):
    """Whatever stands behind a request, there is one answer; a request that can be read in two ways is refused."""
    inner = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
    check(Reply(d.exchange(GOOD + inner)).count == 1, "two requests on one connection, two answers")
    for head in (
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", b"Transfer-Encoding: chunked\r\nContent-Length: 0\r\n",
        b"Content-Length: 0\r\nContent-Length: 44\r\n", b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        b"Transfer-Encoding: xchunked\r\n", b"Transfer-Encoding : chunked\r\nContent-Length: 0\r\n",
        b"Content-Length: +0\r\n", b"Content-Length: 0, 44\r\n", b"Content-Length: 0x2c\r\n",
        b"X: y\r\n Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
    ):
        for method in b"GET", b"POST":
            raw = method + b" /healthz HTTP/1.1\r\nHost: localhost\r\n" + head + b"\r\n0\r\n\r\n" + inner
            got = d.exchange(raw)
            # libmicrohttpd 0.9.75 says twice that a length is wrong, and closes.
            served = [line for line in got.split(b"\r\n") if line.startswith(b"HTTP/1.") and not line.startswith(b"HTTP/1.1 4")]
            check(got != b"" and not served and b"temporal_slab" not in got, method, head, got[:300])
    well(d)


def slow(d):
    """--timeout_s is for the whole connection: a byte now and then does not lengthen it."""
    before = d.metric("tslabd_connections_timed_out_total")
    silent, teasing, deaf = d.connect(), d.connect(), d.connect()
    deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    deaf.sendall(b"GET /stats.json HTTP/1.1\r\nHost: localhost\r\n\r\n")  # an answer of more than the buffers hold is not read
    for byte in GOOD[:-2] + b"X: " + b"y" * 10000:  # whatever it takes until then, no whole request
        try:
            teasing.sendall(bytes([byte]))
        except OSError:
            break
        if readable(teasing, 0.02):
            break
    check(read_all(teasing) == b"" and read_all(silent) == b"", "answers to no request")
    check(wait_until(lambda: d.metric("tslabd_connections_timed_out_total") >= before + 2), "nobody was too late")
    check(wait_until(lambda: d.metric("tslabd_connections") == 1), "places stay taken", d.metric("tslabd_connections"))
    deaf.close()
    well(d)


def many_files():
    """How many connections this process and one that it starts may have: 10,000, or what the system lets them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(10000, hard - 100)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted + 100), hard))
    return wanted


def crowd(d, wanted, places):
    """Very many connections at a time: as many as there are places are looked after, the rest wait, and all get an answer."""
    waiting, answered = selectors.DefaultSelector(), 0
    let_in = lambda count: d.metric("tslabd_connections") == count + 1
    for number in range(wanted):
        if places > wanted and number % 2000 == 0:  # no more than the kernel's queue holds: who finds it full tries again after seconds
            check(wait_until(lambda: let_in(number)), d.metric("tslabd_connections"), "of", number, "let in")
        s = socket.socket()
        s.setblocking(False)
        s.connect_ex(("127.0.0.1", d.port))
        waiting.register(s, selectors.EVENT_WRITE, bytearray())
    if places > wanted:
        check(wait_until(lambda: let_in(wanted)), d.metric("tslabd_connections"), "of", wanted, "let in")
    while waiting.get_map():
        ready = waiting.select(60)
        if not check(ready, "%d wait for ever" % len(waiting.get_map())):
            break
        for key, event in ready:
            if event == selectors.EVENT_WRITE:
                key.fileobj.sendall(GOOD)
                waiting.modify(key.fileobj, selectors.EVENT_READ, key.data)
                continue
            piece = key.fileobj.recv(65536)
            key.data.extend(piece)
            if not piece:
                waiting.unregister(key.fileobj)
                key.fileobj.close()
                answered += key.data.endswith(b"\r\n\r\nok\n")
    print("%d of %d connections at a time answered, by %d places" % (answered, wanted, places))
    check(answered == wanted, answered, "answered of", wanted)
    check(wait_until(lambda: d.metric("tslabd_connections") == 1), "places stay taken", d.metric("tslabd_connections"))


def hoarders(d):
    """All places taken by clients that say nothing: others wait, and are answered when the time of these is over."""
    hoard = [d.connect() for _ in range(20)]
    check(d.ask("/healthz").body == "ok\n", "nobody else was let in")
    page = series(d.ask("/metrics").body)
    check(page["tslabd_connections"] <= page["tslabd_connections_max"] == 8, page["tslabd_connections"])
    for s in hoard:
        s.close()
    well(d)


def switches(pid):
    """How often its threads have gone to sleep."""
    total = 0
    for path in glob.glob("/proc/%d/task/*/status" % pid):
        with open(path, encoding="ascii") as status:
            total += sum(int(line.split()[1]) for line in status if line.startswith("voluntary_ctxt_switches"))
    return total


def no_descriptors(d):
    """The limit of open files falls below what is open: accepting fails, is tried now and then, and works again later."""
    pid = d.process.pid
    slept = switches(pid)
    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, limits[1]))
    waiting = [d.connect() for _ in range(5)]
    for s in waiting:
        s.sendall(GOOD)
    check(wait_until(lambda: "cannot accept connections: Too many open files" in d.said()), d.said())
    check(not readable(waiting[0], 1), "an answer without a descriptor")
    resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
    for s in waiting:
        check(read_all(s).endswith(b"ok\n"), "who had waited was not answered")
        s.close()
    tried = d.metric("tslabd_accept_failures_total")
    slept = switches(pid) - slept
    check(0 < tried <= slept, "tried", tried, "times, and slept only", slept)
    check(d.said().count("\n") == 1, "complains more than once:", d.said())


def few_descriptors():
    """Started with a low limit, it takes fewer connections than asked for, says so, and never runs out."""
    limited = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
    errors = open("few", "w")
    with subprocess.Popen([TSLABD, "--listen=127.0.0.1:0", "--timeout_s=3"], stdout=subprocess.PIPE, stderr=errors, text=True,
                          preexec_fn=limited) as process:
        port = int(process.stdout.readline().split(":")[3].split("/")[0])
        hoard = [socket.create_connection(("127.0.0.1", port), 60) for _ in range(40)]
        with socket.create_connection(("127.0.0.1", port), 60) as s:
            s.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
            page = series(Reply(read_all(s)).body)
        check(page["tslabd_connections_max"] == 16 and page["tslabd_accept_failures_total"] == 0, page["tslabd_connections_max"])
        for s in hoard:
            s.close()
        process.terminate()
    errors.close()
    check("at most 16 connections, not 64" in open("few").read(), open("few").read())
    check(process.returncode == 0, process.returncode)


with Daemon("--timeout_s=30") as daemon:
    bombs(daemon)
    smuggled(daemon)
    no_descriptors(daemon)
with Daemon("--timeout_s=3", "--max_connections=8", "--pattern=hotspot") as daemon:
    slow(daemon)
    hoarders(daemon)
people = many_files()
for visitors, places in (min(people, 4000), 64), (people - 1, people):
    with Daemon("--timeout_s=600", "--max_connections=%d" % places) as daemon:
        crowd(daemon, visitors, places)
        check(daemon.said() == "", daemon.said())
few_descriptors()
finish()
