"""Servers under load, for run.py: redis with what it stores, a fork that saves it, redis-benchmark and FLUSHALL; nginx with ab;
PostgreSQL with pgbench.

The server alone runs under the allocator, below `measure`; what loads it does not. A run's output is what the server has
answered, as far as that is the same each time. Its wall time is that of the load.
"""
import glob
import gzip
import hashlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

WAIT_SECONDS = 60


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def where(name):
    """A program's path, or None. Debian keeps PostgreSQL's out of PATH."""
    return shutil.which(name) or next(iter(sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"), reverse=True)), None)


def child_of(pid):
    """The process that measure has started; 0 if it has none yet."""
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as text:
                if int(text.read().rpartition(")")[2].split()[1]) == pid:
                    return int(name)
        except (OSError, ValueError, IndexError):
            pass
    return 0


def resident(pid):
    with open(f"/proc/{pid}/statm", encoding="ascii") as text:
        return int(text.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def said(*words, **how):
    return subprocess.run(words, check=True, capture_output=True, timeout=600, **how).stdout


class Redis:
    """glibc's row takes the allocator that Debian's redis is linked with out of its way."""
    name, needs, shim = "redis", ("redis-server", "redis-cli", "redis-benchmark"), True

    def __init__(self, place, idle_seconds, small):
        self.place, self.idle, self.small = os.path.join(place, "redis"), idle_seconds, small

    def command(self, port):
        shutil.rmtree(self.place, ignore_errors=True)
        os.makedirs(self.place)
        return ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", self.place,
                "--enable-debug-command", "local", "--logfile", os.path.join(self.place, "log")]

    def is_ready(self, port):
        return subprocess.run(["redis-cli", "-p", str(port), "ping"], capture_output=True, check=False).stdout == b"PONG\n"

    def commands(self):
        n = 20000 if self.small else 400000
        for i in range(n):
            yield f"SET key:{i} {'v' * (20 + i * 7919 % 300)}\r\n"
            if i % 3 == 0:
                yield f"HSET h:{i % 5003} f{i} {'x' * (1 + i % 60)}\r\n"
            if i % 4 == 0:
                yield f"RPUSH l:{i % 2003} {i}{'y' * (i % 40)}\r\n"
            if i % 5 == 0:
                yield f"ZADD z:{i % 997} {i * 31 % 10007} m{i}\r\n"
            if i % 2 == 1:
                yield f"DEL key:{i * 7 % n}\r\n"

    def load(self, port, pid):
        cli = ["redis-cli", "-p", str(port)]
        pipe = said(*cli, "--pipe", input="".join(self.commands()).encode()).splitlines()[-1]
        out = pipe + said(*cli, "dbsize") + said(*cli, "debug", "digest")
        loaded = resident(pid)
        said(*cli, "bgsave")
        while b"rdb_bgsave_in_progress:1" in said(*cli, "info", "persistence"):
            time.sleep(0.05)
        out += [line for line in said(*cli, "info", "persistence").splitlines() if line.startswith(b"rdb_last_bgsave_status")][0]
        out += said("redis-check-rdb", os.path.join(self.place, "dump.rdb")).splitlines()[-1]
        said("redis-benchmark", "-p", str(port), "-q", "-n", "2000" if self.small else "200000", "-P", "16", "-r", "100000", "-d", "100",
             "-t", "set,get,incr,lpush,rpop,sadd,hset,zadd")
        out += said(*cli, "flushall") + said(*cli, "dbsize")
        return out, {"loaded": loaded}

    def rest(self, pid):
        time.sleep(self.idle)
        return {"idle": resident(pid)}

    def stop(self, port, pid):
        subprocess.run(["redis-cli", "-p", str(port), "shutdown", "nosave"], capture_output=True, check=False)


class Nginx:
    name, needs, shim = "nginx", ("nginx", "ab"), False

    def __init__(self, place, idle_seconds, small):
        self.place, self.small = os.path.join(place, "nginx"), small

    def command(self, port):
        shutil.rmtree(self.place, ignore_errors=True)
        os.makedirs(os.path.join(self.place, "html"))
        with open(os.path.join(self.place, "html", "page.html"), "w", encoding="ascii") as out:
            out.write("<html>" + "".join(f"<p>line {n}</p>\n" for n in range(200)) + "</html>\n")
        with open(os.path.join(self.place, "html", "text.txt"), "w", encoding="ascii") as out:
            out.writelines(f"line {n}: {n * 7919 % 10007} {'word ' * (n % 7)}\n" for n in range(6000))
        conf = os.path.join(self.place, "conf")
        with open(conf, "w", encoding="ascii") as out:
            out.write(f"daemon off; master_process off; worker_processes 1; pid {self.place}/pid; error_log {self.place}/error.log;\n"
                      "events { worker_connections 256; }\n"
                      f"http {{ access_log {self.place}/access.log; default_type text/plain; gzip on; gzip_types text/plain; gzip_min_length 1000;\n"
                      f"  client_body_temp_path {self.place}/b; proxy_temp_path {self.place}/p; fastcgi_temp_path {self.place}/f;\n"
                      f"  uwsgi_temp_path {self.place}/u; scgi_temp_path {self.place}/s;\n"
                      f"  server {{ listen 127.0.0.1:{port}; root {self.place}/html; location = /said {{ return 200 \"said $arg_x\\n\"; }} }} }}\n")
        return ["nginx", "-c", conf, "-e", f"{self.place}/error.log"]

    def get(self, port, path, zipped):
        ask = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={"Accept-Encoding": "gzip"} if zipped else {})
        try:
            with urllib.request.urlopen(ask, timeout=30) as answer:
                body = answer.read()
                return answer.status, gzip.decompress(body) if answer.headers.get("Content-Encoding") == "gzip" else body
        except urllib.error.HTTPError as answer:
            return answer.code, answer.read()

    def is_ready(self, port):
        try:
            return self.get(port, "/said?x=1", False)[0] == 200
        except OSError:
            return False

    def load(self, port, pid):
        out = b""
        for turn in range(2):
            for path in ("/page.html", "/text.txt", "/said?x=some", "/missing"):
                status, body = self.get(port, path, turn == 1)
                out += f"{path} {status} {hashlib.sha256(body).hexdigest()}\n".encode()
            if turn == 0:
                for path, count in (("/page.html", 30000), ("/text.txt", 2000), ("/said?x=some", 30000), ("/missing", 10000)):
                    words = said("ab", "-q", "-k", "-c", "16", "-n", str(count // 20 if self.small else count), "-H", "Accept-Encoding: gzip",
                                 f"http://127.0.0.1:{port}{path}").decode().splitlines()
                    out += "".join(f"{line.split()[-1]} " for line in words if line.startswith(("Complete", "Failed"))).encode()
        return out, {"loaded": resident(pid)}

    def rest(self, pid):
        return {}

    def stop(self, port, pid):
        os.kill(pid, 15)


class Postgres:
    """A cluster of its own for each run, made by initdb under libc's malloc, which listens on a socket in its folder alone. PostgreSQL refuses to run
    for root, so for root it runs as nobody."""
    name, needs, shim = "pgbench", ("postgres", "initdb", "pgbench", "psql", "setpriv"), False

    def __init__(self, place, idle_seconds, small):
        self.scale, self.clients, self.transactions = (1, 2, 50) if small else (10, 4, 4000)
        self.place = None

    def as_user(self, name):
        """The words of a command that runs a program of PostgreSQL's; the folder is that user's."""
        if os.geteuid() != 0:
            return [where(name)]
        return ["setpriv", "--reuid=nobody", f"--regid={pwd.getpwnam('nobody').pw_gid}", "--clear-groups", where(name)]

    def command(self, port):
        self.forget()
        self.place = tempfile.mkdtemp(prefix="pgbench-")
        if os.geteuid() == 0:
            os.chown(self.place, pwd.getpwnam("nobody").pw_uid, -1)
        data = os.path.join(self.place, "data")
        said(*self.as_user("initdb"), "-D", data, "-A", "trust", "-U", "bench", "-N", "--no-locale", "-E", "UTF8", cwd=self.place)
        settings = {"listen_addresses": "", "unix_socket_directories": self.place, "port": port, "fsync": "off", "synchronous_commit": "off",
                    "autovacuum": "off", "max_parallel_workers_per_gather": 0, "jit": "off", "log_min_messages": "warning"}
        return self.as_user("postgres") + ["-D", data] + [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]

    def connected(self, port):
        return ["-h", self.place, "-p", str(port), "-U", "bench"]

    def ask(self, port, text):
        return said(where("psql"), *self.connected(port), "-AtX", "-d", "postgres", "-c", text)

    def is_ready(self, port):
        return subprocess.run([where("psql"), *self.connected(port), "-AtX", "-d", "postgres", "-c", "select 1"], capture_output=True,
                              check=False).stdout == b"1\n"

    def load(self, port, pid):
        bench = [where("pgbench"), *self.connected(port), "postgres"]
        said(*bench, "-i", "-q", "-s", str(self.scale))
        out = b""
        for how in (("-M", "simple"), ("-M", "prepared"), ("-S", "-M", "extended")):
            lines = said(*bench, "-n", "-c", str(self.clients), "-j", "1", "-t", str(self.transactions), "--random-seed=7", *how).decode().splitlines()
            done = [line for line in lines if line.startswith(("number of transactions actually", "number of failed"))]
            if done[0].split()[-1] != f"{self.clients * self.transactions}/{self.clients * self.transactions}" or " 0 (" not in done[1]:
                raise OSError("; ".join(done))
            out += "\n".join(done).encode()
        out += self.ask(port, "select (select sum(abalance) from pgbench_accounts), (select sum(tbalance) from pgbench_tellers), "
                              "(select sum(bbalance) from pgbench_branches), (select sum(delta) from pgbench_history), "
                              "(select count(*) from pgbench_history)")
        out += self.ask(port, "select md5(string_agg(t, ',' order by t)) from (select aid::text || filler as t from pgbench_accounts "
                              "where aid % 5 = 0) s")
        return out, {"loaded": resident(pid)}

    def rest(self, pid):
        return {}

    def stop(self, port, pid):
        os.kill(pid, 2)  # those who are connected are sent away

    def forget(self):
        if self.place:
            shutil.rmtree(self.place, ignore_errors=True)
        self.place = None


def run(server, measure, report, preload, environment):
    """Figures but for what measure tells, the output, and what was wrong, or None."""
    port = free_port()
    guard = subprocess.Popen([measure, report, preload] + server.command(port), env=environment, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        end = time.monotonic() + WAIT_SECONDS
        while not server.is_ready(port):
            if guard.poll() is not None or time.monotonic() > end:
                return {}, b"", f"does not come up: {guard.communicate(timeout=5)[0][-200:] if guard.poll() is not None else 'no answer'}"
            time.sleep(0.05)
        pid = child_of(guard.pid)
        begun = time.monotonic()
        out, more = server.load(port, pid)
        more["wall"] = time.monotonic() - begun
        more.update(server.rest(pid))
        server.stop(port, pid)
        guard.communicate(timeout=WAIT_SECONDS)
        return more, out, None
    except (OSError, subprocess.SubprocessError, IndexError) as error:
        return {}, b"", f"under load: {error}"
    finally:
        if guard.poll() is None:
            child = child_of(guard.pid)
            if child:
                os.kill(child, 9)
            guard.kill()
            guard.wait()
        if hasattr(server, "forget"):
            server.forget()
