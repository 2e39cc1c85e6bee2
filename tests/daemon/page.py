"""The page of tslabd in a browser, against a real daemon under each pattern of load.

Under each pattern the page is left alone until it has drawn, then paused; what it shows is compared with the very answers
it was given. What does not depend on the pattern (keys, schemes, widths, accessibility, a daemon that ends) is looked at
under the one that fills every part of the page.
"""
import contextlib
import json
import os
import re
import shutil
import sys
import tempfile

import cdp
from kit import SOURCE, Daemon, check, finish, series

PATTERNS = "burst", "steady", "hotspot", "kernel", "contention", "idle", "leak"
FIGURES = "by-label", "by-phase", "rate", "causes", "latency"
AXE = os.path.join(SOURCE, "build/axe/axe.min.js")
PLOTS = os.path.exists(os.path.join(SOURCE, "build/uplot/uPlot.iife.min.js"))


def skipped(what, script):
    print("skipped: %s: %s" % (what, script + " fetches it" if shutil.which("npm") else "no npm"))


# What the page says, as the tests read it. colourful: pixels of a canvas that have the colour of its largest series.
HELPERS = r"""(() => {
  const all = (s, e = document) => [...e.querySelectorAll(s)], text = e => e.textContent.trim();
  window.seen = {
    tiles: () => Object.fromEntries(all("#tiles > div").map(d => [text(d.children[0]), text(d.children[1])])),
    legend: id => all(`#${id} .legend li`).map(text),
    table: id => all(`#${id} tbody tr`).map(r => all("th, td", r).map(text)),
    timeline: () => all("#timeline li").map(text),
    colourful: id => {
      const c = document.querySelector(`#${id} canvas`), f = figures.find(f => f.id === id);
      if (!c || !f.shown || !f.shown.length) return 0;
      const peak = s => Math.max(0, ...s.values.map(v => v || 0));
      const k = f.shown.reduce((best, s, n) => peak(s) > peak(f.shown[best]) ? n : best, 0);
      const probe = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
      probe.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--c" + k % 8).trim();
      probe.fillRect(0, 0, 1, 1);
      const want = probe.getImageData(0, 0, 1, 1).data, copy = document.createElement("canvas");
      copy.width = c.width, copy.height = c.height;
      const on = copy.getContext("2d");
      on.drawImage(c, 0, 0);
      const p = on.getImageData(0, 0, copy.width, copy.height).data;
      let n = 0;
      for (let i = 0; i < p.length; i += 4)
        if (p[i + 3] > 60 && Math.abs(p[i] - want[0]) + Math.abs(p[i + 1] - want[1]) + Math.abs(p[i + 2] - want[2]) < 24) n++;
      return n;
    },
    wide: () => all("body *").filter(e => !e.closest(".scroll table, .skip, .u-wrap") && e.getBoundingClientRect().right > innerWidth + 0.5)
      .map(e => e.tagName + "#" + e.id + "." + e.className),
  };
  addEventListener("securitypolicyviolation", e => console.error("forbidden: " + e.violatedDirective));
})()"""


def scaled(v, base, units):
    """A number in the words of the page."""
    k = 0
    while abs(v) >= base and k < len(units) - 1:
        v, k = v / base, k + 1
    return ("%.0f" % v if k == 0 else "%.*f" % (2 if v < 10 else 1 if v < 100 else 0, v)) + units[k]


def size(v):
    return scaled(v, 1024, [" B", " KiB", " MiB", " GiB"])


def count(v):
    return scaled(v, 1000, ["", "k", "M", "G"])


def same(said, want):
    """Equal, but for the last digit: two languages round a half differently."""
    number = lambda s: re.fullmatch(r"([^\d-]*)(-?[\d.]+)(.*)", s)
    a, b = number(said), number(want)
    return said == want or a and b and (a[1], a[3]) == (b[1], b[3]) and abs(float(a[2]) - float(b[2])) <= 1.001 * 10 ** -len(a[2].partition(".")[2])


def labelled(page, name, key):
    found = {}
    for full, value in page.items():
        match = re.match(r'temporal_slab_%s\{.*?\b%s="((?:[^"\\]|\\.)*)"' % (name, key), full)
        if match:
            found[match[1]] = found.get(match[1], 0) + value
    return found


def total(page, name):
    return sum(v for full, v in page.items() if full.partition("{")[0] == "temporal_slab_" + name)


def open_page(browser, d, **look):
    tab = cdp.Tab(browser, **look)
    tab.call("Page.addScriptToEvaluateOnNewDocument", source=HELPERS)
    tab.go(d.url)
    check(tab.wait("document.readyState == 'complete' && document.getElementById('state').textContent == 'live'"), d.pattern, "never live",
          tab.complaints, tab.js("document.body.innerText"))
    return tab


def pause(tab):
    """Stands still; what was asked before has been shown."""
    tab.js("document.getElementById('pause').click()")
    for _ in range(200):
        tab.browser.listen(0.05)
        if not tab.open:
            break
    tab.browser.listen(0.05)
    check(tab.js("document.getElementById('state').textContent") == "paused", "not paused:", tab.js("document.getElementById('state').textContent"))


def in_order(d, tab):
    """Nothing was complained of, and nobody else was asked."""
    check(not tab.complaints, d.pattern, tab.complaints)
    elsewhere = {url for url in tab.asked if not url.startswith((d.url, "data:"))}
    check(not elsewhere and len(tab.asked) > 6, d.pattern, "asks elsewhere:", elsewhere)


def numbers(d, tab):
    """The page has what /metrics and /reports.json said."""
    page, reports = series(tab.body(d.url + "metrics")), json.loads(tab.body(d.url + "reports.json"))
    tiles, what = tab.js("seen.tiles()"), d.pattern
    for tile, name in ("Resident", "rss_bytes"), ("Committed", "committed_bytes"), ("Live", "live_bytes"):
        check(same(tiles.get(tile, "none"), size(total(page, name))), what, tile, tiles.get(tile), total(page, name))
    check(same(tiles["Objects"], count(total(page, "live_objects"))), what, "objects", tiles)
    objects = {label: n for label, n in labelled(page, "label_unexpected_draining_objects", "label").items() if n}
    check(tiles["Leaking labels"] == str(len(objects)), what, "leaking labels", tiles, objects)
    held = labelled(page, "label_committed_bytes", "label")
    for line in tab.js("seen.legend('by-label')"):
        name = next((n for n in held if line.startswith(n + " ")), None)
        check(name is not None and same(line[len(name) + 1:], size(held[name])) or line.startswith("no label held"), what, line, held)
    draining, in_phases = total(page, "label_draining_bytes"), total(page, "label_committed_bytes")
    want = ["open phases " + size(max(0, in_phases - draining)), "draining phases " + size(draining),
            "kept warm " + size(max(0, total(page, "committed_bytes") - in_phases))]
    got = tab.js("seen.legend('by-phase')")
    check(len(got) == 3 and all(map(same, got, want)), what, "by phase", got, want)
    allocators = sorted(n for n, v in labelled(page, "label_objects_allocated_total", "label").items() if v > 0)
    rates = tab.js("seen.legend('rate')")
    check(len(rates) == max(1, len(allocators)) and all(map(lambda line, n: line.startswith(n + " "), sorted(rates), allocators)), what, rates, allocators)
    used = [n for n, v in labelled(page, "class_new_slabs_total", "class").items() if v > 0]
    rows = tab.js("seen.table('classes')")
    live = labelled(page, "class_live_bytes", "class")
    slabs = labelled(page, "class_net_slabs", "class")
    check(len(rows) == max(1, len(used)), what, "classes", rows, used)
    for row, n in zip(rows, used):
        check(len(row) == 7 and same(row[1], size(live[n])) and same(row[3], count(slabs[n])), what, row, live[n], slabs[n])
    rows = tab.js("seen.table('receipts')")
    check(len(rows) == max(1, len(reports["receipts"])), what, "receipts", rows)
    for row, r in zip(rows, reports["receipts"]):
        check(row[:2] == [r["label"], str(r["era"])] and same(row[3], size(r["madvise_bytes"])), what, row, r)
    rows = tab.js("seen.table('leaks')")
    check(len(rows) == max(1, min(10, len(objects))), what, "leaks", rows)
    phases, held = (labelled(page, "label_unexpected_draining_" + what, "label") for what in ("phases", "bytes"))
    for row in rows if objects else ():
        check(row[0] in objects and same(row[1], count(phases[row[0]])) and same(row[2], count(objects[row[0]])) and same(row[3], size(held[row[0]])), what, row)
    rows = tab.js("seen.timeline()")
    check(len(rows) == max(1, len(reports["phases"])), what, "timeline", rows)
    left = reports["phase_count"] - len(reports["phases"])
    said = tab.js("document.getElementById('more-phases').textContent")
    check(said.startswith("and %s more" % count(left)) if left > 0 else said == "", what, "phases left out", left, said)
    for row, r in zip(rows, reports["phases"]):
        check(row.startswith((r["label"] or "(unlabeled)") + ("open " if r["open"] else "draining ")), what, row, r)


def drawn(d, tab, figures, when=""):
    for id in figures if PLOTS else ():
        check(tab.wait("seen.colourful('%s') > 40" % id), d.pattern, id, "is blank", when, tab.js("seen.colourful('%s')" % id))


def begin(browser, pattern, dark, until):
    """A daemon and a page that looks at it."""
    d = until.enter_context(Daemon("--pattern=" + pattern, "--leak_threshold_s=0", "--sampling_period=64"))
    return d, until.enter_context(open_page(browser, d, dark=dark))


def under_load(browser, d, tab):
    """One pattern: draws, moves, complains of nothing, and tells what it was told."""
    pattern = d.pattern
    with d, tab:
        check(tab.wait("seen.legend('rate').length > 0"), pattern, "no figure")
        if pattern != "idle":
            check(tab.wait(r"seen.legend('rate').filter(l => / [1-9][\d.]*[kM]?\/s$/.test(l)).length >= 4"), pattern, tab.js("seen.legend('rate')"))
            before = tab.js("seen.legend('rate')")
            check(tab.wait(r"seen.legend('causes').some(l => /^(full|miss|null|closed) [1-9]/.test(l))"), pattern, tab.js("seen.legend('causes')"))
            check(tab.wait(r"/^running [1-9]/.test(seen.legend('latency')[0]) && /^waiting [\d.]+ (ns|us|ms)$/.test(seen.legend('latency')[1])"),
                  pattern, tab.js("seen.legend('latency')"))
            check(tab.wait("seen.table('receipts').length > 1"), pattern, "no receipts")
            check(tab.wait("JSON.stringify(seen.legend('rate')) != JSON.stringify(%s)" % json.dumps(before)), pattern, "stands still")
            drawn(d, tab, ("rate", "causes", "latency") + (("by-phase",) if pattern != "kernel" else ()))
        if pattern == "leak":
            check(tab.wait("seen.table('leaks').length == 1 && seen.table('leaks')[0][0] == 'POST /orders'"), tab.js("seen.table('leaks')"))
            check(tab.wait("seen.timeline().length == 48"), "timeline", tab.js("seen.timeline().length"))
            drawn(d, tab, FIGURES)
        pause(tab)
        numbers(d, tab)
        in_order(d, tab)
        if pattern == "leak":
            whole(d, tab)
            keys(tab)
            ends(browser, d, tab)


def whole(d, tab):
    """Light and dark, a laptop's width and phones': drawn, nothing hangs over, and axe finds nothing."""
    if os.path.exists(AXE):
        tab.js(open(AXE).read() + ";true")
    else:
        skipped("the accessibility checker", "scripts/get-axe.sh")
    grounds = set()
    for scheme in "light", "dark":
        tab.scheme(scheme)
        grounds.add(tab.js("getComputedStyle(document.body).backgroundColor"))
        for width, height, mobile in (1366, 900, False), (360, 740, True), (320, 568, True):
            tab.screen(width, height, mobile)
            what = "%s at %d" % (scheme, width)
            fits = "innerWidth == %d && document.scrollingElement.scrollWidth <= %d" % (width, width)  # plots follow by an event
            check(tab.wait(fits + " && seen.wide().length == 0"), what, "is", tab.js("document.scrollingElement.scrollWidth"), "wide:", tab.js("seen.wide()"))
            drawn(d, tab, FIGURES, what)
            if os.path.exists(AXE) and (scheme, width) in (("light", 1366), ("dark", 360)):  # seconds each
                found = tab.js("""axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] })
                    .then(r => ({ rules: r.passes.length, bad: r.violations.map(v => v.id + ": " + v.nodes.map(n => n.target + " " + n.failureSummary).join("; ")) }))""")
                check(found["bad"] == [] and found["rules"] > 20, what, found)
    check(len(grounds) == 2, "one ground for both schemes:", grounds)
    tab.screen(1366, 900)


def keys(tab):
    """The tabulator goes through all that can be used, in the order it is seen, and what has the focus shows it."""
    where = "(e => e.id || e.getAttribute('aria-label') || e.textContent)(document.activeElement)"
    check(tab.wait("Date.now() / 1000 - samples[samples.length - 1].t > GAP_S + 0.5"), "the pause is no gap")
    tab.js("document.activeElement.blur(), scrollTo(0, 0)")
    want = ["Skip to the numbers", "pause", "Leak suspects", "Last receipts", "Size classes", "metrics", "stats.json", "reports.json", "doctor"]
    for name in want:
        tab.press("Tab", 9)
        check(tab.js(where) == name, "focus is at", tab.js(where), "not at", name)
        check(tab.js("(s => s.outlineStyle != 'none' && parseFloat(s.outlineWidth) >= 2)(getComputedStyle(document.activeElement))"), name, "shows no focus")
        check(tab.js("(r => r.left >= 0 && r.right <= innerWidth && r.bottom > 0 && r.top < innerHeight)(document.activeElement.getBoundingClientRect())"),
              name, "has the focus where nobody sees it")
    tab.js("document.querySelector('.skip').focus()")
    tab.press("Enter", 13, "\r")
    check(tab.wait("document.activeElement.id == 'main'"), "the skip link leads to", tab.js(where))
    tab.js("document.getElementById('pause').focus()")
    tab.press(" ", 32, " ")
    check(tab.wait("document.getElementById('pause').getAttribute('aria-pressed') == 'false' && document.getElementById('state').textContent == 'live'"),
          "a key does not end the pause")
    gap(tab)
    tab.js("""window.fetch = (real => async (...a) => { window.busy = true; const r = await real(...a);
                  await new Promise(done => setTimeout(done, 300)); return r; })(window.fetch)""")
    check(tab.wait("window.busy"), "asks nothing any more")
    tab.js("document.getElementById('pause').click()")  # while an answer is on its way
    tab.browser.listen(0.9)
    check(tab.js("document.getElementById('state').textContent") == "paused", "says", tab.js("document.getElementById('state').textContent"), "in a pause")
    tab.js("document.getElementById('pause').click()")


def gap(tab):
    """After a pause nothing was measured for a while: lines end and begin anew, and no rate is of the time between."""
    # Measured twice before and after, and drawn; on a busy machine other answers are late, too, and leave gaps.
    tab.js("""window.gap = () => samples.findIndex((s, n) => !s.m && [-2, -1, 1, 2].every(by => samples[n + by] && samples[n + by].m));""")
    check(tab.wait("gap() > 0 && ['by-label', 'rate'].every(id => figures.find(f => f.id == id).shown[0].values.length > gap() + 2)"),
          "no gap after a pause", tab.js("samples.map(s => !!s.m)"))
    found = tab.js("""(() => { const at = gap(), of = id => figures.find(f => f.id == id).shown[0].values;
        return { held: of("by-label").slice(at - 1, at + 2), rate: of("rate").slice(at - 1, at + 3),
                 drawn: figures.map(f => f.plot ? f.plot.data.slice(1).every(line => line[at] === null) : true), first: at, last: samples.length - 1 }; })()""")
    check(0 < found["first"] < found["last"] and all(found["drawn"]), "a line through the gap", found)
    held, rate = found["held"], found["rate"]
    check(held[0] is not None and held[1] is None and held[2] is not None, "held in the gap", held)
    check(rate[0] is not None and rate[1] is None and rate[2] is None and rate[3] is not None, "a rate over the gap", rate)


def ends(browser, d, tab):
    """The daemon ends: the page says so. Another begins there: it goes on, with what that one has."""
    state = "document.getElementById('state')"
    d.process.kill()
    d.process.wait()
    check(tab.wait(state + ".textContent.startsWith('no answer') && %s.className == 'bad'" % state), "does not say that nobody answers", tab.js(state + ".textContent"))
    with Daemon("--pattern=hotspot", listen="127.0.0.1:%d" % d.port):
        check(tab.wait(state + ".textContent == 'live'"), "does not recover")
        check(tab.wait("document.getElementById('source').textContent == 'pattern hotspot' && seen.table('classes').length > 1"), "shows the one before")
        check(tab.wait("seen.legend('rate').some(l => l.startsWith('GET /popular')) && !seen.legend('rate').some(l => l.startsWith('POST /orders'))"),
              "mixes the two", tab.js("seen.legend('rate')"))


if not PLOTS:
    skipped("plots", "scripts/get-uplot.sh")
with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile, cdp.Browser(profile) as browser:
    with contextlib.ExitStack() as until:  # all at a time: each second of a page is mostly waiting
        running = [begin(browser, pattern, number % 2 == 1, until) for number, pattern in enumerate(sys.argv[1:] or PATTERNS)]
        for d, tab in running:
            under_load(browser, d, tab)
finish()
