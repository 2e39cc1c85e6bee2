"""scripts/push-metrics.sh pushes what tslabd says to where it was told, and fails with a sentence otherwise; a Pushgateway,
where there is one, takes it."""
import http.server
import shutil
import socket
import subprocess
import threading

from kit import SOURCE, Daemon, check, finish, series, wait_until

SCRIPT = SOURCE + "/scripts/push-metrics.sh"
taken = []  # (path, type, body) of what the gateway below got
refuse = threading.Event()


class Gateway(http.server.BaseHTTPRequestHandler):
    def do_PUT(self):
        taken.append((self.path, self.headers["Content-Type"], self.rfile.read(int(self.headers["Content-Length"])).decode()))
        self.send_response(400 if refuse.is_set() else 200)
        self.end_headers()
        self.wfile.write(b"a page I do not like" if refuse.is_set() else b"")

    def log_message(self, *_):
        pass


def push(*arguments, **how):
    return subprocess.run([SCRIPT, *arguments], capture_output=True, text=True, timeout=120, **how)


def pushes(d, gateway):
    got = push("--from", d.url + "metrics", "--job", "night.run", "--instance", "here:1", gateway + "/below/")
    check(got.returncode == 0 and got.stdout == got.stderr == "", got)
    path, kind, body = taken.pop()
    check(path == "/below/metrics/job/night.run/instance/here:1" and kind == "text/plain; version=0.0.4", path, kind)
    check("temporal_slab_committed_bytes" in series(body) and body.endswith("\n"), body[-200:])
    got = push("--from", "-", gateway, input=body)
    check(got.returncode == 0, got)
    path, _, again = taken.pop()
    check(path.startswith("/metrics/job/temporal-slab/instance/") and again == body, path)


def rests(pid):
    """Whether a child of the process sleeps by name."""
    with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
        children = f.read().split()
    try:
        return any(open("/proc/%s/comm" % child).read() == "sleep\n" for child in children)
    except (FileNotFoundError, ProcessLookupError):
        return False


def again_and_again(d, gateway):
    with subprocess.Popen([SCRIPT, "--from", d.url + "metrics", "--every", "1", gateway]) as p:
        check(wait_until(lambda: len(taken) >= 2), "no second push")
        p.terminate()
    taken.clear()
    with subprocess.Popen([SCRIPT, "--from", d.url + "metrics", "--every", "900000", gateway]) as p:
        check(wait_until(lambda: rests(p.pid)), "it does not wait for the next")
        p.terminate()  # that is in ten days
        if not check(wait_until(lambda: p.poll() is not None), "told to end, it goes on"):
            p.kill()
    taken.clear()


def failures(d, gateway):
    closed = socket.socket()
    closed.bind(("127.0.0.1", 0))  # nobody listens there, and nobody else gets it
    silent = socket.create_server(("127.0.0.1", 0))
    nobody, hangs = ("http://127.0.0.1:%d" % s.getsockname()[1] for s in (closed, silent))
    source = d.url + "metrics"
    refuse.set()
    for said, *arguments in (
        ("a page I do not like", "--from", source, gateway),
        (nobody, "--from", source, nobody),
        ("timed out", "--from", source, "--timeout", "1", hangs),
        ("timed out", "--from", hangs, "--timeout", "1", gateway),
        ("contains no metrics of temporal-slab", "--from", d.url + "healthz", gateway),
        ("404", "--from", source + "nothing", gateway),
        ("404", "--from", d.url + "nothing", gateway),
    ):
        got = push(*arguments)
        check(got.returncode == 1 and said in got.stderr and got.stderr.startswith("push-metrics.sh: "), arguments, got)
    check(len(taken) == 1, "pushed although there was nothing to push", taken[1:])
    refuse.clear()
    taken.clear()
    for said, *arguments in (
        ("a gateway is", "localhost:9091"), ("must not be empty", ""), ("no option", "--jobs", "x", gateway),
        ("only one gateway", gateway, gateway), ("needs a value", gateway, "--job"), ("--timeout takes", "--timeout", "0", gateway),
        ("--every takes", "--every", "soon", gateway), ("job and instance", "--job", "a/b", gateway),
        ("job and instance", "--instance", "..", gateway), ("there is no option --pid", "--pid", "1", gateway),
        ("--from takes", "--from", "/etc/passwd", gateway),
        ("only once", "--from", "-", "--every", "1", gateway),
    ):
        got = push(*arguments, stdin=subprocess.DEVNULL)
        check(got.returncode == 2 and said in got.stderr, arguments, got)
    check(not taken, "pushed in spite of a wrong command line")


def real(d):
    program = shutil.which("prometheus-pushgateway") or shutil.which("pushgateway")
    if not program:
        print("not tried with a Pushgateway: none is installed (apt-get install prometheus-pushgateway)")
        return
    with socket.create_server(("127.0.0.1", 0)) as s:
        url = "127.0.0.1:%d" % s.getsockname()[1]
    with subprocess.Popen([program, "--web.listen-address=" + url], stderr=subprocess.DEVNULL) as p:
        try:
            curl = lambda path: subprocess.run(["curl", "-sS", "http://" + url + path], capture_output=True, text=True)
            check(wait_until(lambda: curl("/-/ready").returncode == 0), "the Pushgateway does not begin")
            got = push("--from", d.url + "metrics", "--instance", "i", "http://" + url)
            check(got.returncode == 0, got)
            check('temporal_slab_committed_bytes{instance="i",job="temporal-slab"}' in curl("/metrics").stdout, "not there")
        finally:
            p.terminate()


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Gateway)
threading.Thread(target=server.serve_forever, daemon=True).start()
with Daemon("--pattern=burst") as daemon:
    address = "http://127.0.0.1:%d" % server.server_port
    pushes(daemon, address)
    again_and_again(daemon, address)
    failures(daemon, address)
    real(daemon)
finish()
