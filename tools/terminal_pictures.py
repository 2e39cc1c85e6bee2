#!/usr/bin/env python3
"""Pictures of tslab and of the demo in a terminal, for the documentation: docs/pictures/tslab-*.png, demo-leak.png.

A program with a leak is started, tslab is run on it in a pseudo terminal, keys are typed, and what the terminal shows then
is drawn: a small terminal of our own understands the escape sequences, its cells become HTML, and chromium makes
the picture. Nothing is drawn that was not on that screen.

    make tslab && cmake --build --preset gcc-release
    tools/terminal_pictures.py --build build/demo demo-leak      # after make demo, which it is a picture of
    tools/terminal_pictures.py [--build build/gcc-release] [--out docs/pictures] [--keep-html] [demo-leak tslab-top ...]
"""
import argparse
import codecs
import fcntl
import html
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

MOST_BYTES = 300 * 1024  # of a picture
COLORS = ["#3b4252", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d8dee9",
          "#6b7689", "#ff7b86", "#b5e890", "#ffd68a", "#82c4ff", "#dd9aee", "#7fd5e0", "#ffffff"]
PLAIN, PAPER = "#d8dee9", "#1b1f27"


def palette(n):
    """One of the 256 colours of xterm."""
    if n < 16:
        return COLORS[n]
    if n >= 232:
        return "#%02x%02x%02x" % ((8 + 10 * (n - 232),) * 3)
    level = [0, 95, 135, 175, 215, 255]
    n -= 16
    return "#%02x%02x%02x" % (level[n // 36], level[n // 6 % 6], level[n % 6])


class Terminal:
    """As much of one as tslab's screen needs; an unknown sequence ends the run, so that nothing is drawn wrong unseen."""

    def __init__(self, width, height):
        self.width, self.height = width, height
        self.decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self.rest = ""
        self.style = self.blank_style()
        self.clear()
        self.replies = b""

    @staticmethod
    def blank_style():
        return {"fg": None, "bg": None, "bold": False, "dim": False, "under": False, "inverse": False}

    def clear(self):
        self.cells = [self.blank_line() for _ in range(self.height)]
        self.x = self.y = 0

    def blank_line(self):
        return [(" ", self.blank_style()) for _ in range(self.width)]

    def text(self):
        return "\n".join("".join(c for c, _ in line).rstrip() for line in self.cells)

    def feed(self, data):
        text = self.rest + self.decode(data)
        self.rest = ""
        token = re.compile(r"\x1b\[([?>=<]?)([0-9;:]*)([ !\"$']*)([@-~])|\x1b[\]P_^].*?(?:\x07|\x1b\\)|\x1b[()][A-Z0-9]|\x1b[=>78cM]|[^\x1b]", re.S)
        at = 0
        while at < len(text):
            m = token.match(text, at)
            if m is None:
                self.rest = text[at:]  # cut in the middle: the rest comes
                if len(self.rest) > 4096:
                    sys.exit("an escape sequence that does not end: %r" % self.rest[:40])
                return
            at = m.end()
            if m.group(4):
                self.control(m.group(1), m.group(2), m.group(3), m.group(4))
            elif m.group(0) == "\x1bM":
                self.y = max(0, self.y - 1)
            elif not m.group(0).startswith("\x1b"):
                self.character(m.group(0))

    def character(self, c):
        if c == "\r":
            self.x = 0
        elif c in "\n\x0b\x0c":
            self.line_feed()
        elif c == "\b":
            self.x = max(0, self.x - 1)
        elif c == "\t":
            self.x = min(self.width - 1, self.x // 8 * 8 + 8)
        elif c >= " ":
            if self.x >= self.width:
                self.x = 0
                self.line_feed()
            self.cells[self.y][self.x] = (c, dict(self.style))
            self.x += 1

    def line_feed(self):
        if self.y + 1 < self.height:
            self.y += 1
        else:
            self.cells = self.cells[1:] + [self.blank_line()]

    def control(self, private, numbers, between, final):
        n = [int(w.split(":")[0]) if w.split(":")[0] else 0 for w in numbers.split(";")] if numbers else []
        first = max(1, n[0]) if n else 1
        line = self.cells[self.y]
        if private or between:
            if private == "?" and final == "h" and 1049 in n:
                self.clear()
            elif (private, between, final) == ("?", "$", "p"):  # which modes are there: none
                self.replies += b"\x1b[?%d;0$y" % (n[0] if n else 0)
        elif final == "m":
            self.graphics(n or [0])
        elif final in "Hf":
            self.y, self.x = min(first, self.height) - 1, min(n[1] if len(n) > 1 and n[1] else 1, self.width) - 1
        elif final in "ABCDEFGd`":
            self.move(final, first)
        elif final == "J":
            last = (n or [0])[0]
            for y in range(self.height):
                for x in range(self.width):
                    before = (y, x) < (self.y, self.x)
                    if last >= 2 or (last == 0 and not before) or (last == 1 and before):
                        self.cells[y][x] = (" ", dict(self.style))
        elif final == "K":
            last = (n or [0])[0]
            for x in range(self.width):
                if last == 2 or (last == 0 and x >= self.x) or (last == 1 and x <= self.x):
                    line[x] = (" ", dict(self.style))
        elif final == "X":
            for x in range(self.x, min(self.width, self.x + first)):
                line[x] = (" ", dict(self.style))
        elif final == "b":
            c = line[max(0, self.x - 1)][0]
            for _ in range(first):
                self.character(c)
        elif final == "P":
            self.cells[self.y] = line[:self.x] + line[self.x + first:] + self.blank_line()[:first]
        elif final == "@":
            self.cells[self.y] = (line[:self.x] + self.blank_line()[:first] + line[self.x:])[:self.width]
        elif final in "LM":
            keep = self.cells[:self.y]
            new = [self.blank_line() for _ in range(first)]
            after = new + self.cells[self.y:] if final == "L" else self.cells[self.y + first:] + new
            self.cells = (keep + after)[:self.height]
        elif final in "ST":
            new = [self.blank_line() for _ in range(first)]
            self.cells = (self.cells + new)[-self.height:] if final == "S" else (new + self.cells)[:self.height]
        elif final == "c":
            self.replies += b"\x1b[?62;22c"
        elif final not in "hlrntqsu":
            sys.exit("an escape sequence that this terminal does not know: %r" % (numbers + final))

    def move(self, final, n):
        if final == "A":
            self.y = max(0, self.y - n)
        elif final == "B":
            self.y = min(self.height - 1, self.y + n)
        elif final == "C":
            self.x = min(self.width - 1, self.x + n)
        elif final == "D":
            self.x = max(0, self.x - n)
        elif final in "G`":
            self.x = min(n, self.width) - 1
        elif final == "d":
            self.y = min(n, self.height) - 1
        else:
            self.x = 0
            self.y = min(self.height - 1, self.y + n) if final == "E" else max(0, self.y - n)

    def graphics(self, n):
        s, k = self.style, 0
        while k < len(n):
            v = n[k]
            if v == 0:
                self.style = s = self.blank_style()
            elif v in (1, 2, 4, 7):
                s[{1: "bold", 2: "dim", 4: "under", 7: "inverse"}[v]] = True
            elif v in (22, 24, 27):
                for name in {22: ("bold", "dim"), 24: ("under",), 27: ("inverse",)}[v]:
                    s[name] = False
            elif v in (39, 49):
                s["fg" if v == 39 else "bg"] = None
            elif v in (38, 48) and n[k + 1:k + 2] == [5]:
                s["fg" if v == 38 else "bg"] = palette(n[k + 2])
                k += 2
            elif v in (38, 48) and n[k + 1:k + 2] == [2]:
                s["fg" if v == 38 else "bg"] = "#%02x%02x%02x" % tuple(n[k + 2:k + 5])
                k += 4
            elif 30 <= v <= 37 or 90 <= v <= 97:
                s["fg"] = COLORS[v - 30 if v < 90 else v - 82]
            elif 40 <= v <= 47 or 100 <= v <= 107:
                s["bg"] = COLORS[v - 40 if v < 100 else v - 92]
            k += 1

    def as_html(self, title):
        rows = []
        for line in self.cells:
            row, run, last = "", "", None
            for c, style in line + [("", None)]:
                if style != last:
                    if run:
                        row += "<span style='%s'>%s</span>" % (css(last), html.escape(run))
                    run, last = "", style
                run += c
            rows.append(row)
        while rows and not re.sub("<[^>]*>", "", rows[-1]).strip():
            rows.pop()
        page = """<!doctype html><meta charset=utf-8><style>
body{margin:0;background:%s;padding:0}
.bar{background:#2a303c;color:#9aa5b8;font:13px/28px 'DejaVu Sans Mono';padding:0 14px;height:28px}
pre{margin:0;padding:12px 14px;color:%s;font:14px/18px 'DejaVu Sans Mono';font-variant-ligatures:none}
</style><div class=bar>$ %s</div><pre>%s</pre>"""
        return page % (PAPER, PLAIN, html.escape(title), "\n".join(rows)), len(rows)


def css(style):
    fg, bg = style["fg"] or PLAIN, style["bg"]
    if style["inverse"]:
        fg, bg = bg or PAPER, fg
    return "color:%s%s%s%s%s" % (fg, ";background:" + bg if bg else "", ";font-weight:bold" if style["bold"] else "",
                                 ";opacity:.65" if style["dim"] else "", ";text-decoration:underline" if style["under"] else "")


def shown(command, width, height, steps, title=None):
    """What a terminal of this size shows of a command after steps of (text to wait for, seconds, keys to type)."""
    terminal = Terminal(width, height)
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", COLORTERM="truecolor")
        os.environ.pop("NO_COLOR", None)
        os.execvp(command[0], command)
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
    os.kill(pid, signal.SIGWINCH)
    alive = True
    for want, seconds, keys in steps:
        end = time.monotonic() + seconds
        limit = end + 60
        while alive and (time.monotonic() < end or want not in terminal.text()):
            if time.monotonic() > limit:
                sys.exit("%s never showed %r but:\n%s" % (" ".join(command), want, terminal.text()))
            if select.select([fd], [], [], 0.1)[0]:
                try:
                    data = os.read(fd, 65536)
                except OSError:
                    data = b""
                alive = data != b""
                terminal.feed(data)
                if terminal.replies:
                    os.write(fd, terminal.replies)
                    terminal.replies = b""
        if want not in terminal.text():
            sys.exit("%s ended without %r:\n%s" % (" ".join(command), want, terminal.text()))
        if keys and alive:
            os.write(fd, keys)
    picture = terminal.as_html
    page = picture(title or " ".join([os.path.basename(command[0])] + command[1:]))
    if alive:
        os.kill(pid, signal.SIGTERM)
    os.waitpid(pid, 0)
    os.close(fd)
    return page


def draw(page, lines, width, out, keep, scale=1.1):
    names = "chromium", "chromium-browser", "google-chrome", "chromium-headless-shell"
    chromium = next(filter(None, map(shutil.which, names)), None)
    if chromium is None:
        sys.exit("chromium is not installed")
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "page.html")
        with open(source, "w", encoding="utf-8") as f:
            f.write(page)
        if keep:
            shutil.copy(source, out[:-4] + ".html")
        size = "%d,%d" % (28 + round(width * 8.43), 28 + 24 + 18 * lines)
        subprocess.run([chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-device-scale-factor=%g" % scale,
                        "--user-data-dir=" + os.path.join(folder, "profile"), "--window-size=" + size, "--screenshot=" + out, "file://" + source],
                       check=True, timeout=120, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if os.path.getsize(out) > MOST_BYTES:
        sys.exit("%s has %d bytes, more than %d" % (out, os.path.getsize(out), MOST_BYTES))
    print("%s: %d bytes" % (out, os.path.getsize(out)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/gcc-release", help="folder with synthetic_bench")
    parser.add_argument("--tslab", default="build/tslab")
    parser.add_argument("--out", default="docs/pictures")
    parser.add_argument("--keep-html", action="store_true")
    parser.add_argument("pictures", nargs="*", default=["demo-leak", "tslab-watch", "tslab-top", "tslab-doctor"], help="which ones; all")
    args = parser.parse_args()
    if "demo-leak" in args.pictures:
        page, lines = shown(["sh", "-c", args.build + "/tslab_demo --leak 2>/dev/null"], 106, 30, [("Statistics of", 1, b"")],
                            "make demo ARGS=--leak")
        draw(page, lines, 106, os.path.join(args.out, "demo-leak.png"), args.keep_html)
        args.pictures.remove("demo-leak")
    if not args.pictures:
        return
    environment = dict(os.environ, TSLAB_OPTIONS="segment=1,profile_bytes=64k,sampling_period=16")
    server = subprocess.Popen([args.build + "/synthetic_bench", "--pattern=leak", "--threads=2", "--req_rate=400", "--duration_s=0", "--progress_s=0"],
                              env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(40)
        pid = str(server.pid)
        tslab = [os.path.abspath(args.tslab)]
        for name, words, width, height, steps in [
                ("tslab-watch", ["watch", "--pid", pid], 104, 27, [("Sampling", 20, b"")]),
                ("tslab-top", ["top", "--pid", pid], 140, 14, [("POST /orders", 4, b"")]),
                ("tslab-doctor", ["doctor", "--pid", pid, "--leak-age", "10"], 128, 60, [("8. Growth", 1, b"")])]:
            if name not in args.pictures:
                continue
            page, lines = shown(tslab + words, width, height, steps)
            draw(page, lines, width, os.path.join(args.out, name + ".png"), args.keep_html, 0.95 if name == "tslab-doctor" else 1.1)
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
