"""The built site in a browser, from a server of our own: the search finds a function, both themes have their colours, no request leaves.

search.py SITE
"""
import functools
import http.server
import os
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.environ["TSLAB_SOURCE_DIR"], "tests", "cli"))
import cdp  # noqa: E402


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def wanted(what, holds):
    if not holds:
        sys.exit("FAILED: " + what)


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=sys.argv[1]))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    base = "http://127.0.0.1:%d/" % server.server_port
    with tempfile.TemporaryDirectory() as profile, cdp.Browser(profile) as browser:
        grounds = []
        for dark in False, True:
            with cdp.Tab(browser, 1280, 900, dark) as tab:
                tab.go(base + "index.html?q=epoch_domain_drain")
                found = "[...document.querySelectorAll('.md-search-result__link')].some(a => a.href.includes('epoch_domain.h.html'))"
                wanted("the search does not find epoch_domain_drain", tab.wait(found))
                grounds.append(sum(map(int, tab.js("getComputedStyle(document.body).backgroundColor").strip("rgba()").split(",")[:3])))
                outside = [url for url in tab.asked if not url.startswith((base, "data:", "blob:"))]
                wanted("the page asks elsewhere: %s" % outside, not outside)
                tab.go("about:blank")
        wanted("light and dark: %s" % grounds, grounds[0] > 700 and grounds[1] < 150)
        browser.call("Browser.close")
    server.shutdown()


main()
