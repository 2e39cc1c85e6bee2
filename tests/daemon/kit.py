"""Runs tslabd for its tests, talks to it over plain sockets, and counts what is not as it should be."""
import os
import re
import select
import socket
import subprocess
import sys
import time

TSLABD = os.path.join(os.environ["TSLAB_BUILD_DIR"], "tslabd")
SOURCE = os.environ["TSLAB_SOURCE_DIR"]
PATIENCE = 180  # seconds until something that has to come is given up; never waited for in full when all is well
failures = 0


def check(ok, *said):
    global failures
    if not ok:
        failures += 1
        line = sys._getframe(1).f_lineno
        print("FAILED (line %d):" % line, *[str(s)[:600] for s in said], file=sys.stderr)
    return ok


def finish():
    print("%d failed" % failures)
    sys.exit(failures != 0)


class Daemon:
    """tslabd at a free port of 127.0.0.1."""

    def __init__(self, *arguments, listen="127.0.0.1:0", env=None):
        self.errors = open("errors", "w+")
        self.process = subprocess.Popen([TSLABD, "--listen", listen, *arguments], stdout=subprocess.PIPE,
                                        stderr=self.errors, text=True, env=env)
        line = self.process.stdout.readline()
        found = re.match(r"tslabd: (http://(.*):(\d+)/) pattern (\w+)\n", line)
        if not found:
            raise SystemExit("tslabd did not begin: %r, %s" % (line, self.said()))
        self.url, self.port, self.pattern = found[1], int(found[3]), found[4]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.errors.close()

    def said(self):
        self.errors.flush()
        return open("errors").read()

    def connect(self):
        s = socket.create_connection(("127.0.0.1", self.port), PATIENCE)
        s.settimeout(PATIENCE)
        return s

    def exchange(self, raw):
        """What comes back for these bytes, until the server closes."""
        with self.connect() as s:
            try:
                s.sendall(raw)
            except OSError:
                pass  # it need not read what it refuses
            return read_all(s)

    def ask(self, path, method="GET", version="1.1", host=None, headers=()):
        host = "127.0.0.1:%d" % self.port if host is None else host
        lines = ["%s %s HTTP/%s" % (method, path, version)]
        lines += ["Host: " + host] if host else []
        raw = "\r\n".join(lines + list(headers)) + "\r\n\r\n"
        return Reply(self.exchange(raw.encode()))

    def metric(self, name):
        """Value of the series with exactly this name and labels; None when there is none."""
        for line in self.ask("/metrics").body.splitlines():
            if line.startswith(name + " "):
                return float(line.rsplit(" ", 1)[1])
        return None

    def end(self, signal):
        """Exit status; None when it does not end."""
        self.process.send_signal(signal)
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            return None


def read_all(s):
    data = b""
    try:
        while True:
            piece = s.recv(65536)
            if not piece:
                return data
            data += piece
    except (ConnectionResetError, BrokenPipeError):
        return data


class Reply:
    def __init__(self, raw):
        head, _, body = raw.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        self.raw = raw
        self.code = int(lines[0].split(" ")[1]) if lines[0].startswith("HTTP/1.") else None
        self.headers = {k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:])}
        self.body = body.decode("utf-8", "replace")
        self.count = raw.count(b"HTTP/1.")  # answers in it; no body of ours has these letters

    def __str__(self):
        return repr(self.raw[:400])


def wait_until(what):
    """True as soon as `what()` is; False when that takes too long."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if what():
            return True
        time.sleep(0.02)
    return False


def series(text):
    """name{labels} -> value of a page in either format; a series that comes twice is a failure."""
    found = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            check(name not in found, "twice:", name)
            found[name] = float(value)
    return found


def readable(s, seconds):
    return bool(select.select([s], [], [], seconds)[0])
