#!/usr/bin/env python3
"""Two checks of patched programs that their own test suites do not make.

    check.py same BEFORE AFTER TESTS    AFTER, a jq, says what BEFORE says, where each input of jq's tests (the folder
                                        TESTS) comes three times, and in every way of reading input
    check.py header TINYPROXY LOAD      500 requests by LOAD (load.c), 16 at a time, then one whose Connection header
                                        names itself; prints what AddressSanitizer, where TINYPROXY is built with it,
                                        says, or how it ended, or "clean"
"""

import concurrent.futures
import socket
import subprocess
import sys
import tempfile

import kit

MIXED = '1[2]{"a":[3,{"b":"c"}]}"x" 4.5e300[1.25e-20]null{}[[]]true[false] 12345678901234567890\n' * 3

WAYS = [[], ["-s"], ["--stream"], ["-n", "[inputs]"], ["-n", "input, input"], ["-R"], ["-Rs"], ["--seq"], ["--tab"], ["-S"], ["-C"],
        ["--stream", "-n", "fromstream(inputs)"], ["-e"], ["--stream", "-s"]]
FILTERS = [".", "input_filename, input_line_number", "[paths]", "halt", '"x"|halt_error', "error", "try error catch .", "..",
           "[limit(3; ..)]", "[., input]", "path(..)", "tojson", "@base64 \"\\(.)\"", "$__loc__", "label $f | ., break $f"]


def cases(path):
    """(program, input) of each test that is to compile."""
    with open(path) as f:
        block = []
        for line in [*f, "\n"]:
            line = line.rstrip("\n")
            if line.lstrip().startswith("#"):
                continue
            if line.strip():
                block.append(line)
                continue
            if len(block) > 1 and not block[0].startswith("%%FAIL"):
                yield block[0], block[1]
            block = []


def said(program, words, text):
    run = subprocess.run([program, *words], input=text.encode(), capture_output=True, timeout=120)
    return run.returncode, run.stdout, run.stderr


def same(before, after, tests):
    asked = []
    for program, text in cases(tests + "/jq.test"):
        asked.append((["-c", "-L", tests + "/modules", program], (text + "\n") * 3))
    with tempfile.NamedTemporaryFile("w", suffix=".json") as one, tempfile.NamedTemporaryFile("w", suffix=".json") as two:
        one.write(MIXED + kit.lines(kit.documents(5)) + '{"goes on in the next file":[1,'), one.flush()
        two.write('2]}\n[3]'), two.flush()
        for way in WAYS:
            given = any(not w.startswith("-") for w in way) # with its filter
            for name in [None] if given else FILTERS if way == [] else FILTERS[:5]:
                words = ["-c", *way] + ([] if given else [name])
                for text in (MIXED, kit.lines(kit.documents(20)), "[1] [2", "1]", '"a', "\0361\036[2]\036{\"a\":"):
                    asked.append((words, text))
                asked.append(([*words, one.name, two.name], ""))
        differ = 0
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            answers = list(pool.map(lambda q: (said(before, *q), said(after, *q)), asked))
        for (words, text), (a, b) in zip(asked, answers):
            if a != b:
                differ += 1
                print("differs: jq", words, repr(text[:80]), "\n  before", a, "\n  after ", b)
    print("%d of %d runs give the same output before and after the patch" % (len(asked) - differ, len(asked)))
    return 1 if differ else 0


def header(program, load):
    with tempfile.TemporaryFile() as errors, socket.socket() as origin:
        origin.bind(("127.0.0.3", 0))
        origin.listen()
        origin.settimeout(20)
        proxy = kit.Proxy(program, errors=errors)
        status = 1
        try:
            subprocess.run([load, str(proxy.port), "500", "16", "4000"], stdout=subprocess.DEVNULL, timeout=300, check=True)
            with socket.socket() as client:
                client.bind(("127.0.0.2", 0)) # see load.c
                client.settimeout(20)
                client.connect(("127.0.0.1", proxy.port))
                client.sendall(b"GET http://127.0.0.3:%d/ HTTP/1.1\r\nHost: x\r\nConnection: keep-alive Connection Host\r\n\r\n"
                               % origin.getsockname()[1])
                server, _ = origin.accept()
                server.settimeout(20)
                try:
                    server.recv(1000), server.sendall(b"HTTP/1.0 200 OK\r\n\r\nhello"), server.close()
                    while client.recv(1000):
                        pass
                except OSError:
                    pass # it has stopped
        finally:
            status = proxy.end()
        errors.seek(0)
        found = [line.split("AddressSanitizer: ")[1].split(" on ")[0] for line in errors.read().decode().splitlines()
                 if "ERROR: AddressSanitizer: " in line]
    print(found[0] if found else "clean" if status == 0 else "exit code %d" % status)
    return 0


if __name__ == "__main__":
    if len(sys.argv) == 5 and sys.argv[1] == "same":
        sys.exit(same(*sys.argv[2:]))
    if len(sys.argv) == 4 and sys.argv[1] == "header":
        sys.exit(header(*sys.argv[2:]))
    sys.exit(__doc__)
