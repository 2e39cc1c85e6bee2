"""Drives Chromium without a display: the DevTools protocol over a pair of pipes (fds 3 and 4 of the browser), one JSON
message up to each zero byte. Standard library only.

Nothing runs in the background here: events are read while an answer is waited for, and kept by the tab they belong to.
"""
import base64
import fcntl
import json
import os
import select
import shutil
import signal
import time

PROGRAMS = "chromium", "chromium-headless-shell", "google-chrome"
PATIENCE = 180
FLAGS = """--headless --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update
--disable-sync --disable-extensions --disable-dev-shm-usage --force-device-scale-factor=1 --hide-scrollbars=false
--no-sandbox --remote-debugging-pipe""".split()  # no sandbox: it shows pages of our own, often as root


def program():
    return next((found for found in map(shutil.which, PROGRAMS) if found), None)


def pipe():
    """Two ends with numbers that the browser's 3 and 4 cannot meet, closed in children."""
    return [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in os.pipe()]


class Browser:
    def __init__(self, profile):
        ours_in, theirs_out = pipe()
        theirs_in, ours_out = pipe()
        log = os.open("browser", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        self.pid = os.posix_spawn(program(), [program(), *FLAGS, "--user-data-dir=" + profile, "about:blank"], os.environ,
                                  file_actions=[(os.POSIX_SPAWN_DUP2, theirs_in, 3), (os.POSIX_SPAWN_DUP2, theirs_out, 4),
                                                (os.POSIX_SPAWN_DUP2, log, 1), (os.POSIX_SPAWN_DUP2, log, 2)],
                                  setpgroup=0)
        for end in theirs_in, theirs_out, log:
            os.close(end)
        self.read_end, self.write_end, self.buffer, self.last, self.tabs = ours_in, ours_out, b"", 0, {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.write_end)  # the browser ends with its pipe
        end = time.monotonic() + 60
        while time.monotonic() < end and os.waitpid(self.pid, os.WNOHANG)[0] == 0:
            time.sleep(0.02)
        try:
            os.killpg(self.pid, signal.SIGKILL)  # whatever of it is left
        except ProcessLookupError:
            pass

    def read(self, until):
        """The next message; None when there is none until then."""
        while b"\0" not in self.buffer:
            if not select.select([self.read_end], [], [], max(0, until - time.monotonic()))[0]:
                return None
            piece = os.read(self.read_end, 1 << 20)
            if not piece:
                raise SystemExit("the browser ended: " + open("browser").read()[-2000:])
            self.buffer += piece
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def handle(self, message):
        if "method" in message and message.get("sessionId") in self.tabs:
            self.tabs[message["sessionId"]].heard(message["method"], message["params"])

    def call(self, method, session=None, **params):
        self.last += 1
        request = {"id": self.last, "method": method, "params": params}
        if session:
            request["sessionId"] = session
        data = json.dumps(request).encode() + b"\0"
        while data:
            data = data[os.write(self.write_end, data):]
        until = time.monotonic() + PATIENCE
        while True:
            message = self.read(until)
            if message is None:
                raise SystemExit("the browser does not answer " + method)
            if message.get("id") == self.last:
                if "error" in message:
                    raise Refused("%s: %s" % (method, message["error"]))
                return message["result"]
            self.handle(message)

    def listen(self, seconds):
        """Reads events for that long."""
        until = time.monotonic() + seconds
        while (message := self.read(until)) is not None:
            self.handle(message)


class Refused(RuntimeError):
    """What the browser answers to a call that it cannot make."""


class Tab:
    """A page, with what it complained of, what it asked for, and what it was answered."""

    def __init__(self, browser, width=1366, height=900, dark=False):
        self.browser, self.complaints, self.asked, self.open, self.done = browser, [], [], set(), {}
        target = browser.call("Target.createTarget", url="about:blank", newWindow=True)["targetId"]  # a hidden tab asks nothing
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        browser.tabs[self.session], self.target = self, target
        for domain in "Page", "Runtime", "Log", "Network":
            self.call(domain + ".enable")
        self.screen(width, height)
        self.scheme("dark" if dark else "light")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.browser.tabs.pop(self.session, None):
            self.browser.call("Target.closeTarget", targetId=self.target)

    def call(self, method, **params):
        return self.browser.call(method, self.session, **params)

    def heard(self, method, p):
        if method == "Runtime.exceptionThrown":
            details = p["exceptionDetails"]
            self.complaints.append("exception: " + details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append("console: %s %s" % (p["type"], [a.get("value", a.get("description")) for a in p["args"]]))
        elif method == "Log.entryAdded":  # what the policy forbids is told here, and answers that are errors
            self.complaints.append("%s: %s" % (p["entry"]["source"], p["entry"]["text"]))
        elif method == "Network.requestWillBeSent":
            self.asked.append(p["request"]["url"])
            self.open.add(p["requestId"])
        elif method == "Network.responseReceived":
            self.done.setdefault(p["response"]["url"], []).append(p["requestId"])
        elif method in ("Network.loadingFinished", "Network.loadingFailed"):
            self.open.discard(p["requestId"])

    def go(self, url):
        self.call("Page.navigate", url=url)

    def js(self, expression):
        got = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in got:
            raise RuntimeError("%s: %s" % (expression[:200], got["exceptionDetails"]["exception"].get("description")))
        return got["result"].get("value")

    def wait(self, expression):
        """True as soon as it is; False when that takes too long."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            try:
                if self.js(expression):
                    return True
            except Refused as refused:
                if "navigated" not in str(refused):  # otherwise the page was just leaving
                    raise
            self.browser.listen(0.05)
        return False

    def body(self, url, nth=-1):
        """What it was answered, the last time or another."""
        got = self.call("Network.getResponseBody", requestId=self.done[url][nth])
        return base64.b64decode(got["body"]).decode() if got["base64Encoded"] else got["body"]

    def press(self, key, code, text=""):
        for kind in ("keyDown" if text else "rawKeyDown"), "keyUp":
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key if key != " " else "Space",
                      windowsVirtualKeyCode=code, **({"text": text} if text and kind == "keyDown" else {}))

    def screen(self, width, height, mobile=False, scale=1):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=mobile)

    def scheme(self, name):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def picture(self, path, whole=True):
        got = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        with open(path, "wb") as f:
            f.write(base64.b64decode(got["data"]))
