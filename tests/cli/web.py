"""web.py TSLAB: the page of tslab web in a browser, against real processes under each pattern of load.

Each page is left alone until it has drawn, then paused; what it shows is compared with the document that it was given, which
the Go tests compare with what a process tells. What does not depend on the pattern (a label looked at closely, keys, schemes,
widths, accessibility, a page that is loaded again, a process that is stopped, dies and begins anew) is looked at under the one
that fills every part.
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
BENCH = os.path.join(os.environ["TSLAB_BUILD_DIR"], "synthetic_bench")
PATTERNS = "burst", "steady", "hotspot", "kernel", "contention", "leak"
FIGURES = "memory", "by-label", "rate", "causes", "latency"
AXE = os.path.join(SOURCE, "build/axe/axe.min.js")
HELPERS = r"""(() => {
  const all = (s, e = document) => [...e.querySelectorAll(s)], text = e => e.textContent.trim();
  window.seen = {
    tiles: () => Object.fromEntries(all("#tiles > div").map(d => [text(d.children[0]), text(d.children[1])])),
    legend: id => all(`#${id} .legend li`).map(text),
    table: id => all(`#${id} tbody tr`).map(r => all("th, td", r).map(text)),
    findings: () => all("#findings li").map(text),
    drawn: id => { // pixels of a plot in the colour of one of its series
      const c = document.querySelector(`#${id} canvas`), f = figures.find(f => f.id === id);
      if (!c || !c.width || !f.shown || !f.shown.length) return 0;
      const probe = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
      const copy = document.createElement("canvas"), on = (copy.width = c.width, copy.height = c.height, copy.getContext("2d", { willReadFrequently: true }));
      on.drawImage(c, 0, 0);
      const p = on.getImageData(0, 0, c.width, c.height).data;
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


def load(pattern, *more, options=""):
    env = dict(os.environ, TSLAB_OPTIONS="segment=1,sampling_period=64" + options)
    return subprocess.Popen([BENCH, "--pattern=" + pattern, "--duration_s=0", "--progress_s=0", *more], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class Web:
    """tslab web at a free port."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen([TSLAB, "web", "--listen", "127.0.0.1:0", "--json", "--leak-age", "0", "--top-labels", "2", *arguments], stdout=subprocess.PIPE, text=True)
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
        self.process.terminate()
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
    tiles = tab.js("seen.tiles()")
    for name, value in ("Live", "live"), ("Committed", "committed"), ("Resident", "rss"):
        want = tab.js("bytes(%d)" % d["now"][value])
        check(tiles.get(name) == want, what, name, tiles.get(name), want)
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
    check(len(tab.js("seen.table('class-rows')")) == max(1, len(d["classes"])), what, "classes")
    check(len(tab.js("seen.table('oldest')")) == max(1, len(d["oldest"])), what, "oldest", d["oldest"])
    check(len(tab.js("seen.table('close-rows')")) == max(1, len(d["closes"])), what, "closes")
    colours = tab.js("""Object.fromEntries([...document.querySelectorAll('button.label')].map(b => [b.textContent, b.querySelector('i').style.background]))""")
    legend = tab.js("""Object.fromEntries([...document.querySelectorAll('#by-label .legend li, #rate .legend li')].map(e => [e.childNodes[1]?.textContent.trim(), e.querySelector('i')?.style.background]))""")
    for name, colour in legend.items():
        check(name not in colours or colours[name] == colour, what, name, "has two colours:", colour, colours.get(name))
    check(set(legend) & set(colours), what, "no label is in a legend", legend)


def in_order(web, what, tab):
    check(not tab.complaints, what, tab.complaints)
    elsewhere = {url for url in tab.asked if not url.startswith((web.url, "data:"))}
    check(not elsewhere and len(tab.asked) > 5, what, "asks elsewhere:", elsewhere)


def under_load(web, pattern, tab):
    with tab:
        check(tab.wait(r"seen.legend('rate').filter(l => / [1-9][\d.]*[kM]?\/s$/.test(l)).length >= 2"), pattern, "rates", tab.js("seen.legend('rate')"))
        check(tab.wait("state.points.length > 4"), pattern, "no points")
        for figure in FIGURES if pattern == "leak" else ("memory", "rate"):
            check(tab.wait("seen.drawn('%s') > 20" % figure), pattern, figure, "is blank", tab.js("seen.drawn('%s')" % figure))
        if pattern == "leak":
            check(tab.wait("seen.findings().some(f => f.includes('POST /orders') && f.includes('leaks'))"), "no leak is told", tab.js("seen.findings()"))
            check(tab.wait("seen.table('ages').length == 1 && seen.table('ages')[0][0] == 'POST /orders'"), tab.js("seen.table('ages')"))
            check(tab.wait("seen.table('oldest').length == 5"), tab.js("seen.table('oldest')"))
        pause(tab)
        numbers(pattern, tab)
        in_order(web, pattern, tab)


def whole(tab):
    """Light and dark, a laptop's width and phones': drawn, nothing hangs over, and axe finds nothing."""
    if os.path.exists(AXE):
        tab.js(open(AXE).read() + ";true")
    else:
        print("skipped: the accessibility checker: scripts/get-axe.sh fetches it")
    grounds = set()
    for scheme in "light", "dark":
        tab.scheme(scheme)
        grounds.add(tab.js("getComputedStyle(document.body).backgroundColor"))
        for width, height, mobile in (1366, 900, False), (390, 800, True), (320, 568, True):
            tab.screen(width, height, mobile)
            what = "%s at %d" % (scheme, width)
            fits = "innerWidth == %d && document.scrollingElement.scrollWidth <= %d" % (width, width)
            check(tab.wait(fits + " && seen.wide().length == 0"), what, "is", tab.js("document.scrollingElement.scrollWidth"), "wide:", tab.js("seen.wide()"))
            for figure in FIGURES:
                check(tab.wait("seen.drawn('%s') > 20" % figure), what, figure, "is blank")
            if os.path.exists(AXE) and (scheme, width) in (("light", 1366), ("dark", 390)):
                found = tab.js("""axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] })
                    .then(r => ({ rules: r.passes.length, bad: r.violations.map(v => v.id + ": " + v.nodes.map(n => n.target + " " + n.failureSummary).join("; ")) }))""")
                check(found["bad"] == [] and found["rules"] > 20, what, found)
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


def keys(tab):
    """The tabulator goes through what can be used, and what has the focus shows it and is seen."""
    tab.js("document.querySelector('.skip').focus()")
    seen = ["Skip to the verdict"]
    for _ in range(25):
        tab.press("Tab", 9)
        seen.append(tab.js("(e => e.id || e.getAttribute('aria-label') || e.textContent.trim())(document.activeElement)"))
        check(tab.js("(s => s.outlineStyle != 'none' && parseFloat(s.outlineWidth) >= 2)(getComputedStyle(document.activeElement))"), seen[-1], "shows no focus")
        check(tab.js("(r => r.bottom > 0 && r.top < innerHeight && r.right > 0 && r.left < innerWidth)(document.activeElement.getBoundingClientRect())"),
              seen[-1], "has the focus where nobody sees it")
    check(seen[:4] == ["Skip to the verdict", "All processes", "range", "pause"], "another order:", seen[:4])
    check("The whole diagnosis" in seen and "POST /orders" in seen, "not reached by keys:", seen)
    tab.js("document.getElementById('range').focus()")
    tab.press(" ", 32, " ")
    check(tab.js("document.getElementById('range').getAttribute('aria-pressed')") == "true" and tab.js("state.hour"), "a key does not change the range")


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
    again = load("leak", "--threads=2", "--req_rate=400", options=",profile_bytes=64k")
    try:
        link = "document.querySelector('#next a')"
        check(tab.wait(link + " && %s.textContent.startsWith('Process %d ')" % (link, again.pid)), "the one that comes after it is not named")
        tab.js(link + ".click()")
        check(tab.wait("location.pathname == '/processes/%d/' && document.readyState == 'complete' && document.getElementById('state').textContent == 'live'" % again.pid),
              "its page does not come")
    finally:
        again.kill()
        again.wait()


def picker(browser, web, names):
    with cdp.Tab(browser) as tab:
        tab.call("Page.addScriptToEvaluateOnNewDocument", source=HELPERS)
        tab.go(web.url)
        check(tab.wait("location.pathname == '/processes' && document.readyState == 'complete' && document.getElementById('state').textContent == 'live'"), "no picker")
        check(tab.wait("%s.every(p => seen.table('processes').some(r => r[0].endsWith(' ' + p)))" % json.dumps([str(p) for p in names])), "processes are missing",
              tab.js("seen.table('processes')"))
        if os.path.exists(AXE):
            tab.js(open(AXE).read() + ";true")
            found = tab.js("axe.run(document).then(r => r.violations.map(v => v.id + ': ' + v.nodes.map(n => n.target).join(' ')))")
            check(found == [], "picker", found)
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
    bench = os.path.basename(BENCH)
    for pattern, p in running.items():
        own = 'pid="%d",program="%s"' % (p.pid, bench)
        check(page.get("temporal_slab_exporter_up{%s}" % own) == 1, pattern, "is not up")
        labels = {name: v for name, v in page.items() if name.startswith("temporal_slab_label_committed_bytes{") and own in name}
        check(len(labels) == 3 and any('label="(rest)"' in name for name in labels), pattern, "labels", labels)
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
        check(group and group["labels"]["program"] == bench and web.ask(group["labels"]["__metrics_path__"][1:])[0] == 200, pattern, "target", group)
        check(group["targets"] == [web.url[7:-1]], group)


with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile, cdp.Browser(profile) as browser, contextlib.ExitStack() as until:
    running = {pattern: load(pattern, options=",profile_bytes=64k" if pattern == "leak" else "", *(("--threads=2", "--req_rate=400") if pattern == "leak" else ()))
               for pattern in PATTERNS}
    for p in running.values():
        until.callback(p.wait)
        until.callback(p.kill)
    web = Web()
    until.callback(web.end)
    for pattern, p in running.items():
        check(shows(p, web), pattern, "is not shown")
    tabs = {pattern: open_page(browser, web.page(p.pid), dark=n % 2 == 1) for n, (pattern, p) in enumerate(running.items())}
    for pattern, tab in tabs.items():
        under_load(web, pattern, tab)
    guarded(web, running["leak"].pid)
    fleet(web, running)
    picker(browser, web, [p.pid for p in running.values()])
    for pattern in PATTERNS:
        if pattern != "leak":
            running[pattern].kill()
            running[pattern].wait()
    with open_page(browser, web.page(running["leak"].pid)) as tab:
        check(tab.wait("state.points.length > 4"), "no points")
        chosen(tab)
        check(tab.wait("document.getElementById('state').textContent == 'live'"), "not live after a reload")
        whole(tab)
        keys(tab)
        in_order(web, "leak", tab)
        lives(browser, web, running["leak"], tab)
finish()
