"""What tslab says of a process that has several allocators, more labels than rows, very many phases, and figures that are not the latest; and whether
serve and push go on when a process ends, or runs another program. Arguments: tslab, the program outside.c."""
import http.server
import json
import re
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request

from kit import check, finish, wait_until

TSLAB, PROGRAM = sys.argv[1:]


class Program:
    def __init__(self):
        self.p = subprocess.Popen([PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = str(self.p.pid)
        check(self.p.stdout.readline() == "done\n", "the program does not begin")

    def does(self, step):
        self.p.stdin.write(step + "\n")
        self.p.stdin.flush()
        check(self.p.stdout.readline() == "done\n", step)

    def end(self):
        self.p.kill()
        self.p.communicate()


def said(*arguments, code=(0, 1)):
    got = subprocess.run([TSLAB, *arguments], capture_output=True, text=True, timeout=300)
    check(got.returncode in code, arguments, got.returncode, got.stderr)
    return got.stdout


def stats(p, *more):
    return json.loads(said("stats", "--pid", p.pid, "--json", *more))


def all_of_it(p):
    whole, parts = stats(p), [stats(p, "--allocator", str(n)) for n in range(3)]
    check(len(whole["by_allocator"]) == 3 and [d["allocator"] for d in whole["by_allocator"]] == [0, 1, 2], "allocators")
    for key in "live_objects", "committed_bytes", "objects_allocated", "phases_ended":
        check(whole[key] == sum(d[key] for d in parts), key, whole[key])
    check(whole["live_objects"] == 1001 and whole["objects_allocated"] == 7001, whole["live_objects"], whole["objects_allocated"])
    labels = [r for r in whole["labels"] if r["allocator"] == 2]
    check(whole["labels_left_out"] == 91 and len(labels) == 512, whole["labels_left_out"], len(labels))
    check(sum(r["objects_allocated"] for r in labels) == 6000 and labels[-1]["label"] == "(rest)", "the labels' sum")
    text = said("stats", "--pid", p.pid)
    check("3 allocators" in text and "91 labels have no row of their own" in text, text)
    doctor = said("doctor", "--pid", p.pid)
    check(all("\nallocator %d: " % n in doctor for n in range(3)), doctor)
    check(doctor.count("every label has an id") == 2 and "602 of 4096 ids are in use; 91 labels have no row" in doctor, doctor)
    top = json.loads(said("top", "--pid", p.pid, "--classes", "--json"))
    check(top["allocators"] == 3 and top["rows"][0]["allocator"] == 1, top["allocators"], top["rows"][0]["allocator"])
    for open_ in [], ["--openmetrics"]:
        page = said("export", "prometheus", "--pid", p.pid, *open_)
        check(all('temporal_slab_live_objects{allocator="%d"}' % n in page for n in range(3)), "series of each")
        check('temporal_slab_labels_left_out{allocator="2"} 91' in page and "NaN" not in page, "labels left out, sums")
    with open("whole.json", "w", encoding="utf-8") as f:
        json.dump(whole, f)
    check("3 allocators" in said("stats", "--file", "whole.json"), "the document is not read back")
    check("Nothing regressed" in said("diff", "whole.json", "whole.json") or "the same publication" in said("diff", "whole.json", "whole.json"), "diff")


def fetch(url):
    try:
        with urllib.request.urlopen(url, timeout=60) as got:
            return got.status, got.read().decode()
    except urllib.error.HTTPError as e:
        return e.code, e.read().decode()


def serve(p):
    server = subprocess.Popen([TSLAB, "serve", "--pid", p.pid, "--listen", "127.0.0.1:0", "--stale-after", "1h"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
    return server, re.search(r"http://\S+(?=/metrics)", server.stdout.readline())[0]


def not_the_latest(p, url):
    check(fetch(url + "/healthz")[0] == 200, "not healthy", fetch(url + "/healthz"))
    p.does("burst")
    check(wait_until(lambda: fetch(url + "/healthz")[0] == 503), "old numbers are healthy")
    check("changed since" in fetch(url + "/healthz")[1], fetch(url + "/healthz"))
    text = said("stats", "--pid", p.pid)
    check("Allocator 1 has changed since its figures were taken" in text, text)
    check(stats(p)["changed_since"] is True and stats(p, "--allocator", "0")["changed_since"] is False, "changed_since")
    check('temporal_slab_changed_since_figures{allocator="1"} 1' in fetch(url + "/metrics")[1], "the series")
    check("changed since" in said("ls") and "changed since" in said("doctor", "--pid", p.pid), "ls, doctor")


def one_less(p, url):
    p.does("destroy")
    check(len(stats(p)["by_allocator"]) == 2, "an allocator that was destroyed")
    page = fetch(url + "/metrics")[1]
    check('live_objects{allocator="0"}' not in page and 'live_objects{allocator="1"}' in page, "series of a destroyed allocator")


def goes_on(p, server, url):
    p.does("again")
    check(wait_until(lambda: fetch(url + "/healthz")[0] == 200), "another program of the same process is not found")
    p.end()
    check(wait_until(lambda: fetch(url + "/healthz")[0] == 503), "healthy without a process")
    check("temporal_slab_exporter_up 0" in fetch(url + "/metrics")[1], "up without a process")
    other = Program()
    check(wait_until(lambda: fetch(url + "/healthz")[0] == 200), "the process that came after is not found")
    server.terminate()
    told = server.communicate()[1]
    check("has ended" in told and "going on with pid " + other.pid in told, told)
    other.end()


def many_phases():
    """However many phases drain, what a page and the doctor have to make and to send is a few rows and the sums of all."""
    p = Program()
    p.does("drain")
    web = subprocess.Popen([TSLAB, "web", "--pid", p.pid, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    url = re.search(r"http://\S+/", web.stdout.readline())[0]
    answer = fetch(url + "now.json?since=1&label=many")[1]
    d = json.loads(answer)
    chosen = d["chosen"]
    check(d["now"]["draining"] == chosen["draining"] == chosen["objects"] == 130000 == sum(chosen["ages"]), d["now"], chosen["draining"], chosen["ages"])
    check(len(chosen["phases"]) == 50 and chosen["more"] == 130000 - 50 and [o["name"] for o in d["oldest"]] == ["many"] * 5, chosen["more"], d["oldest"])
    check(len(answer) < 100_000, len(answer))
    check(len(fetch(url + "doctor")[1]) < 10_000 and "130000 objects" in fetch(url + "doctor")[1], fetch(url + "doctor"))
    document = json.loads(fetch(url + "stats.json")[1])
    check(len(document["phases"]) < 1000, len(document["phases"]))
    web.kill()
    web.communicate()
    p.end()


class Gateway(http.server.BaseHTTPRequestHandler):
    paths = []

    def do_PUT(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.paths.append(urllib.parse.unquote(self.path))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


def pushes():
    """An instance is called by host and process; a process that ends is told, and the next one is an instance of its own."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Gateway)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    p = Program()
    push = subprocess.Popen([TSLAB, "push", "--pid", p.pid, "--gateway", "http://127.0.0.1:%d" % server.server_port, "--every", "1s"],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    instance = lambda pid: any("/instance/%s:%s" % (socket.gethostname(), pid) in path for path in Gateway.paths)
    check(wait_until(lambda: instance(p.pid)), Gateway.paths)
    p.end()
    other = Program()
    check(wait_until(lambda: instance(other.pid)), "push does not go on:", Gateway.paths)
    push.terminate()
    told = push.communicate()[1]
    check("has ended" in told and "going on with pid " + other.pid in told, told)
    other.end()
    server.shutdown()


def main():
    p = Program()
    all_of_it(p)
    server, url = serve(p)
    not_the_latest(p, url)
    one_less(p, url)
    goes_on(p, server, url)
    pushes()
    many_phases()
    finish()


main()
