"""What scripts/push-profile.sh sends to a Pyroscope, and what `tslab web` has for those that scrape, against a server of this
file that takes requests apart as those servers do: multipart, gzip, profile.proto.

    push_profile.py TSLAB HOLDER SCRIPT     HOLDER: tests/profile/phases.c
"""

import email
import email.policy
import gzip
import http.server
import json
import os
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

TSLAB, HOLDER, SCRIPT = sys.argv[1:4]
FUNCTIONS = {"parse_headers": "headers", "render_page": "page", "grow_index": "index"}
requests, answers = [], []


def check(true, *what):
    if not true:
        print("FAILED:", *what, file=sys.stderr)
        sys.exit(1)


# ---- profile.proto ---------------------------------------------------------------------------------------------------

def fields(b):
    """(number, value) of a message: an int, or bytes."""
    at = 0

    def varint():
        nonlocal at
        v = shift = 0
        while True:
            byte = b[at]
            at += 1
            v |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return v
    while at < len(b):
        key = varint()
        check(key & 7 in (0, 2), "a field of kind", key & 7)
        v = varint()
        if key & 7 == 2:
            check(at + v <= len(b), "a field is cut off")
            at, v = at + v, b[at:at + v]
        yield key >> 3, v


def packed(v):
    if isinstance(v, int):
        return [v]
    return [n for _, n in fields(b"".join(bytes([8]) + piece for piece in split(v)))]


def split(b):
    piece = b""
    for byte in b:
        piece += bytes([byte])
        if byte < 0x80:
            yield piece
            piece = b""


def read(compressed):
    """Values by (label, innermost function), and the types of values."""
    check(compressed[:2] == b"\x1f\x8b", "not compressed by gzip")
    message = list(fields(gzip.decompress(compressed)))
    strings = [v.decode() for n, v in message if n == 6]
    check(strings[0] == "", "the first string is not empty")
    types = [strings[dict(fields(v))[1]] + ":" + strings[dict(fields(v))[2]] for n, v in message if n == 1]
    functions = {dict(fields(v))[1]: strings[dict(fields(v))[2]] for n, v in message if n == 5}
    places = {}
    for n, v in message:
        if n == 4:
            f = list(fields(v))
            places[dict(f)[1]] = [functions[dict(fields(line))[1]] for k, line in f if k == 4]
    sums = {}
    for n, v in message:
        if n != 2:
            continue
        f = list(fields(v))
        stack = [name for k, p in f if k == 1 for at in packed(p) for name in places[at]]
        values = [x for k, p in f if k == 2 for x in packed(p)]
        check(len(values) == len(types), "a sample has", len(values), "values of", types)
        labels = {strings[d[1]]: strings[d[2]] for d in (dict(fields(p)) for k, p in f if k == 3) if 2 in d}
        check("label" in labels, "a sample without a label")
        key = labels["label"], stack[0] if stack else ""
        sums[key] = [a + b for a, b in zip(sums.get(key, [0] * len(values)), values)]
    return sums, types


def is_right(compressed):
    sums, types = read(compressed)
    check(types == ["alloc_objects:count", "alloc_space:bytes", "inuse_objects:count", "inuse_space:bytes"], types)
    for function, label in FUNCTIONS.items():
        check(sums.get((label, function), [0] * 4)[3] > 1000000, "no bytes in use of", label, "by", function, "in", sums)
    check(not [key for key in sums if key[1].startswith(("slab_", "tsi_", "epoch_domain_"))], "functions of the library:", sums)


# ---- a server --------------------------------------------------------------------------------------------------------

class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        requests.append((self.path, self.headers, body))
        status = answers.pop(0) if answers else 200
        self.send_response(status)
        self.end_headers()
        self.wfile.write(b"" if status == 200 else b"no room\n")

    def log_message(self, *_):
        pass


def pushed(request):
    """The parts of a push, and its query."""
    path, headers, body = request
    url = urllib.parse.urlsplit(path)
    check(url.path == "/ingest", path)
    text = b"Content-Type: " + headers["Content-Type"].encode() + b"\r\n\r\n" + body
    message = email.message_from_bytes(text, policy=email.policy.HTTP)
    check(message.is_multipart(), "not multipart")
    parts = {p.get_param("name", header="content-disposition"): p.get_payload(decode=True) for p in message.iter_parts()}
    return urllib.parse.parse_qs(url.query), parts


def push(*words):
    return subprocess.run([SCRIPT, "--tslab", TSLAB, *words], capture_output=True, text=True, timeout=300)


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = "http://127.0.0.1:%d" % server.server_port
    holder = subprocess.Popen([HOLDER, "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              env={**os.environ, "TSLAB_OPTIONS": "segment=1"})
    web = None
    try:
        for _ in range(4):
            holder.stdout.readline()
        pid = str(holder.pid)
        for _ in range(1200): # until all that it has done is shown
            run = subprocess.run([TSLAB, "profile", "--pid", pid, "--json", "-n", "0"], capture_output=True, text=True)
            if run.returncode == 0 and any(f["function"] == "open_session" and f["cum"] > 4000000 for f in json.loads(run.stdout)["functions"]):
                break
            time.sleep(0.05)

        run = push("--pid", pid, "--name", "orders{env=test}", address)
        check(run.returncode == 0 and "pushed to " + address in run.stdout, run)
        query, parts = pushed(requests[-1])
        check(query["name"] == ["orders{env=test}"] and query["format"] == ["pprof"], query)
        check(0 < int(query["until"][0]) - int(query["from"][0]) < 1000, query)
        config = json.loads(parts["sample_type_config"])
        check(set(config) == {"inuse_space", "inuse_objects"} and config["inuse_space"]["units"] == "bytes", config)
        is_right(parts["profile"])

        answers.append(422)
        run = push("--pid", pid, address)
        check(run.returncode == 1 and "answered 422: no room" in run.stderr, run)
        query, _ = pushed(requests[-1])
        check(query["name"] == ["holder"], query)
        again = subprocess.Popen([SCRIPT, "--tslab", TSLAB, "--pid", pid, "--every", "1", address], stdout=subprocess.PIPE, text=True)
        answers.append(503)
        for _ in range(2): # a failure between is told and tried again
            check("pushed" in again.stdout.readline(), "no second push")
        again.terminate()
        again.wait(60)
        for words, code, said in [(["--pid", pid, "http://127.0.0.1:1"], 1, "http://127.0.0.1:1: "), (["--pid", "999999999", address], 1, "no such process"),
                                  ([address], 2, "no process to read"), (["--pid", pid, "--name", "a b", address], 2, "--name may contain only"),
                                  (["--pid", pid, "ftp://x"], 2, "a server is an address")]:
            run = push(*words)
            check(run.returncode == code and said in run.stderr and not run.stdout, words, run)

        # One that scrapes.
        web = subprocess.Popen([TSLAB, "web", "--listen", "127.0.0.1:0", pid], stdout=subprocess.PIPE, text=True)
        line = web.stdout.readline()
        check(line.startswith("http://127.0.0.1:"), line)
        root = "%s://%s" % urllib.parse.urlsplit(line.split()[0])[:2]
        with urllib.request.urlopen("%s/processes/%s/profile" % (root, pid), timeout=60) as answer:
            check(answer.headers["Content-Type"] == "application/octet-stream" and "Content-Encoding" not in answer.headers, answer.headers)
            is_right(answer.read())
        try:
            urllib.request.urlopen(root + "/processes/999999999/profile", timeout=60)
            check(False, "a profile of nobody")
        except urllib.error.HTTPError as error:
            check(error.code == 404, error)
    finally:
        if web:
            web.terminate()
            web.wait(60)
        holder.stdin.close()
        holder.wait(60)
    print("passed")


main()
