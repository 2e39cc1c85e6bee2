"""What check.py and measure.py share: documents for jq, a running tinyproxy, what a process holds."""

import json
import os
import random
import signal
import socket
import subprocess
import tempfile
import time

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "a somewhat longer text that goes on", "zeta", "order", "customer"]


def documents(count, seed=7):
    """Orders of 1 to 128 items, by powers of two; the same for the same seed."""
    r = random.Random(seed)
    made = []
    for i in range(count):
        items = [{"sku": "%08x" % r.getrandbits(32), "qty": r.randrange(1, 9), "price": round(r.uniform(1, 500), 2),
                  "note": r.choice(WORDS) if r.random() < 0.3 else None} for _ in range(int(2 ** r.uniform(0, 7)))]
        made.append({"id": i, "customer": {"name": r.choice(WORDS), "email": "u%d@example.org" % r.randrange(10 ** 6)},
                     "items": items, "ok": r.random() < 0.5})
    return made


def lines(docs):
    return "".join(json.dumps(d) + "\n" for d in docs)


class Held:
    """Resident bytes of a process now and at most, in KiB, and its page faults so far."""

    def __init__(self, pid):
        self.now = self.most = 0
        with open("/proc/%d/smaps_rollup" % pid) as f:
            for line in f:
                if line.startswith("Rss:"):
                    self.now = int(line.split()[1])
        with open("/proc/%d/status" % pid) as f:
            for line in f:
                if line.startswith("VmHWM:"):
                    self.most = max(self.now, int(line.split()[1])) # the kernel's quick counters are somewhat behind
        with open("/proc/%d/stat" % pid) as f:
            self.faults = int(f.read().rsplit(")", 1)[1].split()[7])


class Proxy:
    """A tinyproxy in the foreground, on a free port of 127.0.0.1."""

    def __init__(self, program, before=(), errors=subprocess.DEVNULL):
        self.folder = tempfile.TemporaryDirectory()
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        config = os.path.join(self.folder.name, "tinyproxy.conf")
        with open(config, "w") as f:
            f.write("Port %d\nListen 127.0.0.1\nTimeout 60\nMaxClients 200\nAllow 127.0.0.0/8\nLogLevel Critical\n"
                    "Logfile \"%s/log\"\n" % (self.port, self.folder.name))
        self.process = subprocess.Popen([*before, program, "-d", "-c", config], stdout=subprocess.DEVNULL, stderr=errors)
        for _ in range(300):
            if self.process.poll() is not None:
                break
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except OSError:
                time.sleep(0.1)
        self.end()
        raise SystemExit("%s does not listen" % program)

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.folder.cleanup()
        return self.process.returncode
