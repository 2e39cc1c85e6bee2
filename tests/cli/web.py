"""web.py TSLAB: the page of tslab web in a browser, against real processes under each pattern of load, tslabd among them.

Each page is left alone until it has drawn, then paused; what it shows is compared with the document that it was given, which
the Go tests compare with what a process tells. What does not depend on the pattern (a label looked at closely, keys, schemes,
widths, accessibility, a page that is loaded again, a process that is stopped, dies and begins anew, a server that does so) is looked
at under the one that fills every part.
"""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

import cdp
from kit import SOURCE, check, finish, series, wait_until

TSLAB = sys.argv[1]
BENCH, TSLABD = (os.path.join(os.environ["TSLAB_BUILD_DIR"], name) for name in ("synthetic_bench", "tslabd"))
LOOKS = tuple((scheme, width) for scheme in ("light", "dark") for width in (1366, 390, 320))
PATTERNS = "burst", "steady", "hotspot", "kernel", "contention", "idle", "leak"
if float(os.environ.get("TSLAB_TEST_SCALE", "1")) < 1:
    PATTERNS = "steady", "idle", "leak"
    LOOKS = ("light", 1366), ("dark", 390)
OF_TSLABD = "idle", "leak" # the others are of synthetic_bench, which runs the same loads
FIGURES = "memory", "by-label", "rate", "causes", "latency"
AXE = os.path.join(SOURCE, "build/axe/axe.min.js")
HELPERS = r"""(() => {
  const all = (s, e = document) => [...e.querySelectorAll(s)], text = e => e.textContent.trim();
  window.seen = {
    tiles: () => Object.fromEntries(all("#tiles > div").map(d => [text(d.children[0]), text(d.children[1])])),
    legend: id => all(`#${id} .legend li`).map(text),
    table: id => all(`#${id} tbody tr`).map(r => all("th, td", r).map(text)),
    findings: () => all("#findings li").map(text),
    about: () => Object.fromEntries(all("#tiles > div").map(d => [text(d.children[0]), all(".about", d).map(text)])),
    drawn: (id, at) => { // pixels of a plot in the colour of one of its series; of all series, at a moment
      const c = document.querySelector(`#${id} canvas`), f = figures.find(f => f.id === id);
      if (!c || !c.width || !f.shown || !f.shown.length) return 0;
      const probe = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
      const copy = document.createElement("canvas"), on = (copy.width = c.width, copy.height = c.height, copy.getContext("2d", { willReadFrequently: true }));
      on.drawImage(c, 0, 0);
      const p = at == null ? on.getImageData(0, 0, c.width, c.height).data : on.getImageData(Math.round(f.x(at) * devicePixelRatio), 0, 1, c.height).data;
      let most = 0;
      for (const s of f.shown) {
        probe.clearRect(0, 0, 1, 1), probe.fillStyle = s.colour, probe.fillRect(0, 0, 1, 1);
        const want = probe.getImageData(0, 0, 1, 1).data;
        let n = 0;
        for (let i = 0; i < p.length; i += 4)
          if (p[i + 3] > 60 && Math.abs(p[i] - want[0]) + Math.abs(p[i + 1] - want[1]) + Math.abs(p[i + 2] - want[2]) < 24) n++;
        most = Math.max(most, n);
      }
      return most;
    },
    wide: () => all("body *").filter(e => !e.closest(".scroll table, .skip") && e.getBoundingClientRect().right > innerWidth + 0.5)
      .map(e => e.tagName + "#" + e.id + "." + e.className),
  };
  addEventListener("securitypolicyviolation", e => console.error("forbidden: " + e.violatedDirective));
})()"""


def load(pattern):
    """A process with a load: tslabd, which shows itself, or another program by TSLAB_OPTIONS."""
    few = ["--threads=2", "--req_rate=400"] if pattern == "leak" else []
    if pattern in OF_TSLABD:
        return subprocess.Popen([TSLABD, "--listen=127.0.0.1:0", "--pattern=" + pattern, *few], stdout=subprocess.DEVNULL)
    env = dict(os.environ, TSLAB_OPTIONS="segment=1,sampling_period=64")
    return subprocess.Popen([BENCH, "--pattern=" + pattern, "--duration_s=0", "--progress_s=0", *few], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class Web:
    """tslab web at a port, or a free one."""

    def __init__(self, *arguments, listen="127.0.0.1:0"):
        self.process = subprocess.Popen([TSLAB, "web", "--listen", listen, "--json", "--leak-age", "0", "--top-labels", "2", *arguments], stdout=subprocess.PIPE, text=True)
        lines = ""
        while "}" not in lines:
            piece = self.process.stdout.readline()
            if not piece:
                raise SystemExit("FAILED: tslab web does not begin")
            lines += piece
        self.url = "http://" + json.loads(lines)["address"] + "/"

    def page(self, pid):
        return "%sprocesses/%d/" % (self.url, pid)

    def ask(self, path, **headers):
        """(status, headers, body)."""
        try:
            with urllib.request.urlopen(urllib.request.Request(self.url + path, headers=headers), timeout=60) as reply:
                return reply.status, reply.headers, reply.read()
        except urllib.error.HTTPError as e:
            return e.code, e.headers, e.read()

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def shows(p, web):
    """Whether a process can be read by now."""
    return wait_until(lambda: web.ask("processes/%d/now.json" % p.pid)[0] == 200)


def open_page(browser, url, **look):
    tab = cdp.Tab(browser, **look)
    tab.call("Page.addScriptToEvaluateOnNewDocument", source=HELPERS)
    tab.go(url)
    check(tab.wait("document.readyState == 'complete' && document.getElementById('state').textContent == 'live'"), url, "never live", tab.complaints,
          tab.js("document.body.innerText"))
    return tab


def pause(tab):
    tab.js("document.getElementById('pause').click()")
    for _ in range(200):
        tab.browser.listen(0.05)
        if not tab.open:
            break
    tab.browser.listen(0.05)
    check(tab.js("document.getElementById('state').textContent") == "paused", "not paused")


def numbers(what, tab):
    """The page has what its document says."""
    d = tab.js("state.doc")
    tiles, about, now = tab.js("seen.tiles()"), tab.js("seen.about()"), d["now"]
    size, count = (lambda v, f=f: tab.js("%s(%s)" % (f, json.dumps(v))) for f in ("bytes", "count"))
    for name, want in (("Live", size(now["live"])), ("Committed", size(now["committed"])), ("Resident", size(now["rss"])), ("Phases", count(now["open"])),
                       ("Leaking labels", count(now["leaking"])), ("Refused", count(now["refused"])),
                       ("Allocations", "-" if now["allocated"] is None else count(now["allocated"]) + "/s")):
        check(tiles.get(name) == want, what, name, tiles.get(name), want)
    check(about["Live"][1].split()[0] == count(now["objects"]) and about["Phases"][1].split()[0] == count(now["draining"]), what, about)
    last = tab.js("state.points[state.points.length - 1]")
    held, named = {name: 0 for _, name in d["names"]}, dict(d["names"])
    for id, committed, *_ in last[-1]:
        if id in named:
            held[named[id]] = committed
    for line in tab.js("seen.legend('by-label')"):
        name = next((n for n in sorted(held, key=len, reverse=True) if line.startswith(n + " ")), None)
        check(line in ("no data yet",) or line.startswith(("others ", "limit ")) or name is not None and line[len(name) + 1:] == size(held[name]), what, line, held)
    rows = tab.js("seen.table('label-rows')")
    check(len(rows) == max(1, len(d["labels"])), what, "labels", rows)
    for row, l in zip(rows, d["labels"]):
        check(row[0] == l["name"] and row[1] == tab.js("bytes(%d)" % l["committed"]) and row[8] == tab.js("count(%d)" % l["draining"]), what, row, l)
    check(len(tab.js("seen.findings()")) == len(d["verdict"]["findings"]), what, "findings", tab.js("seen.findings()"))
    for said, f in zip(tab.js("seen.findings()"), d["verdict"]["findings"]):
        check(said.startswith(f["text"]), what, said, f)
    head = tab.js("document.getElementById('verdict-head').textContent")
    n = d["verdict"]["count"]
    check(head == ("Nothing needs attention" if n == 0 else "1 thing needs attention" if n == 1 else "%d things need attention" % n), what, head, n)
    for id, rows, cells in (
        ("class-rows", d["classes"], lambda c: [c["name"], size(c["live"]), size(c["committed"]), count(c["slabs"])]),
        ("oldest", d["oldest"], lambda p: [p["name"], str(p["era"]), None, size(p["committed"]), count(p["objects"])]),
        ("open-phases", d["open"], lambda p: [p["name"], str(p["era"]), None, size(p["committed"]), size(p["live"])]),
        ("close-rows", d["closes"], lambda c: [c["name"], str(c["era"]), None, size(c["given"]), size(c["fell"]), count(c["escaped"])]),
    ):
        shown = tab.js("seen.table('%s')" % id)
        check(len(shown) == max(1, len(rows)), what, id, shown, rows)
        for row, r in zip(shown, rows):
            check(all(want in (None, said) for said, want in zip(row, cells(r))), what, id, row, r)
    old = [l for l in d["labels"] if l["draining"] > 0]
    ages = {row[0]: row[1:] for row in tab.js("seen.table('ages')")}
    check(len(ages) == max(1, min(12, len(old))), what, "ages", ages, old)
    for l in old if len(old) <= 12 else ():
        check(ages.get(l["name"]) == [count(n) if n else "" for n in l["ages"]], what, "ages", ages, l)
    colours = tab.js("""Object.fromEntries([...document.querySelectorAll('button.label')].map(b => [b.textContent, b.querySelector('i').style.background]))""")
    legend = tab.js("""Object.fromEntries([...document.querySelectorAll('#by-label .legend li, #rate .legend li')].map(e => [e.childNodes[1]?.textContent.trim(), e.querySelector('i')?.style.background]))""")
    for name, colour in legend.items():
        check(name not in colours or colours[name] == colour, what, name, "has two colours:", colour, colours.get(name))
    check(set(legend) & set(colours) or now["committed"] == 0, what, "no label is in a legend", legend)


def in_order(web, what, tab):
    check(not tab.complaints, what, tab.complaints)
    elsewhere = {url for url in tab.asked if not url.startswith((web.url, "data:"))}
    check(not elsewhere and len(tab.asked) > 5, what, "asks elsewhere:", elsewhere)


def under_load(web, pattern, tab):
    with tab:
        check(tab.wait("state.points.length > 4"), pattern, "no points")
        if pattern != "idle":
            check(tab.wait(r"seen.legend('rate').filter(l => / [1-9][\d.]*[kM]?\/s$/.test(l)).length >= 4"), pattern, "rates", tab.js("seen.legend('rate')"))
            before = json.dumps(tab.js("seen.legend('rate')"))
            check(tab.wait(r"seen.legend('causes').some(l => /^(full|miss|null|closed) [1-9]/.test(l))"), pattern, tab.js("seen.legend('causes')"))
            check(tab.wait(r"/^running [1-9]/.test(seen.legend('latency')[0]) && /^waiting [\d.]+ (ns|us|ms)$/.test(seen.legend('latency')[1])"),
                  pattern, tab.js("seen.legend('latency')"))
            check(tab.wait("seen.table('close-rows').length > 1"), pattern, "no ends of phases")
            check(tab.wait("JSON.stringify(seen.legend('rate')) != JSON.stringify(%s)" % before), pattern, "stands still")
        for figure in FIGURES if pattern == "leak" else ("memory", "rate", "causes", "latency") if pattern != "idle" else ("memory",):
            check(tab.wait("seen.drawn('%s') > 20" % figure), pattern, figure, "is blank", tab.js("seen.drawn('%s')" % figure))
        if pattern == "leak":
            check(tab.wait("seen.findings().some(f => f.includes('POST /orders') && f.includes('leaks'))"), "no leak is told", tab.js("seen.findings()"))
            check(tab.wait("seen.table('ages').length == 1 && seen.table('ages')[0][0] == 'POST /orders'"), tab.js("seen.table('ages')"))
            check(tab.wait("seen.table('oldest').length == 5"), tab.js("seen.table('oldest')"))
        pause(tab)
        numbers(pattern, tab)
        in_order(web, pattern, tab)


def accessible(tab, what):
    """The checker finds nothing."""
    if not os.path.exists(AXE):
        print("skipped: the accessibility checker: " + ("scripts/get-axe.sh fetches it" if shutil.which("npm") else "no npm"))
        return
    tab.js(open(AXE).read() + ";true")
    found = tab.js("""axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] })
        .then(r => ({ rules: r.passes.length, bad: r.violations.map(v => v.id + ": " + v.nodes.map(n => n.target + " " + n.failureSummary).join("; ")) }))""")
    check(found["bad"] == [] and found["rules"] > 10, what, found)


def whole(tab):
    """Light and dark, a laptop's width and phones': drawn, nothing hangs over, and axe finds nothing."""
    grounds = set()
    for scheme, width in LOOKS:
        tab.scheme(scheme)
        grounds.add(tab.js("getComputedStyle(document.body).backgroundColor"))
        tab.screen(width, {1366: 900, 390: 800, 320: 568}[width], width < 1366)
        what = "%s at %d" % (scheme, width)
        fits = "innerWidth == %d && document.scrollingElement.scrollWidth <= %d" % (width, width)
        check(tab.wait(fits + " && seen.wide().length == 0"), what, "is", tab.js("document.scrollingElement.scrollWidth"), "wide:", tab.js("seen.wide()"))
        for figure in FIGURES:
            check(tab.wait("seen.drawn('%s') > 20" % figure), what, figure, "is blank")
        if (scheme, width) in (("light", 1366), ("dark", 390)):  # seconds each
            accessible(tab, what)
    check(len(grounds) == 2, "one ground for both schemes:", grounds)
    tab.screen(1366, 900)
    tab.scheme("light")


def chosen(tab):
    """A click on a label shows its phases, code, sizes and growth; the address has it; it can be closed; keys do the same."""
    press = "[...document.querySelectorAll('#label-rows button.label')].find(b => b.textContent == 'POST /orders')"
    tab.js(press + ".click()")
    check(tab.wait("!document.getElementById('chosen').hidden && seen.table('chosen-phases').length > 3"), "no phases of the label")
    check(tab.wait("seen.table('chosen-sites').length >= 1 && seen.table('chosen-sites')[0].length == 3"), "no code", tab.js("seen.table('chosen-sites')"))
    check(tab.wait("seen.table('chosen-sizes')[0].length == 2"), "no sizes", tab.js("seen.table('chosen-sizes')"))
    check("Live bytes: " in tab.js("document.getElementById('chosen-words').textContent"), "no growth")
    check(tab.js("location.hash") == "#label=POST%20%2Forders", tab.js("location.hash"))
    check(tab.js("document.activeElement.id") == "chosen", "the focus is at", tab.js("document.activeElement.id"))
    eras = tab.js("state.doc.chosen.phases.map(p => p.name)")
    check(set(eras) == {"POST /orders"}, "phases of others", set(eras))
    before = tab.js("state.points[0][AT]")
    tab.call("Page.reload")  # what was seen before is there again, from the server
    check(tab.wait("document.readyState == 'complete' && window.seen && typeof state == 'object' && state.points.length > 4"), "no history after a reload")
    check(tab.js("state.points[0][AT]") <= before, "a shorter history after a reload", tab.js("state.points[0][AT]"), before)
    check(tab.wait("!document.getElementById('chosen').hidden && seen.table('chosen-phases').length > 3"), "the label is forgotten by a reload")
    tab.js("document.getElementById('unchoose').focus()")
    tab.press("Enter", 13, "\r")
    check(tab.wait("document.getElementById('chosen').hidden && location.hash == ''"), "is not closed")


def keys(web, pid, tab):
    """The tabulator goes through what can be used, and what has the focus shows it and is seen."""
    tab.js("document.querySelector('.skip').focus()")
    seen = ["Skip to the verdict"]
    name = "(e => e.id || e.getAttribute('aria-label') || e.textContent.trim())"
    for _ in range(100):
        tab.press("Tab", 9)
        if tab.js("document.activeElement == document.body"):  # behind the last
            last = tab.js(name + "([...document.querySelectorAll('a[href], button, [tabindex=\"0\"]')].filter(e => e.offsetParent).pop())")
            check(last in seen, "the focus is lost after", seen[-1], "and has not been at", last)
            break
        seen.append(tab.js(name + "(document.activeElement)"))
        check(tab.js("(s => s.outlineStyle != 'none' && parseFloat(s.outlineWidth) >= 2)(getComputedStyle(document.activeElement))"), seen[-1], "shows no focus")
        check(tab.js("(r => r.bottom > 0 && r.top < innerHeight && r.right > 0 && r.left < innerWidth)(document.activeElement.getBoundingClientRect())"),
              seen[-1], "has the focus where nobody sees it")
    check(seen[:4] == ["Skip to the verdict", "All processes", "range", "pause"], "another order:", seen[:4])
    check("Full diagnosis" in seen and "POST /orders" in seen, "not reached by keys:", seen)
    stays(tab)
    tab.js("document.getElementById('range').focus()")
    tab.press(" ", 32, " ")
    check(tab.js("document.getElementById('range').getAttribute('aria-pressed')") == "true" and tab.js("state.hour"), "a key does not change the range")
    tab.press(" ", 32, " ")
    tab.js("document.querySelector('.skip').focus()")
    tab.press("Enter", 13, "\r")
    check(tab.wait("document.activeElement.id == 'main'"), "the skip link leads elsewhere")
    pauses(web, pid, tab)


def stays(tab):
    """What has the focus keeps it while it is drawn anew; if it goes, the part that it was in has the focus."""
    finding = "[...document.querySelectorAll('#findings button')].find(b => b.textContent.endsWith('POST /orders'))"
    tab.js("window.had = %s; had.focus()" % finding)
    check(tab.wait("!had.isConnected"), "the age of a leak stands still")
    check(tab.js("document.activeElement == %s" % finding), "the focus of a finding goes to", tab.js("document.activeElement.outerHTML.slice(0, 200)"))
    check(tab.js("renew(document.getElementById('findings'), []), document.activeElement.id") == "verdict", "without findings the focus is at",
          tab.js("document.activeElement.outerHTML.slice(0, 200)"))
    tab.js("delete document.getElementById('findings').dataset.key, draw()")


def pauses(web, pid, tab):
    """A key begins and ends a pause, also while an answer is on its way; what came meanwhile is there afterwards."""
    said = "document.getElementById('state').textContent"
    tab.js("""window.fetch = (real => async (...a) => { window.busy = true; const r = await real(...a);
                  await new Promise(done => setTimeout(done, 300)); return r; })(window.fetch)""")
    check(tab.wait("window.busy"), "asks nothing any more")
    tab.js("document.getElementById('pause').focus(), window.busy = false")
    check(tab.wait("window.busy"), "asks nothing any more")
    tab.press(" ", 32, " ")  # while an answer is on its way
    tab.browser.listen(0.9)
    check(tab.js(said) == "paused" and tab.js("document.getElementById('pause').getAttribute('aria-pressed')") == "true", "says", tab.js(said), "in a pause")
    at = "state.points[state.points.length - 1][AT]"
    last = tab.js(at)
    later = lambda: [p[0] for p in json.loads(web.ask("processes/%d/now.json?since=%d" % (pid, last))[2])["points"]]
    check(wait_until(lambda: len(later()) > 2), "the server stands still")
    meanwhile = later()
    check(tab.js(at) == last, "asks in a pause")
    tab.press(" ", 32, " ")
    check(tab.wait(said + " == 'live' && document.getElementById('pause').getAttribute('aria-pressed') == 'false'"), "a key does not end the pause")
    check(tab.wait("%s.every(t => state.points.some(p => p[AT] === t))" % meanwhile), "what came in a pause is missing", meanwhile)


def lives(browser, web, p, tab):
    """A process that is stopped, goes on, dies, and one of the same command that comes after it."""
    state = "document.getElementById('state').textContent"
    p.send_signal(signal.SIGSTOP)
    check(tab.wait(state + " == 'stopped'"), "a stopped process is", tab.js(state))
    check(web.ask("processes/%d/healthz" % p.pid)[0] == 503, "healthz of a stopped process")
    p.send_signal(signal.SIGCONT)
    check(tab.wait(state + " == 'live'"), "does not go on", tab.js(state))
    p.kill()
    p.wait()
    check(tab.wait(state + " == 'ended'"), "a dead process is", tab.js(state))
    check(tab.wait("document.getElementById('next').textContent.startsWith('The process has ended')"), "does not say that it has ended")
    check(len(tab.js("seen.table('label-rows')")) > 2, "its last figures are gone")
    again = load("leak")
    try:
        link = "document.querySelector('#next a')"
        check(tab.wait(link + " && %s.textContent.startsWith('Process %d ')" % (link, again.pid)), "the one that comes after it is not named")
        tab.js(link + ".click()")
        check(tab.wait("location.pathname == '/processes/%d/' && document.readyState == 'complete' && document.getElementById('state').textContent == 'live'" % again.pid),
              "its page does not come")
    finally:
        again.kill()
        again.wait()


def stopped(pid):
    with open("/proc/%d/stat" % pid, encoding="ascii") as f:
        return f.read().rsplit(")", 1)[1].split()[0] == "T"


def servers(tab, web, other):
    """The server stops, which leaves a gap; it ends, and the page says so; one begins in its place, to which labels have other numbers."""
    said = "document.getElementById('state')"
    web.process.send_signal(signal.SIGSTOP)
    check(wait_until(lambda: stopped(web.process.pid)), "does not stop")
    check(tab.wait("Date.now() > %d + 8000" % tab.js("Date.now()")), "no time passes")
    web.process.send_signal(signal.SIGCONT)
    gap = "state.points.findIndex((p, k) => k > 2 && p[AT] - state.points[k - 1][AT] > 5000)"
    check(tab.wait("%s > 0 && state.points.length > %s + 3" % (gap, gap)), "no gap where the server stood still", tab.js("state.points.map(p => p[AT])"))
    check(tab.wait("seen.drawn('memory', state.points[0][AT]) > 0"), "nothing at the first point")
    check(tab.wait("(k => seen.drawn('memory', (state.points[k][AT] + state.points[k - 1][AT]) / 2) == 0)(%s)" % gap), "a line through the gap")
    web.process.kill()
    web.process.wait()
    check(tab.wait("%s.textContent.startsWith('no answer') && %s.textContent.includes('figures of') && %s.className == 'bad'" % (said, said, said)),
          "does not say that nobody answers", tab.js(said + ".textContent"))
    check(len(tab.js("seen.table('label-rows')")) > 2, "the last figures are gone")
    again = Web(listen=web.url[7:-1])
    check(again.ask("processes/%d/now.json" % other)[0] == 200, "the next server does not show another process")
    check(tab.wait(said + ".textContent == 'live' && state.points.length > 2"), "does not recover")
    colours = "Object.fromEntries([...document.querySelectorAll('#label-rows button.label')].map(b => [b.title, b.querySelector('i').style.background]))"
    for figure in "by-label", "rate":  # each label once, in the colour that it has elsewhere
        check(tab.wait("""(colours => { const shown = figures.find(f => f.id == '%s').shown.filter(s => s.id != null);
                  return shown.length > 0 && new Set(shown.map(s => s.name)).size == shown.length &&
                         [...document.querySelectorAll('#%s .legend li')].every((li, k) => !shown[k] || li.querySelector('i').style.background == colours[shown[k].name]); })(%s)"""
                       % (figure, figure, colours)), "labels of the server before", tab.js("figures.find(f => f.id == '%s').shown.map(s => [s.id, s.name])" % figure), tab.js(colours))
    tab.complaints[:] = [c for c in tab.complaints if "net::ERR_" not in c]  # of the time when nobody answered
    return again


def picker(browser, web, names):
    with cdp.Tab(browser) as tab:
        tab.call("Page.addScriptToEvaluateOnNewDocument", source=HELPERS)
        tab.go(web.url)
        check(tab.wait("location.pathname == '/processes' && document.readyState == 'complete' && document.getElementById('state').textContent == 'live'"), "no picker")
        check(tab.wait("%s.every(p => seen.table('processes').some(r => r[0].endsWith(' ' + p)))" % json.dumps([str(p) for p in names])), "processes are missing",
              tab.js("seen.table('processes')"))
        accessible(tab, "picker")
        tab.js("[...document.querySelectorAll('#processes a')].find(a => a.getAttribute('href') == '/processes/%d/').click()" % names[0])
        check(tab.wait("location.pathname == '/processes/%d/'" % names[0]), "a click leads nowhere")
        check(not tab.complaints, tab.complaints)


def guarded(web, pid):
    code, headers, _ = web.ask("processes/%d/" % pid, Host="evil.example")
    check(code == 403, "another host", code)
    code, headers, _ = web.ask("processes/%d/" % pid)
    check("default-src 'self'" in headers["Content-Security-Policy"] and headers["X-Content-Type-Options"] == "nosniff", dict(headers))
    code, headers, body = web.ask("processes/%d/now.json" % pid, **{"Accept-Encoding": "gzip"})
    check(headers["Content-Encoding"] == "gzip" and body[:2] == b"\x1f\x8b", dict(headers))
    check(web.ask("processes/1/")[0] in (403, 404), "a process that shows nothing")


def fleet(web, running):
    """All processes in one scrape, with few labels of each and the sum of the others; and as targets for discovery."""
    code, headers, body = web.ask("metrics")
    text = body.decode()
    check(code == 200 and headers["Content-Type"].startswith("text/plain"), code, dict(headers))
    page = series(text)
    program = lambda p: os.path.basename(p.args[0])
    for pattern, p in running.items():
        own = 'pid="%d",program="%s"' % (p.pid, program(p))
        check(page.get("temporal_slab_exporter_up{%s}" % own) == 1, pattern, "is not up")
        labels = {name: v for name, v in page.items() if name.startswith("temporal_slab_label_committed_bytes{") and own in name}
        check(len(labels) == 3 and any('label="(rest)"' in name for name in labels) or pattern == "idle" and len(labels) < 3, pattern, "labels", labels)
        check(not any(name.startswith("temporal_slab_label_objects_allocated_total{") and own in name and "(rest)" in name for name in page), "a counter of the rest")
    check(not any(v != v for v in page.values()) and "\0" not in text, "a value that is no number")
    if shutil.which("promtool"):
        got = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
        wrong = [line for line in (got.stdout + got.stderr).splitlines() if "non-histogram and non-summary metrics should not have" not in line]
        check(not wrong, "promtool:", wrong)
    code, headers, body = web.ask("sd.json")
    targets = {int(group["labels"]["pid"]): group for group in json.loads(body)}
    for pattern, p in running.items():
        group = targets.get(p.pid)
        check(group and group["labels"]["program"] == program(p) and web.ask(group["labels"]["__metrics_path__"][1:])[0] == 200, pattern, "target", group)
        check(group["targets"] == [web.url[7:-1]], group)


with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile, cdp.Browser(profile) as browser, contextlib.ExitStack() as until:
    running = {pattern: load(pattern) for pattern in PATTERNS}
    for p in running.values():
        until.callback(p.wait)
        until.callback(p.kill)
    web = Web()
    until.callback(lambda: web.end())  # the one there is then
    for pattern, p in running.items():
        check(shows(p, web), pattern, "is not shown")
    tabs = {pattern: open_page(browser, web.page(p.pid), dark=n % 2 == 1) for n, (pattern, p) in enumerate(running.items())}
    for pattern, tab in tabs.items():
        under_load(web, pattern, tab)
    guarded(web, running["leak"].pid)
    fleet(web, running)
    picker(browser, web, [p.pid for p in running.values()])
    for pattern in PATTERNS:
        if pattern not in ("leak", "steady"):
            running[pattern].kill()
            running[pattern].wait()
    with open_page(browser, web.page(running["leak"].pid)) as tab:
        check(tab.wait("state.points.length > 4"), "no points")
        chosen(tab)
        check(tab.wait("document.getElementById('state').textContent == 'live'"), "not live after a reload")
        whole(tab)
        keys(web, running["leak"].pid, tab)
        in_order(web, "leak", tab)
        web = servers(tab, web, running["steady"].pid)
        lives(browser, web, running["leak"], tab)
        in_order(web, "at the end", tab)
finish()
