#!/usr/bin/env python3
"""Pictures of the page of tslab web, for the documentation: docs/pictures/page-{laptop,phone}-{light,dark}.png.

tslabd is started with a load that leaks, tslab web shows it in Chromium without a display, and what a laptop or a phone shows of it
a minute later is the picture; of the phone also the label that was chosen.

    make tslab && cmake --build --preset gcc-release
    tools/page_pictures.py [--build build/gcc-release] [--out docs/pictures] [--seconds 60] [--whole]

--whole draws all of the page, not a screen of it: to be looked at, too long for a document.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(SOURCE, "tests/cli"))
import cdp  # noqa: E402

MOST_BYTES = 300 * 1024  # of a picture
SCREENS = {"laptop": (1366, 1000, False, 1), "phone": (390, 844, True, 1.5)}


def begun(words):
    """A process, and the JSON document that it begins with."""
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    text = ""
    while "}" not in text:
        piece = process.stdout.readline()
        if not piece:
            sys.exit("%s does not begin" % words[0])
        text += piece
    return process, json.loads(text)


def shown(browser, url, screen, scheme):
    width, height, mobile, scale = screen
    tab = cdp.Tab(browser, width, height, scheme == "dark")
    tab.screen(width, height, mobile, scale)
    tab.go(url)
    if not tab.wait("document.readyState == 'complete' && typeof state == 'object' && state.points.length > 5"):
        sys.exit("the page shows nothing: %s" % tab.complaints)
    return tab


def keep(tab, out, whole):
    tab.browser.listen(1.5)
    tab.picture(out, whole)
    size = os.path.getsize(out)
    if size > MOST_BYTES and not whole:
        sys.exit("%s has %d bytes, more than %d" % (out, size, MOST_BYTES))
    print("%s: %d bytes" % (out, size))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/gcc-release", help="folder with tslabd")
    parser.add_argument("--tslab", default="build/tslab")
    parser.add_argument("--out", default="docs/pictures")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--whole", action="store_true")
    args = parser.parse_args()
    server = subprocess.Popen([args.build + "/tslabd", "--listen=127.0.0.1:0", "--pattern=leak", "--threads=2", "--req_rate=400"], stdout=subprocess.PIPE)
    try:
        server.stdout.readline()  # it has begun
        web, said = begun([args.tslab, "web", "--listen", "127.0.0.1:0", "--json", "--leak-age", "10", "--pid", str(server.pid)])
        url = "http://%s/processes/%d/" % (said["address"], server.pid)
        out = os.path.abspath(args.out)
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
            time.sleep(args.seconds)
            os.chdir(profile)  # where the browser writes what it says
            with cdp.Browser(profile) as browser:
                for name, screen in SCREENS.items():
                    for scheme in "light", "dark":
                        with shown(browser, url, screen, scheme) as tab:
                            keep(tab, os.path.join(out, "page-%s-%s.png" % (name, scheme)), args.whole)
                            if name == "phone" and scheme == "light":
                                tab.js("choose('POST /orders')")
                                tab.wait("document.querySelectorAll('#chosen-sites tbody th').length > 0")
                                tab.js("document.getElementById('chosen').scrollIntoView(), document.activeElement.blur()")
                                keep(tab, os.path.join(out, "page-phone-label.png"), args.whole)
        web.terminate()
        web.wait()
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
