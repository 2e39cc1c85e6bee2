#!/usr/bin/env python3
"""Drives tslab_server with wrk under glibc's malloc, jemalloc, mimalloc, the preload library without phases and with them.

Each allocator's server is a process of its own, of one binary. Connections rest between requests as people do, so thousands of
them make some hundreds of requests a second, and orders wait for a bank, so hundreds to thousands of requests are open.
Each minute has a burst. It measures the latency of requests that wait for no bank (by wrk), resident bytes each half
second, and processor time.

Servers run one after the other, in an order that turns from turn to turn; with --together all at once, on the same noise, each
with its burst while the others have none.

Exit status: 0; 1 a server failed, refused or lost requests; 2 wrong arguments, or something is missing; 130 interrupted.
"""
import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "bench", "programs"))
import run as programs  # noqa: E402

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGESIZE")
PEERS = ("jemalloc", "mimalloc")
# Connections and their rest in milliseconds: (reads, orders). An order's bank takes 1,000 ms on average.
CALM = ((300, 1000), (200, 500))
BURST = ((1000, 1000), (2000, 500))
BURST_SECONDS = 12
FAILURES = ("connect", "read", "write", "status", "timeout")


def allocators(asked):
    """Name -> (what is preloaded, arguments of the server)."""
    found, gone = programs.allocators([name for name in asked if name in PEERS])
    out = {"glibc": ("", [])}
    for name in PEERS:
        if name in found:
            out[name] = (found[name], [])
        elif not asked:
            print(f"measure.py: {name} is left out: {gone.get(name, 'not found')}", file=sys.stderr)
    out["tslab"] = (found["tslab"], ["--no-phases"])
    out["phases"] = (found["tslab"], [])
    unknown = [name for name in asked if name not in out]
    if unknown:
        sys.exit(f"measure.py: no allocator {unknown[0]}; there are {' '.join(out)}")
    return {name: how for name, how in out.items() if not asked or name in asked}


def server_program():
    for build in ("server", "gcc-release"):
        path = os.path.join(ROOT, "build", build, "tslab_server")
        if os.path.exists(path):
            return path
    return None


class Server:
    """A running server, and what is seen of it from outside."""

    def __init__(self, name, preload, arguments, options, place):
        self.name, self.samples, self.segments, self.figures, self.begun = name, [], [], None, time.monotonic()
        self.place = os.path.join(place, name)
        os.makedirs(self.place, exist_ok=True)
        environment = {n: v for n, v in os.environ.items() if n not in ("LD_PRELOAD", "TSLAB_OPTIONS", "MALLOC_CONF", "MALLOC_ARENA_MAX", "GLIBC_TUNABLES")}
        if preload:
            environment["LD_PRELOAD"] = preload
        if options.tslab_options and name in ("tslab", "phases"):
            environment["TSLAB_OPTIONS"] = options.tslab_options
        self.errors = open(os.path.join(self.place, "errors"), "w+", encoding="utf-8")
        self.process = subprocess.Popen([options.program, "--database", os.path.join(self.place, "shop.db"), "--loops", str(options.loops)] + arguments,
                                        env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True)
        first = self.process.stdout.readline()
        if not first.strip().isdigit():
            self.process.wait()
            self.errors.seek(0)
            raise OSError(f"{name}: the server does not start: {self.errors.read()[-300:]}")
        self.port = int(first)

    def resident(self):
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as text:
            return int(text.read().split()[1]) * PAGE

    def processor_seconds(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as text:
            words = text.read().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / TICKS

    def rollup(self):
        """Resident and anonymous bytes, exact, unlike statm's on many processors."""
        out = {}
        with open(f"/proc/{self.process.pid}/smaps_rollup", encoding="ascii") as lines:
            for line in lines:
                words = line.split()
                if words[0] in ("Rss:", "Anonymous:"):
                    out[words[0][:-1].lower()] = int(words[1]) << 10
        return out

    def look(self):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://127.0.0.1:{self.port}/figures", timeout=60) as answer:
            return json.load(answer)

    def sample(self, where):
        try:
            self.samples.append([round(time.monotonic() - self.begun, 1), self.resident(), where])
        except (OSError, IndexError, ValueError):
            pass

    def stop(self):
        self.process.stdin.close()
        try:
            line = self.process.stdout.read()
            code = self.process.wait(timeout=120)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise OSError(f"{self.name}: does not end") from None
        self.errors.seek(0)
        said = self.errors.read()
        self.errors.close()
        if code != 0 or said:
            raise OSError(f"{self.name}: exit code {code}: {said[-300:]}")
        self.figures = json.loads(line)


def load(server, kind, connections, think, seconds, seed):
    out = os.path.join(server.place, f"{kind}.json")
    if os.path.exists(out):
        os.remove(out)
    environment = os.environ | {"LOAD_KIND": kind, "LOAD_THINK": str(think), "LOAD_SEED": str(seed), "LOAD_OUT": out}
    environment.pop("LD_PRELOAD", None)
    words = ["wrk", "-t1", "-c", str(connections), "-d", f"{seconds}s", "--timeout", "20s", "-s", os.path.join(HERE, "load.lua"),
             f"http://127.0.0.1:{server.port}"]
    return subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True), out


def drive(server, kind, seconds, options, seed):
    """A segment of calm or burst: reads and orders beside each other. Its figures go to server.segments."""
    server.now = kind
    groups = BURST if kind == "burst" else CALM
    cpu = server.processor_seconds()
    before = server.look()
    begun = round(time.monotonic() - server.begun, 1)
    running = [(what, *load(server, what, max(1, int(connections * options.scale)), think, seconds, seed + n))
               for n, (what, (connections, think)) in enumerate(zip(("reads", "orders"), groups))]
    segment = {"kind": kind, "begun": begun, "seconds": seconds}
    for what, process, out in running:
        errors = process.communicate(timeout=seconds + 300)[1]
        if process.returncode != 0 or not os.path.exists(out):
            raise OSError(f"{server.name}: wrk: {errors[-300:]}")
        with open(out, encoding="utf-8") as text:
            segment[what] = json.load(text)
    segment["cpu"] = server.processor_seconds() - cpu
    segment["resident"] = server.rollup()
    after = server.look()
    segment["served"] = sum(r["requests"] for r in after["routes"].values()) - sum(r["requests"] for r in before["routes"].values())
    segment["faults"] = after["faults"] - before["faults"]
    segment["open_max"] = after["open_max"]
    server.segments.append(segment)


def drive_all(server, at, options, seed):
    """Cycles of calm, a burst from second `at` on, and calm; then a rest without any load."""
    left, cycle = options.seconds, 0
    burst = min(BURST_SECONDS, max(1, options.cycle // 5))
    while left > 0:
        here = min(left, options.cycle)
        first = min(at, max(0, here - burst))
        for number, (kind, seconds) in enumerate((("calm", first), ("burst", min(burst, here)), ("calm", here - first - burst))):
            if seconds > 0:
                drive(server, kind, seconds, options, seed + 100 * cycle + 10 * number)
        left -= here
        cycle += 1
    server.now = "rest"
    time.sleep(options.rest)
    server.at_rest = server.rollup()


def run_servers(servers, offsets, options, seed):
    stop, failures = threading.Event(), []

    def samples():
        while not stop.wait(0.5):
            for server in servers:
                server.sample(server.now)

    def one(server, at):
        try:
            drive_all(server, at, options, seed)
        except (OSError, subprocess.SubprocessError, ValueError, KeyError) as error:
            failures.append(f"{server.name}: {error}")

    for server in servers:
        server.now = "start"
    sampler = threading.Thread(target=samples)
    sampler.start()
    drivers = [threading.Thread(target=one, args=pair) for pair in zip(servers, offsets)]
    for driver in drivers:
        driver.start()
    for driver in drivers:
        driver.join()
    stop.set()
    sampler.join()
    return failures


def wrong(server):
    """What a server's own figures and the load's say is wrong."""
    out = []
    for segment in server.segments:
        for what in ("reads", "orders"):
            bad = {name: segment[what][name] for name in FAILURES if segment[what][name]}
            if bad:
                out.append(f"{server.name}: {what}, {segment['kind']} at {segment['begun']} s: {bad}")
    f = server.figures
    if f["refused"] or f["open"]:
        out.append(f"{server.name}: {f['refused']} calls of phases refused, {f['open']} requests open")
    for label, route in f["routes"].items():
        if route["failures"]:
            out.append(f"{server.name}: {label}: {route['failures']} of {route['requests']} requests failed")
        if server.name == "phases" and route["phases"] != route["requests"]:
            out.append(f"{server.name}: {label}: {route['phases']} phases for {route['requests']} requests")
    return out


def turn(names, found, options, seed, place):
    """Runs the servers of the names together. Returns (results, failures)."""
    servers, failures = [], []
    try:
        for name in names:
            servers.append(Server(name, *found[name], options, place))
        step = options.cycle // max(len(names), 1)
        offsets = [n * step for n in range(len(names))] if len(names) > 1 else [2 * options.cycle // 5]
        failures += run_servers(servers, offsets, options, seed)
        for server in servers:
            server.stop()
            failures += wrong(server)
    except OSError as error:
        failures.append(str(error))
    finally:
        for server in servers:
            if server.process.poll() is None:
                server.process.kill()
                server.process.wait()
    results = [{"allocator": s.name, "segments": s.segments, "samples": s.samples, "rest": s.at_rest, "figures": s.figures}
               for s in servers if s.figures and hasattr(s, "at_rest")]
    return results, failures


def percentiles(parts, at=(50, 99, 99.9, 100)):
    """Milliseconds, of latencies that several runs of wrk have left: the largest 200 of each run are exact."""
    pairs = sorted(pair for part in parts for pair in part["latency"])
    total, out, seen, n = sum(count for _, count in pairs), [], 0, 0
    for percent in at:
        while n < len(pairs) - 1 and seen + pairs[n][1] < total * percent / 100:
            seen += pairs[n][1]
            n += 1
        out.append(pairs[n][0] / 1000 if pairs else float("nan"))
    return out


def say(result):
    calm = percentiles([s["reads"] for s in result["segments"] if s["kind"] == "calm"])
    burst = percentiles([s["reads"] for s in result["segments"] if s["kind"] == "burst"])
    served, cpu = sum(s["served"] for s in result["segments"]), sum(s["cpu"] for s in result["segments"])
    mib = [sample[1] / 2 ** 20 for sample in result["samples"]]
    print(f"{result['allocator']:9} reads calm p50 {calm[0]:.1f} p99 {calm[1]:.1f} p99.9 {calm[2]:.1f} max {calm[3]:.0f} ms; burst {burst[0]:.1f} {burst[1]:.1f} "
          f"{burst[2]:.1f} {burst[3]:.0f}; {served} requests, {cpu / max(served, 1) * 1e6:.0f} us cpu each; resident peak {max(mib):.1f}, mean "
          f"{sum(mib) / len(mib):.1f}, at rest {result['rest']['rss'] / 2 ** 20:.1f} MiB; open at most {result['figures']['open_max']}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=300, help="of load for each server and turn (300)")
    parser.add_argument("--cycle", type=int, default=60, help="seconds from one burst to the next (60)")
    parser.add_argument("--rest", type=int, default=20, help="seconds without load at the end (20)")
    parser.add_argument("--turns", type=int, default=1, help="how often each allocator runs (1)")
    parser.add_argument("--together", action="store_true", help="all servers at once, one burst at a time")
    parser.add_argument("--scale", type=float, default=1.0, help="times the connections: 500, in a burst 3,000 (1)")
    parser.add_argument("--loops", type=int, default=1, help="event loops of each server (1)")
    parser.add_argument("--allocator", action="append", default=[], help="only this: glibc, jemalloc, mimalloc, tslab, phases; may be repeated")
    parser.add_argument("--tslab-options", default="", help="TSLAB_OPTIONS of the preload library")
    parser.add_argument("--program", default=server_program(), help="tslab_server")
    parser.add_argument("--preload", help="libtemporal_slab_preload.so (one under build/)")
    parser.add_argument("--json", help="file for all that was measured")
    options = parser.parse_args()
    if options.program is None or not shutil.which("wrk"):
        print("measure.py: no tslab_server under build/, or no wrk: make server builds and installs them", file=sys.stderr)
        return 2
    if min(options.seconds, options.cycle, options.turns, options.loops) < 1 or options.rest < 0 or options.scale <= 0:
        print("measure.py: numbers are positive", file=sys.stderr)
        return 2
    beside = os.path.join(os.path.dirname(options.program), programs.LIBRARY)
    if options.preload or os.path.exists(beside):
        programs.library = lambda: options.preload or beside
    found = allocators(options.allocator)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
    data = {**programs.machine(), "load": os.getloadavg()[0], "seconds": options.seconds, "cycle": options.cycle,
            "rest": options.rest, "turns": options.turns, "together": options.together, "scale": options.scale, "loops": options.loops,
            "results": [], "failures": []}
    names = list(found)
    place = tempfile.mkdtemp(prefix="tslab-server-")
    try:
        for number in range(options.turns):
            order = names[number % len(names):] + names[:number % len(names)]
            for group in [order] if options.together else [[name] for name in order]:
                results, failures = turn(group, found, options, 1000 * (number + 1), os.path.join(place, str(number)))
                for result in results:
                    result["turn"] = number
                    say(result)
                for failure in failures:
                    print(f"FAILED: {failure}", file=sys.stderr, flush=True)
                data["results"] += results
                data["failures"] += failures
                shutil.rmtree(os.path.join(place, str(number)), ignore_errors=True)
                if options.json:
                    with open(options.json + ".new", "w", encoding="utf-8") as out:
                        json.dump(data, out, separators=(",", ":"))
                        out.write("\n")
                    os.rename(options.json + ".new", options.json)
    except KeyboardInterrupt:
        return 130
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return 1 if data["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
