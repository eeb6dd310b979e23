# SPDX-License-Identifier: BSD-2-Clause
"""The two ends of the tests beside soft-RoCE: a Pumice host in the namespace of the tap, and the guest."""

import os
import re
import shlex
import signal
import subprocess
import time

import lab as labs
import pairs

SCRIPT = os.path.join(labs.ROOT, "tests", "rxe", "guest")
HOST_IP, GUEST_IP = "10.77.0.1", "10.77.0.2"
HOST_IP6, GUEST_IP6 = "fd77::1", "fd77::2"

# The multicast groups of the tests. The socket of rxe does not join groups, so the guest joins them in this way.
GROUPS = ("239.77.0.1", "239.1.1.1", "ff0e::77:1")


class GuestProcess:
    """A command that runs in the guest. It has the methods of labs.Process."""

    def __init__(self, guest, command, port=None, cm=False):
        self.guest, self.line, self.pid = guest, f"tests/rxe/guest exec {shlex.quote(command)}", None
        self.id = guest.next_id()
        self.base = os.path.join(guest.share, "queue", self.id)
        script = f"echo $$ >/guest/queue/{self.id}.pid\ncd {shlex.quote(labs.ROOT)}\n"
        if port:
            # The file .listens appears when the program listens on its port, of TCP or of rdma_cm.
            listens = f"rdma resource show cm_id | grep -q 'LISTEN.*:{port} '" if cm else f"grep -qE ':{port:04X} [0-9A-F]+:0000 0A' /proc/net/tcp /proc/net/tcp6"
            script += (f"(until {listens}; do sleep 0.02; done\n"
                       f"echo >/guest/queue/{self.id}.listens) 2>/dev/null &\n")
        with open(self.base + ".cmd", "w", encoding="utf-8") as f:
            f.write(script + command + "\n")
        if not guest.alive():
            raise labs.Trouble("the guest has ended:\n" + guest.log())
        try:
            pipe = os.open(os.path.join(guest.dir, "command.in"), os.O_WRONLY | os.O_NONBLOCK)  # it fails if nobody reads
        except OSError as e:
            raise labs.Trouble(f"the guest takes no commands ({e.strerror}):\n" + guest.log()) from e
        with os.fdopen(pipe, "wb", buffering=0) as f:
            f.write((self.id + "\n").encode())

    def alive(self):
        return not os.path.exists(self.base + ".rc")

    def output(self):
        try:
            with open(self.base + ".out", "rb") as f:
                return f.read().decode("utf-8", "replace")
        except FileNotFoundError:
            return ""

    def wait(self, seconds):
        end = time.monotonic() + seconds
        while self.alive():
            if time.monotonic() > end:
                return None
            if not self.guest.alive():
                raise labs.Trouble("the guest has ended:\n" + self.guest.log())
            time.sleep(0.01)
        with open(self.base + ".rc", encoding="ascii") as f:
            return int(f.read())

    def wait_listening(self, seconds):
        end = time.monotonic() + seconds
        while not os.path.exists(self.base + ".listens"):
            if not self.alive() or time.monotonic() > end:
                raise labs.Trouble(f"the server does not listen: {self.line}\n{self.output()}")
            time.sleep(0.01)

    def signal(self, number):
        self.guest.run(f"kill -{number:d} -- -$(cat /guest/queue/{self.id}.pid) || true", 20)

    def kill(self):
        """A guest that has ended, or takes no more commands, has no process to kill: Machine.close() ends it."""
        if self.alive() and self.guest.alive():
            try:
                self.signal(signal.SIGKILL)
                self.wait(10)
            except labs.Trouble as e:
                print(f"not killed: {self.line}: {e}", flush=True)

    stop = kill


class Guest:
    """The virtual machine."""

    def __init__(self, directory):
        self.dir, self.share, self.number = directory, os.path.join(directory, "share"), 0

    def script(self, *args):
        return subprocess.run([SCRIPT, *args], env=dict(os.environ, RXE_DIR=self.dir), capture_output=True, text=True, check=False)

    def start(self):
        done = self.script("start")
        if done.returncode == 77:
            raise labs.Unavailable(done.stderr.strip().removeprefix("skip: "))
        if done.returncode != 0:
            raise labs.Trouble("the guest does not start:\n" + done.stdout + done.stderr)
        with open(os.path.join(self.dir, "qemu.pid"), encoding="ascii") as f:
            self.pid = int(f.read())

    def stop(self):
        self.script("stop")

    def log(self):
        return self.script("log").stdout[-2000:]

    def alive(self):
        return os.path.exists(f"/proc/{self.pid}/ns")

    def next_id(self):
        self.number += 1
        return f"{os.getpid()}-{self.number}"

    def enter(self):
        """The start of commands on this machine that reach the guest."""
        user = [] if os.geteuid() == 0 else ["--user", "--preserve-credentials"]
        return [labs.which("nsenter"), *user, "--net", "--target", str(self.pid), "--"]

    def run(self, command, seconds=60):
        """Runs a command to its end and returns its output."""
        process = GuestProcess(self, command)
        code = process.wait(seconds)
        if code != 0:
            raise labs.Trouble(f"exit code {code} from: {process.line}\n{process.output()}")
        return process.output()


class Machine(labs.Lab):
    """Pumice at HOST_IP and HOST_IP6, and the guest."""

    def _make(self, topology, options, block, spread):
        self.guest = Guest(os.environ.get("RXE_DIR") or os.path.join(self.build.dir, "rxe"))
        self.guest.start()
        options = ["--device", f"pumice1={HOST_IP6}"]
        self.hosts = [labs.Host(self, "pumice0", HOST_IP, self.guest.enter(), options)]
        self.hosts[0].device = "pumice0"
        self.hosts[0].start()
        join = GuestProcess(self.guest, "exec tests/rxe/join_groups.py eth0 " + " ".join(GROUPS))
        end = time.monotonic() + 60
        while "joined" not in join.output():
            if not join.alive() or time.monotonic() > end:
                raise labs.Trouble(f"the guest can't join multicast groups:\n{join.output()}")
            time.sleep(0.05)
        self.gids = {}
        for side, text in (("pumice", self.host_run(["ibv_devinfo", "-v"])), ("rxe", self.guest.run("ibv_devinfo -v"))):
            self.gids[side] = parse_gids(text)

    @property
    def host(self):
        return self.hosts[0]

    def host_run(self, argv, seconds=60):
        process = self.start(self.host, argv, "host")
        code = process.wait(seconds)
        if code != 0:
            raise labs.Trouble(f"exit code {code} from: {process.line}\n{process.output()}")
        return process.output()

    def gid(self, side, six):
        """Device and GID index of the address of this family."""
        address = {("pumice", False): "::ffff:" + HOST_IP, ("pumice", True): HOST_IP6, ("rxe", False): "::ffff:" + GUEST_IP, ("rxe", True): GUEST_IP6}
        found = self.gids[side].get(address[side, six])
        if not found:
            raise labs.Trouble(f"no device of {side} has the GID {address[side, six]}: {self.gids[side]}")
        return found

    def sent(self):
        """How many packets Pumice has sent, and how many of them again."""
        total, again = 0, 0
        for device in self.host.status()["devices"]:
            counters = device["counters"]
            total += counters["sent_pkts"]
            again += sum(counters[n] for n in ("fast_retrans", "probe_retrans", "timeout_retrans"))
        return total, again

    def fault(self, spec):
        """Injects faults into what Pumice sends; "off" ends them."""
        done = subprocess.run([self.build.pumice, "fault", "--seed", "7", "--socket", self.host.socket, spec], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise labs.Trouble(f"pumice fault {spec}: {done.stdout}{done.stderr}")

    def netem(self, spec):
        """The same for what the guest sends, by its kernel's sch_netem; "" ends them."""
        self.guest.run(f"tc qdisc replace dev eth0 root netem {spec}" if spec else "tc qdisc del dev eth0 root; true")

    def spawn(self, side, argv, tag, port=None, cm=False):
        if side == "rxe":
            process = GuestProcess(self.guest, shlex.join(argv), port, cm)
        else:
            process = labs.Process(argv, self.host.env(), self.log(tag), self.host.prefix)
        self.processes.append(process)
        return process

    def pair_of(self, sides, argvs, port, seconds, cm=False, stays=False):
        """Runs a server on the first side, and its client on the second when it listens: on a TCP port, or on one of rdma_cm (cm). Returns
        both, ended, with their exit codes. port None: the client does not wait. stays: the server has to run until the client has ended;
        then it is killed, and its exit code is 0. If it has ended before, that is Trouble."""
        server = self.spawn(sides[0], argvs[0], "server", port, cm)
        client, codes = None, [None, None]
        try:
            if port and cm:
                self.wait_cm(server, sides[0], port)
            elif port and sides[0] == "rxe":
                server.wait_listening(30)
            elif port:
                labs.wait_listening(server, port)
            client = self.spawn(sides[1], argvs[1], "client")
            codes[1] = client.wait(seconds)
            if stays and not server.alive():
                raise labs.Trouble(f"the server ended with {server.wait(1)}, before the client: {server.line}\n{server.output()}")
            codes[0] = 0 if stays else server.wait(10 if codes[1] == 0 else 1)
        finally:
            for process in (server, client):
                if process and process.alive():
                    process.kill()
            self.processes = [p for p in self.processes if p.alive()]
        return (server, client), codes

    def wait_cm(self, server, side, port):
        """Until the program listens on its port of rdma_cm."""
        if side == "rxe":
            server.wait_listening(30)
        else:
            pairs.wait_ready(server, self.host, "cm", port)

    def lose_all(self, side):
        """From now on, nothing that this side sends arrives. None: all arrives again."""
        self.fault("loss=100%" if side == "pumice" else "off")
        self.netem("loss 100%" if side == "rxe" else "")

    def close(self):
        try:
            super().close()
        finally:
            if hasattr(self, "guest"):
                self.guest.stop()


def parse_gids(text):
    """Address -> (device, index) from the output of `ibv_devinfo -v`."""
    gids, device = {}, None
    for line in text.splitlines():
        if line.startswith("hca_id:"):
            device = line.split()[1]
        found = re.match(r"\s*GID\[\s*(\d+)\]:\s*([0-9a-f:.]+)", line)
        if found:
            gids.setdefault(found.group(2).rstrip(","), (device, int(found.group(1))))
    return gids
