# SPDX-License-Identifier: BSD-2-Clause
"""Virtual hosts for the end-to-end tests and the benchmarks: daemons on private addresses and sockets, network namespaces, and processes on
these hosts, with their output.

This module needs only the standard library. After close() everything that a Lab has started or made is gone.
"""

import array
import json
import os
import pwd
import select
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

import checked

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
ROCE_PORT = 4791

# include/pumice/abi.h
PM_OP_STATUS = 2
PM_OP_FAULT = 3
PM_OP_SHUTDOWN = 4


# For programs that get a client library with a sanitizer. Unmodified programs leak; and what `pumice run` starts has the library before the
# sanitizer's run time, which that would complain about.
SANITIZER_ENV = {"ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0"}


class Unavailable(Exception):
    """This machine or user can't do it; the text says why. A reason to skip, never to fail."""


class Trouble(Exception):
    """A check that did not hold."""


def which(tool):
    path = shutil.which(tool, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if path is None:
        raise Unavailable(f"{tool} is not installed")
    return path


def end_when_told():
    """From now on SIGTERM ends this program like an error does, so that what it has started and made goes, too. Once: timeout(1) sends
    it to the process and then to its group, and the second one shall not disturb the clearing away."""
    def end(number, _frame):
        signal.signal(number, signal.SIG_IGN)
        sys.exit(128 + number)
    signal.signal(signal.SIGTERM, end)


def exit_code_of(run, seed):
    """Runs a long test. Returns the exit code of its program: 0; 77 if this machine can't run it; 1 if a check did not hold."""
    end_when_told()
    try:
        run()
    except Unavailable as e:
        print(f"skip: {e}")
        return 77
    except Trouble as e:
        print(f"FAILED with --seed {seed}: {e}")
        return 1
    return 0


def default_build():
    return os.path.abspath(os.environ.get("BUILD") or os.path.join(ROOT, "build"))


class Build:
    """The files that `make` has built."""

    def __init__(self, directory):
        self.dir = os.path.abspath(directory)
        self.pumiced = os.path.join(self.dir, "bin", "pumiced")
        self.pumice = os.path.join(self.dir, "bin", "pumice")
        self.library = os.path.join(self.dir, "lib", "pumice", "libibverbs.so.1")
        self.checker = os.path.join(self.dir, "lib", "pumice", "libpumice_check.so")
        self.checks = False  # the checker is preloaded into programs
        self.daemon_options = []  # further ones of all daemons
        self._preload = None

    def missing(self):
        return [p for p in (self.pumiced, self.library) if not os.path.exists(p)]

    def verbs_test(self, name):
        path = os.path.join(self.dir, "tests", "verbs", name)
        if not os.path.exists(path):
            raise Unavailable(f"{os.path.relpath(path)} is not built")
        return path

    def sanitizers(self):
        """Names of the sanitizer run-time libraries that the client library needs; they must be loaded before all else."""
        out = subprocess.run(["readelf", "-d", self.library], capture_output=True, text=True, check=False).stdout
        return [w.strip("[]") for w in out.split() if w.startswith(("[libasan", "[libubsan", "[libtsan"))]

    def preload(self):
        if self._preload is None:
            names = [n for n in self.sanitizers() if "asan" in n or "tsan" in n]
            paths = [subprocess.run(["cc", "-print-file-name=" + n], capture_output=True, text=True, check=True).stdout.strip() for n in names]
            self._preload = ":".join(paths + ([self.checker] if self.checks else []) + [self.library])
        return self._preload


# --- addresses and ports -------------------------------------------------------------------------------------------------

def address_free(address):
    """Whether nobody has the RoCE port on this address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.bind((address, ROCE_PORT))
        except OSError:
            return False
    return True


def free_addresses(block, count):
    """count addresses of block ("127.0.50") whose RoCE port is free. Runs at the same time start at different places."""
    start = os.getpid() % 200
    found = []
    for i in range(250):
        address = f"{block}.{1 + (start + i) % 250}"
        if address_free(address):
            found.append(address)
            if len(found) == count:
                return found
    raise Unavailable(f"no free addresses in {block}.0/24")


_next_port = 20000 + os.getpid() * 7 % 8000


def tcp_port():
    """A TCP port nobody uses; each call another one, so that no connection in TIME_WAIT is in the way."""
    global _next_port
    while True:
        _next_port = _next_port + 1 if _next_port < 32000 else 20000
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as s:
            try:
                s.bind(("0.0.0.0", _next_port))
                return _next_port
            except OSError:
                continue


def listens(pid, port):
    """Whether a socket in the network namespace of process pid listens on the TCP port."""
    for name in ("tcp", "tcp6"):
        try:
            with open(f"/proc/{pid}/net/{name}", encoding="ascii") as f:
                for line in f:
                    field = line.split()
                    if field[3] == "0A" and int(field[1].rpartition(":")[2], 16) == port:
                        return True
        except (OSError, ValueError, IndexError):
            pass
    return False


# --- processes -----------------------------------------------------------------------------------------------------------

class Process:
    """A running command with its output in a file. `line` reproduces it in a shell."""

    def __init__(self, argv, env, log, prefix=(), **popen):
        assign = [f"{k}={v}" for k, v in env.items()]
        self.argv = list(prefix) + (["env"] + assign if assign else []) + [str(a) for a in argv]
        self.line = shlex.join(self.argv)
        self.log = log
        # A process group of its own, to be ended whole. But no session: a daemon and its programs then share processors as those of
        # one terminal do, and those of `pumice run`.
        group = {"process_group": 0} if sys.version_info >= (3, 11) else {"preexec_fn": os.setpgrp}
        with open(log, "wb") as out:
            self.popen = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, **group, **popen)
        self.pid = self.popen.pid

    def output(self):
        with open(self.log, "rb") as f:
            return f.read().decode("utf-8", "replace")

    def alive(self):
        return self.popen.poll() is None

    def wait(self, seconds):
        """Exit code; None if it still runs after this time."""
        try:
            return self.popen.wait(max(seconds, 0.01))
        except subprocess.TimeoutExpired:
            return None

    def wait_output(self, text, seconds):
        end = time.monotonic() + seconds
        while text not in self.output():
            if time.monotonic() > end or not self.alive():
                if text in self.output():
                    return
                raise Trouble(f"no {text!r} within {seconds} s from: {self.line}\n{self.output()}")
            time.sleep(0.01)

    def signal(self, number):
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            pass

    def stop(self):
        if self.alive():
            self.signal(signal.SIGTERM)
            if self.wait(2) is None:
                self.signal(signal.SIGKILL)
                self.wait(5)

    def kill(self):
        self.signal(signal.SIGKILL)
        self.wait(5)

    def cpu_ticks(self):
        with open(f"/proc/{self.pid}/stat", encoding="ascii", errors="replace") as f:
            field = f.read().rpartition(")")[2].split()
        return int(field[11]) + int(field[12])

    def cpu_use(self):
        """The nanoseconds that its threads have run, and how often one of them got a processor."""
        ns = turns = 0
        for task in os.listdir(f"/proc/{self.pid}/task"):
            with open(f"/proc/{self.pid}/task/{task}/schedstat", encoding="ascii") as f:
                field = f.read().split()
            ns, turns = ns + int(field[0]), turns + int(field[2])
        return ns, turns


def wait_listening(process, port, seconds=20):
    end = time.monotonic() + seconds
    while not listens(process.pid, port):
        if not process.alive() or time.monotonic() > end:
            raise Trouble(f"the server does not listen: {process.line}\n{process.output()}")
        time.sleep(0.005)


# --- the daemon's control socket -----------------------------------------------------------------------------------------

def control(path, op, payload=b""):
    """One request; returns (status, payload, file descriptors)."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 10, 0))
        s.connect(path)  # waits while the queue of the socket is full; with a timeout of Python's it would fail
        s.settimeout(10)
        s.send(struct.pack("=II", op, len(payload)) + payload)
        data, ancillary, _, _ = s.recvmsg(8192, socket.CMSG_SPACE(64))
    fds = array.array("i")
    for level, kind, raw in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(raw[:len(raw) - len(raw) % fds.itemsize])
    if len(data) < 8:
        raise Trouble(f"the daemon at {path} closed the connection")
    status, length = struct.unpack("=iI", data[:8])
    return status, data[8:8 + length], list(fds)


def status(path):
    """The daemon's status as a dictionary."""
    code, why, fds = control(path, PM_OP_STATUS)
    if code != 0 or not fds:
        raise Trouble(f"status: {code} {why.decode('utf-8', 'replace')}")
    with os.fdopen(fds[0], "rb") as f:
        for fd in fds[1:]:
            os.close(fd)
        f.seek(0)
        return json.loads(f.read().rstrip(b"\0"))


# --- hosts ---------------------------------------------------------------------------------------------------------------

class Host:
    """One daemon. prefix: what stands before every command on this host (entering a namespace, changing the user). more: the addresses of
    further devices, whose names end with 1, 2 and so on instead of 0."""

    def __init__(self, lab, name, address, prefix=(), options=(), more=()):
        self.lab, self.name, self.address, self.prefix, self.more = lab, name, address, list(prefix), list(more)
        self.options = list(options)
        self.socket = os.path.join(lab.dir, name + ".sock")
        self.device = lab.device or "pm_" + name
        self.daemon = None

    def command(self):
        devices = [f"{self.device}={self.address}"] + [f"{self.device[:-1]}{i}={a}" for i, a in enumerate(self.more, 1)]
        return [self.lab.pumiced, "--socket", self.socket] + [w for d in devices for w in ("--device", d)] + self.options

    def start(self):
        read, write = os.pipe()
        env = self.lab.daemon_env
        # It ends with this program, even if that is killed. (A change of the user takes the wish away, so it comes after the prefix.)
        bound = [which("setpriv"), "--pdeathsig", "TERM", "--"]
        self.daemon = Process(self.command() + ["--ready-fd", write], env, self.lab.log(self.name + ".daemon"), self.prefix + bound, pass_fds=[write])
        os.close(write)
        ready = select.select([read], [], [], 20)[0] and os.read(read, 64)
        os.close(read)
        if not ready:
            self.daemon.stop()
            raise Trouble(f"the daemon did not start: {self.daemon.line}\n{self.daemon.output()}")
        return self

    def stop(self):
        if self.daemon is not None:
            self.daemon.stop()

    def env(self):
        return dict(self.lab.client_env, LD_PRELOAD=self.lab.preload, PUMICE_SOCKET=self.socket)

    def run(self, argv, tag):
        """Starts a client of this host's daemon."""
        return Process(argv, self.env(), self.lab.log(tag), self.prefix)

    def status(self):
        return status(self.socket)

    def objects(self):
        """Kinds of objects of which the daemon still has any, with their numbers."""
        return object_counts(self.status())


# The names by which the status counts what clients have made.
OBJECT_KINDS = ("sessions", "pds", "mrs", "cqs", "qps", "channels", "ahs", "srqs", "mws", "xrcds", "comp_cntrs", "listeners", "connections")


def object_counts(tree):
    """All non-zero object counts of a status document, wherever they stand; of several devices the sum. (What both the device and
    its session count is counted twice; only zero, or the same as before, matters.)"""
    total = {}

    def walk(node):
        if isinstance(node, dict):
            for key, value in node.items():
                if key in OBJECT_KINDS:
                    n = len(value) if isinstance(value, (list, dict)) else value
                    if n:
                        total[key] = total.get(key, 0) + n
                walk(value)
        elif isinstance(node, list):
            for value in node:
                walk(value)

    walk(tree)
    return total


class Lab:
    """Hosts. topology: "hosts" (two, or "hosts4" and the like), "device", "device-wire", "veth1500", "veth9000", or "netns" (two hosts on
    the loopback interface of one namespace of its own). user: the name of the user that everything runs as. device: the name of every
    host's device; without it each has another. spread: where processors are few, each daemon keeps to one, as with `pumice run --cpus spread`.
    devices: how many each of "hosts" has; each process then sees one of them, as with `pumice run --devices`."""

    def __init__(self, build, topology, options=(), block="127.0.50", user=None, device=None, spread=False, devices=1):
        self.build, self.topology, self.user, self.device, self.devices = build, topology, user, device, devices
        self.pumiced, self.preload = build.pumiced, build.preload()
        self.daemon_env, self.client_env = {}, {}
        if build.sanitizers():
            # Only our own leaks count, and those the daemon reports.
            self.client_env.update(SANITIZER_ENV)
        self.dir = tempfile.mkdtemp(prefix="pumice-e2e-")
        self.checks = checked.Reports(os.path.join(self.dir, "check"), self.client_env) if build.checks else None
        self.hosts, self.namespaces, self.processes, self._logs = [], [], [], 0
        try:
            self._make(topology, list(options) + build.daemon_options, block, spread)
            if self.checks:
                self.checks.begin()
        except BaseException:
            self.close()
            raise

    def _make(self, topology, options, block, spread):
        prefix = self._user_prefix() if self.user else []
        if topology in ("device", "device-wire"):
            if topology == "device-wire":
                options = options + ["--loopback", "wire"]
            (address,) = free_addresses(block, 1)
            self.hosts = [Host(self, "host0", address, prefix, options)]
        elif topology.startswith("hosts"):
            free = free_addresses(block, int(topology[5:] or 2) * self.devices)
            each = [free[i:i + self.devices] for i in range(0, len(free), self.devices)]
            self.hosts = [Host(self, f"host{i}", a[0], prefix, options, a[1:]) for i, a in enumerate(each)]
        elif topology == "netns":
            enter = self._namespace("a", [])
            self.hosts = [Host(self, f"host{i}", f"{block}.{i + 1}", enter + prefix, options) for i in range(2)]
        elif topology.startswith("veth"):
            self._veth(int(topology[4:]), prefix, options)
        else:
            raise ValueError(topology)
        cpus = sorted(os.sched_getaffinity(0))
        for i, host in enumerate(self.hosts):
            if spread and 1 < len(self.hosts) and len(cpus) < 2 * len(self.hosts):
                host.options += ["--cpus", str(cpus[i % len(cpus)])]
            host.start()

    def _user_prefix(self):
        """Runs as another user, with a copy of the products where that user can read them."""
        if os.geteuid() != 0:
            raise Unavailable("changing the user needs root")
        try:
            entry = pwd.getpwnam(self.user)
        except KeyError as e:
            raise Unavailable(f"there is no user {self.user}") from e
        for path in (self.build.pumiced, self.build.library, self.build.checker):
            shutil.copy(path, self.dir)
        self.pumiced = os.path.join(self.dir, "pumiced")
        self.preload = self.preload.replace(os.path.dirname(self.build.library), self.dir)
        for name in os.listdir(self.dir):
            os.chmod(os.path.join(self.dir, name), 0o755)
        os.chown(self.dir, entry.pw_uid, entry.pw_gid)
        return [which("setpriv"), f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--clear-groups", "--no-new-privs"]

    @staticmethod
    def _ip(namespace, command):
        """ip inside of a namespace. Containers and chroots may forbid what it needs for that."""
        done = subprocess.run([which("ip"), "-n", namespace] + command.split(), capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Unavailable(f"ip -n ... {command}: " + done.stderr.strip())

    def _namespace(self, suffix, commands):
        if os.geteuid() != 0:
            raise Unavailable("network namespaces need root")
        ip = which("ip")
        name = f"pm{os.getpid()}{suffix}"
        made = subprocess.run([ip, "netns", "add", name], capture_output=True, text=True, check=False)
        if made.returncode != 0:
            raise Unavailable("no network namespace: " + made.stderr.strip())
        self.namespaces.append(name)
        for command in ["link set lo up"] + commands:
            self._ip(name, command)
        return [which("nsenter"), f"--net=/run/netns/{name}", "--"]

    @staticmethod
    def _wait_up(*namespaces):
        """The kernel reports that a link is up some time after it is."""
        end = time.monotonic() + 10
        while not all("state UP" in subprocess.run([which("ip"), "-n", name, "link", "show", "pm0"], capture_output=True, text=True, check=True).stdout
                      for name in namespaces):
            if time.monotonic() > end:
                raise Unavailable("the veth link does not come up")
            time.sleep(0.02)

    def _veth(self, mtu, prefix, options):
        first = self._namespace("a", [])
        second = self._namespace("b", [])
        a, b = self.namespaces
        ip = which("ip")
        made = subprocess.run([ip, "-n", a, "link", "add", "pm0", "type", "veth", "peer", "name", "pm0", "netns", b], capture_output=True, text=True,
                              check=False)
        if made.returncode != 0:
            raise Unavailable("no veth: " + made.stderr.strip())
        for number, name in ((1, a), (2, b)):
            for command in (f"addr add 10.50.0.{number}/24 dev pm0", f"link set pm0 mtu {mtu}", "link set pm0 up"):
                self._ip(name, command)
        self._wait_up(a, b)
        self.hosts = [Host(self, "host0", "10.50.0.1", first + prefix, options), Host(self, "host1", "10.50.0.2", second + prefix, options)]

    @property
    def server(self):
        return self.hosts[0]

    @property
    def client(self):
        return self.hosts[-1]

    def server_tcp(self):
        """The address where clients find the server's TCP port."""
        return self.server.address if self.topology.startswith("veth") else "127.0.0.1"

    def log(self, tag):
        self._logs += 1
        return os.path.join(self.dir, f"{self._logs:04d}.{tag}.log")

    def findings(self):
        """The findings of the checker in all programs so far."""
        return self.checks.findings() if self.checks else []

    def alive(self):
        return all(h.daemon is not None and h.daemon.alive() for h in self.hosts)

    def start(self, host, argv, tag):
        process = host.run(argv, tag)
        self.processes.append(process)
        return process

    def pair(self, server, client, port, seconds):
        """Runs a server and, when it listens on the port, its client. Returns both, ended: ("name", Process, exit code or None)."""
        s = self.start(self.server, server, "server")
        result = [("server", s, None), ("client", None, None)]
        try:
            wait_listening(s, port)
            c = self.start(self.client, client, "client")
            code = c.wait(seconds)
            result[1] = ("client", c, code)
            result[0] = ("server", s, s.wait(10 if code is not None else 0))
        finally:
            for _, process, _ in result:
                if process is not None and process.alive():
                    process.kill()
            self.processes = [p for p in self.processes if p.alive()]
        return result

    def wait_objects_gone(self, seconds=5):
        """All clients have gone: nothing of theirs may be left."""
        for host in self.hosts:
            end = time.monotonic() + seconds
            while True:
                left = host.objects()
                if not left:
                    break
                if time.monotonic() > end:
                    raise Trouble(f"{host.name}: objects left in the daemon: {left}")
                time.sleep(0.02)

    def close(self):
        for process in self.processes:
            if process.alive():
                process.kill()
        for host in self.hosts:
            host.stop()
        for name in self.namespaces:
            subprocess.run([which("ip"), "netns", "del", name], check=False, capture_output=True)
        shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
