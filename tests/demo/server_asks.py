"""server_asks.py PORT OUT: asks tslab_server from forty connections at once, and writes the answers in the order of their numbers.

A request follows from its number, so answers do. Prints how many were asked of each route, as JSON.
"""
import collections
import http.client
import json
import random
import socket
import sys
import threading

CONNECTIONS, EACH = 40, 12
port, out = int(sys.argv[1]), sys.argv[2]
answers, asked, lock = {}, collections.Counter(), threading.Lock()


def made(number):
    """(method, path, body, status)"""
    r = random.Random(number)
    kind = number % 6
    if kind == 0:
        return "GET", f"/products?category={r.randrange(199)}&above={r.randrange(5000)}", None, 200
    if kind == 1:
        return "GET", f"/product?id={r.randrange(1, 5001)}", None, 200
    if kind in (2, 3):
        lines = [{"id": r.randrange(1, 5001), "count": r.randrange(1, 9)} for _ in range(r.randrange(1, 6))]
        return "POST", "/order", json.dumps({"key": f"k{number}", "user": f"u{number}", "wait": r.randrange(200), "lines": lines}), 200
    if kind == 4:
        return "POST", "/session", json.dumps({"user": f"u{number}", "basket": [r.randrange(1, 5001) for _ in range(r.randrange(5))]}), 200
    return [("GET", "/product?id=no", None, 400), ("GET", "/product?id=99999", None, 404), ("POST", "/order", '{"key": "k", ', 400),
            ("POST", "/order", '{"key": "k", "user": "\u00e4\\"", "lines": [{"id": 1}, {"id": -1}]}', 404), ("GET", "/products?category=%41%20x", None, 200),
            ("GET", f"/report?from={r.randrange(4000)}", None, 200), ("GET", "/nothing", None, 404)][number // 6 % 7]


def asks(first):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    for number in range(first, CONNECTIONS * EACH, CONNECTIONS):
        method, path, body, status = made(number)
        c.request(method, path, body.encode() if body else None, {"Content-Type": "application/json"} if body else {})
        answer = c.getresponse()
        text = answer.read()
        with lock:
            answers[number] = b"%d %s %s %d %s\n" % (number, method.encode(), path.encode(), answer.status, text)
            if path != "/nothing":
                asked[f"{method} {path.partition('?')[0]}"] += 1
            if answer.status != status:
                print(f"{method} {path}: {answer.status} instead of {status}: {text[:200]}", file=sys.stderr)
    c.close()


def goes_away():
    """One that does not wait for its answer."""
    body = b'{"key": "gone", "user": "gone", "wait": 300, "lines": [{"id": 7}]}'
    with socket.create_connection(("127.0.0.1", port)) as s:
        s.sendall(b"POST /order HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        while True:  # until it is open
            c = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
            c.request("GET", "/figures")
            if json.load(c.getresponse())["open"] > 0:
                break
    asked["POST /order"] += 1


threads = [threading.Thread(target=asks, args=(n,)) for n in range(CONNECTIONS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
goes_away()
with open(out, "wb") as to:
    to.writelines(answers[number] for number in sorted(answers))
print(json.dumps(asked, sort_keys=True))
