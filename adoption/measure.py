#!/usr/bin/env python3
"""Measures the patched programs beside the unpatched ones, in turn, and writes docs/results/adoption.md.

    measure.py BUILD REPS PAGE COMMAND      BUILD: what scripts/adoption.sh has built; BUILD/checks: what it has checked

Resident sizes, page faults and instructions (valgrind) are the same whatever else the machine does; times are not, and
the page says whether something else ran. Ratios are medians of each repetition's own.
"""

import os
import platform
import re
import statistics
import subprocess
import sys
import time

import kit

FILTER = "{id, n: (.items|length), sum: ([.items[]?|(.qty? // 0)*(.price? // 0)]|add), skus: [.items[].sku?]}"
SIDES = ("before", "after")
BATCH, STREAM, BIG_ITEMS = 10000, 500, 6000
SMALL_BODY, BIG_BODY = 4000, 1000000


def programs(build, name):
    return {side: os.path.join(build, side, {"jq": "jq-jq-1.6/jq", "tinyproxy": "tinyproxy-1.11.1/src/tinyproxy"}[name])
            for side in SIDES}


def instructions(words, text=None, build="."):
    """Instructions in user mode of a whole run; None without valgrind."""
    out = os.path.join(build, "callgrind.out")
    run = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=" + out, *words], input=text,
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return totals(out) if run.returncode == 0 else None


def totals(out):
    with open(out) as f:
        sums = [int(m.group(1)) for m in re.finditer(r"^totals: (\d+)", f.read(), re.M)]
    return sum(sums)


# ---- jq --------------------------------------------------------------------------------------------------------------

def jq_batch(jq, path):
    start = time.monotonic()
    with open(path) as f:
        subprocess.run([jq, "-c", FILTER], stdin=f, stdout=subprocess.DEVNULL, check=True)
    return BATCH / (time.monotonic() - start)


def jq_stream(jq, small, big):
    """A filter that runs on: small documents, a big one, small ones. Resident sizes, faults, times of small documents."""
    run = subprocess.Popen([jq, "-c", "--unbuffered", FILTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    took = []

    def ask(line):
        start = time.monotonic()
        run.stdin.write(line)
        run.stdin.flush()
        run.stdout.readline()
        return (time.monotonic() - start) * 1e6

    for line in small:
        ask(line)
    start = kit.Held(run.pid)
    ask(big)
    for line in small:
        took.append(ask(line))
    end = kit.Held(run.pid)
    run.stdin.close()
    run.wait()
    took.sort()
    return {"resident KiB after 500 small documents": start.now, "peak resident KiB in the large document": end.most,
            "resident KiB after 500 more small documents": end.now, "page faults in total": end.faults,
            "small document p50, us (timed)": took[len(took) // 2], "small document p99, us (timed)": took[len(took) * 99 // 100]}


def jq_kept(words, small, big, library=None):
    """Resident KiB after a big document, and 5, 10 and 15 seconds later, when some more small ones have gone through."""
    environment = dict(os.environ, LD_PRELOAD=library) if library else os.environ
    run = subprocess.Popen([*words, "-c", "--unbuffered", FILTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
    kept = []
    for seconds in (0, 5, 5, 5):
        time.sleep(seconds)
        for line in small if kept else [*small, big, *small]:
            run.stdin.write(line)
            run.stdin.flush()
            run.stdout.readline()
        kept.append(kit.Held(run.pid).now)
    run.stdin.close()
    run.wait()
    return kept


def measure_jq(build, reps):
    jq = programs(build, "jq")
    batch = os.path.join(build, "batch.json")
    with open(batch, "w") as f:
        f.write(kit.lines(kit.documents(BATCH)))
    small = [line.encode() + b"\n" for line in kit.lines(kit.documents(STREAM, 8)).splitlines()]
    big = (kit.lines([{"id": 0, "items": kit.documents(BIG_ITEMS, 9)}])).encode()
    rows = [{side: {} for side in SIDES} for _ in range(reps)]
    for row in rows:
        for side in SIDES:
            row[side]["documents per second (timed; more is better)"] = jq_batch(jq[side], batch)
            row[side].update(jq_stream(jq[side], small, big))
    for side in SIDES: # the same each time
        whole = instructions([jq[side], "-c", FILTER], b"".join(small), build)
        start = instructions([jq[side], "-c", FILTER], b"", build)
        if whole and start:
            rows[0][side]["instructions per document"] = (whole - start) / STREAM
    # What takes no patch: other allocators, where scripts/get-peers.sh has fetched them.
    peers = os.path.join(os.path.dirname(build), "peers", "lib")
    kept = {"glibc": jq_kept([jq["before"]], small, big)}
    for name in ("jemalloc", "mimalloc", "snmalloc", "rpmalloc"):
        library = os.path.join(peers, name + ".so")
        if os.path.exists(library):
            kept[name] = jq_kept([jq["before"]], small, big, library)
    kept["phases"] = jq_kept([jq["after"]], small, big)
    return rows, len(big), kept


# ---- tinyproxy -------------------------------------------------------------------------------------------------------

def load(build, port, requests, threads, size):
    run = subprocess.run([os.path.join(build, "load"), str(port), str(requests), str(threads), str(size)], capture_output=True,
                         text=True, timeout=300)
    if run.returncode != 0:
        raise SystemExit("not every request was answered: " + run.stdout + run.stderr)
    return [float(x) for x in run.stdout.split()]


def proxy_instructions(program, build, requests):
    out = os.path.join(build, "callgrind.out")
    try:
        proxy = kit.Proxy(program, ["valgrind", "--tool=callgrind", "--callgrind-out-file=" + out])
    except FileNotFoundError:
        return None
    load(build, proxy.port, requests, 2, SMALL_BODY)
    proxy.end()
    return totals(out)


def measure_tinyproxy(build, reps):
    tinyproxy = programs(build, "tinyproxy")
    rows = [{side: {} for side in SIDES} for _ in range(reps)]
    for row in rows:
        for side in SIDES:
            proxy = kit.Proxy(tinyproxy[side])
            r = row[side]
            _, r["requests per second (timed; more is better)"], r["request p50, us (timed)"], r["request p99, us (timed)"] = \
                load(build, proxy.port, 3000, 16, SMALL_BODY)
            time.sleep(0.2)
            r["resident KiB after 3,000 requests for 4 KB"] = kit.Held(proxy.process.pid).now
            load(build, proxy.port, 400, 64, BIG_BODY)
            load(build, proxy.port, 1000, 16, SMALL_BODY)
            time.sleep(0.2)
            held = kit.Held(proxy.process.pid)
            r["peak resident KiB with 64 requests for 1 MB at the same time"] = held.most
            r["resident KiB after 1,000 more requests for 4 KB"] = held.now
            r["page faults in total"] = held.faults
            proxy.end()
    for side in SIDES:
        few, many = (proxy_instructions(tinyproxy[side], build, n) for n in (1, 401))
        if few and many:
            rows[0][side]["instructions per request"] = (many - few) / 400
    return rows


# ---- the page --------------------------------------------------------------------------------------------------------

def figure(x):
    return "{:,.0f}".format(x) if x >= 100 else "{:.3g}".format(x)


def compared(rows):
    """[(what, before, after, ratio, least, most)]: medians over the repetitions."""
    table = []
    for what in rows[0]["before"]:
        pairs = [(r["before"][what], r["after"][what]) for r in rows if what in r["before"] and what in r["after"]]
        ratios = [b / a for a, b in pairs]
        table.append((what, statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs),
                      statistics.median(ratios), min(ratios), max(ratios)))
    return table


def printed(table):
    text = "| | before | after | after / before | minimum and maximum |\n|---|---|---|---|---|\n"
    for what, before, after, ratio, least, most in table:
        text += "| %s | %s | %s | %.2f | %s |\n" % (what, figure(before), figure(after), ratio,
                                                    "%.2f .. %.2f" % (least, most) if least != most else "")
    return text


def word(ratio, more_is_better=False):
    gain = ratio if more_is_better else 1 / ratio
    return "better" if gain > 1.05 else "worse" if gain < 1 / 1.05 else "level"


def verdict(name, table, quiet):
    """Rows of a table: what is better, what is worse. Times have a row of their own if something else ran beside them."""
    groups = {}
    for what, _, _, ratio, _, _ in table:
        said = word(ratio, "more is better" in what) if quiet or "(timed" not in what else "timed while other work ran"
        groups.setdefault(said, []).append("%s: %.2f" % (re.sub(r"(, us)? \(timed.*", "", what), ratio))
    order = ["better", "worse", "level", "timed while other work ran"]
    return ["| %s | %s | %s |" % (name, g, ", ".join(groups[g])) for g in order if g in groups]


def machine():
    model = "unknown processor"
    with open("/proc/cpuinfo") as f:
        for line in f:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    system = platform.freedesktop_os_release()["PRETTY_NAME"] if hasattr(platform, "freedesktop_os_release") else platform.system()
    told = [subprocess.run([os.environ.get("CC", "cc"), word], capture_output=True, text=True).stdout.strip() for word in ("--version", "-dumpversion", "-dumpfullversion")]
    cc = "%s %s" % ("clang" if "clang" in told[0] else "gcc", told[2] or told[1])
    return "%d cores (%s), %s, glibc %s and %s" % (os.cpu_count(), model, system, platform.libc_ver()[1], cc)


def main(build, reps, page, command):
    busy = os.getloadavg()[0]
    quiet = busy < 0.5
    beside = "Nothing else ran" if quiet else "Other work ran at the same time (load average %.1f at the start), so times are unreliable" % busy
    jq, big_bytes, kept = measure_jq(build, reps)
    jq = compared(jq)
    tinyproxy = compared(measure_tinyproxy(build, reps))
    with open(os.path.join(build, "checks")) as f:
        checks = f.read().splitlines()
    lines = ["| program | with phases | measurements, after / before |", "|---|---|---|"] + verdict("jq", jq, quiet) + verdict("tinyproxy", tinyproxy, quiet)
    text = "# Two programs before and after: what was measured\n\n"
    text += "`%s` made these measurements and generated this page.\n[adoption.md](../adoption.md) explains what the measurements mean.\n\n" % command
    text += "The machine had %s.\nIn each of %d repetitions, the unpatched program and the patched program ran one after the other. %s.\n" % (machine(), reps, beside)
    text += "Figures are medians. Each ratio is the median of the repetitions' ratios. A ratio below 1 is better for the program with phases, except in rows in which more is better.\n\n## Verdict\n\n"
    text += "".join("%s\n" % line for line in lines)
    text += "\n## jq 1.6\n\nEach document is a phase. The batch contains %s documents of 1 to 128 items, and the size of the large document is %.1f MB.\n\n%s" % (
        figure(BATCH), big_bytes / 1e6, printed(jq))
    text += "\nThe unpatched jq was also measured with other allocators preloaded. The table shows resident KiB after the large document and 500 small ones,\nand 5, 10 and 15 seconds later. The row *phases* shows the patched jq.\n\n"
    text += "| | immediately | 5 s | 10 s | 15 s |\n|---|---|---|---|---|\n"
    text += "".join("| %s | %s |\n" % (name, " | ".join(figure(x) for x in row)) for name, row in kept.items())
    text += "\n## tinyproxy 1.11.1\n\nEach connection is a phase and has a thread of its own.\n\n%s" % printed(tinyproxy)
    text += "\n## Checks\n\n" + "".join("- %s\n" % line for line in checks if " | " not in line)
    text += "\n| program | variant | input | outcome |\n|---|---|---|---|\n" + "".join("| %s |\n" % line for line in checks if " | " in line)
    print("\n".join(lines), printed(jq), printed(tinyproxy), sep="\n\n")
    with open(page, "w") as f:
        f.write(text)


if __name__ == "__main__":
    if len(sys.argv) != 5 or not sys.argv[2].isdigit() or int(sys.argv[2]) < 1:
        sys.exit(__doc__)
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4])
