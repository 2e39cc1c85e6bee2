"""terminal.py TSLAB DOCUMENT PROGRAM: whatever ends the screen of tslab from outside, the terminal is as it was before.

The program has a real terminal here and is killed as a person or a system would kill it. What it leaves is compared with what
was there: the settings of the line, the other screen, the cursor.
"""
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time


def fail(text):
    sys.exit("FAILED: " + text)


class Screen:
    def __init__(self, command, width=80, height=24):
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        self.before = termios.tcgetattr(self.slave)
        self.shown = b""
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)
            for fd in (0, 1, 2):
                os.dup2(self.slave, fd)
            os.environ.update(TERM="xterm-256color")
            os.execv(command[0], command)

    def read(self, seconds):
        if select.select([self.master], [], [], seconds)[0]:
            self.shown += os.read(self.master, 65536)

    def until(self, what, done):
        end = time.monotonic() + 180
        while not done():
            if time.monotonic() > end:
                os.kill(self.pid, signal.SIGKILL)
                fail("%s: never, but %r" % (what, self.shown[-400:]))
            self.read(0.05)

    def resize(self, width, height):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def end(self):
        """The exit status, once it has ended and all that it wrote is here."""
        status = []

        def ended():
            pid, code = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                status.append(code)
            return pid != 0

        self.until("it ends", ended)
        self.read(0.2)
        return status[0]


def case(name, command, act, codes, sign=b"label"):
    s = Screen(command)
    s.until("a screen", lambda: sign in s.shown)
    if termios.tcgetattr(s.slave)[3] == s.before[3]:
        fail(name + ": the terminal was never raw")
    for width, height in ((1, 1), (500, 60), (80, 24)):
        s.resize(width, height)
        s.read(0.1)
    act(s)
    status = s.end()
    if os.WIFSIGNALED(status) or os.WEXITSTATUS(status) not in codes:
        fail("%s: status %d, shown %r" % (name, status, s.shown[-300:]))
    if termios.tcgetattr(s.slave) != s.before:
        fail(name + ": the settings of the terminal are left changed")
    if s.shown.count(b"\x1b[?1049h") != s.shown.count(b"\x1b[?1049l"):
        fail(name + ": the other screen is left on")
    if s.shown.rfind(b"\x1b[?25l") > s.shown.rfind(b"\x1b[?25h"):
        fail(name + ": the cursor is left hidden")
    print("%s: exit code %d" % (name, os.WEXITSTATUS(status)))


def main():
    command = [sys.argv[1], "top", "--file", sys.argv[2]]
    for name in ("SIGTERM", "SIGHUP", "SIGINT"):
        case(name, command, lambda s: os.kill(s.pid, getattr(signal, name)), (0, 2))
    case("SIGPIPE", command, lambda s: (os.kill(s.pid, signal.SIGPIPE), s.read(0.3), os.write(s.master, b"q")), (0,))
    case("ctrl-C", command, lambda s: os.write(s.master, b"\x03"), (0, 2))
    case("q", command, lambda s: os.write(s.master, b"q"), (0,))
    picked(sys.argv[1], sys.argv[3])


def picked(tslab, program):
    """tslab alone lists the processes; enter looks into one, a slash filters, q leaves."""
    env = dict(os.environ, TSLAB_OPTIONS="segment=1")
    running = [subprocess.Popen([program, "--no-json", "--no-text", "--seconds", "600"], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(2)]
    try:
        for p in running:
            while subprocess.run([tslab, "stats", "--pid", str(p.pid)], capture_output=True).returncode != 0:
                if p.poll() is not None:
                    fail("%s has ended" % program)
                time.sleep(0.05)

        def look(s):
            wanted = str(running[1].pid).encode()
            os.write(s.master, b"/" + wanted)
            s.until("the filter", lambda: b"/" + wanted in s.shown)
            os.write(s.master, b"\r")
            s.until("the process", lambda: b" every 1s" in s.shown and b"pid " + wanted in s.shown)
            os.write(s.master, b"q")

        case("tslab alone", [tslab], look, (0,), b"Which process?")
        case("tslab alone, left", [tslab], lambda s: os.write(s.master, b"q"), (0,), b"Which process?")
    finally:
        for p in running:
            p.kill()
            p.wait()


main()
