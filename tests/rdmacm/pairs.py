# SPDX-License-Identifier: BSD-2-Clause
"""Runs pairs of programs that connect by rdma_cm, and the cases that are more than a pair."""

import os
import random
import select
import signal
import time

import lab as labs
from checks import need

LISTEN_SECONDS = 20
RSOCKETS = f"/usr/lib/{os.uname().machine}-linux-gnu/rsocket/librspreload.so"  # makes rsockets of TCP sockets
# Programs of our own, in the folder of the build.
OWN = {"tcp_echo": "tests/rdmacm/tcp_echo", "churn": "tests/rdmacm/churn", "ucp_pair": "tests/rdmacm/ucp_pair"}


def locate(name, build):
    """The path of a program of the system or of our own."""
    if name not in OWN:
        return labs.which(name)
    path = os.path.join(build.dir, OWN[name])
    if not os.path.exists(path):
        raise labs.Unavailable(f"{OWN[name]} is not built (make tests)")
    return path


def command(argv, lab, port):
    """A command of cases.py with its addresses, and the path of its program."""
    if any(RSOCKETS in a for a in argv) and not os.path.exists(RSOCKETS):
        raise labs.Unavailable(f"no {RSOCKETS}")
    values = {"server": lab.server.address, "client": lab.client.address, "port": port, "dir": lab.dir, "preload": lab.preload}
    line = [str(a).format(**values) for a in argv]
    index = next(i for i, word in enumerate(line) if word != "env" and "=" not in word)
    line[index] = locate(line[index], lab.build)
    return line


def told(*processes):
    return "".join(f"\n--- {p.line}\n{p.output()[-4000:]}" for p in processes if p is not None)


# --- listening -------------------------------------------------------------------------------------------------------------

def listens(status, port):
    """Whether an ID of connection management listens on the port."""
    return any(listener["port"] == port for listener in status.get("cm", {}).get("listeners", []))


def is_bound(port):
    """Whether a UDP socket of this machine has the port: a datagram server of librdmacm takes its first messages there."""
    with open("/proc/net/udp", encoding="ascii") as table:
        return any(line.split()[1].endswith(f":{port:04X}") for line in table.readlines()[1:])


def wait_ready(process, host, ready, port):
    """Until the client may start."""
    kind, _, other = ready.partition(":")
    port = int(other or port)
    end = time.monotonic() + LISTEN_SECONDS
    if kind == "tcp":
        labs.wait_listening(process, port)
    while (kind == "cm" and not listens(host.status(), port)) or (kind == "udp" and not is_bound(port)):
        if not process.alive() or time.monotonic() > end:
            raise labs.Trouble(f"the server does not listen on port {port}" + told(process))
        time.sleep(0.02)


# --- a pair ----------------------------------------------------------------------------------------------------------------

def requests(host):
    """Requests that the device has carried out for its programs, received messages included."""
    counters = host.status()["devices"][0]["counters"]
    return sum(counters.get(name, 0) for name in ("sends", "writes", "reads", "atomics", "recvs"))


TRIES = 10


def run_pair(case, lab):
    for _ in range(TRIES - 1):
        if run_once(case, lab):
            return
    need(run_once(case, lab), f"the client ended with one of {case.again} in {TRIES} runs")


def drop_semaphore():
    """librspreload.so with RDMAV_FORK_SAFE has a semaphore for all processes of the machine. One that was killed while it had the
    semaphore holds up all others for ever."""
    try:
        os.unlink("/dev/shm/sem.rsocket_fork")
    except OSError:
        pass


def client_did(code, output, what):
    return what in output if isinstance(what, str) else code == what


def run_once(case, lab):
    """Returns False if the client ended with the code, or with the text, that does not count."""
    port = labs.tcp_port()
    server_argv, client_argv = command(case.server, lab, port), command(case.client, lab, port)
    before = requests(lab.client)
    if "RDMAV_FORK_SAFE=1" in case.server:
        drop_semaphore()
    server = lab.start(lab.server, server_argv, "server")
    client = None
    try:
        wait_ready(server, lab.server, case.ready, port)
        client = lab.start(lab.client, client_argv, "client")
        code = client.wait(case.timeout)
        need(code is not None, f"the client did not end within {case.timeout:.0f} s" + told(server, client))
        if any(client_did(code, client.output(), a) for a in case.again):
            return False
        hung_up = case.hangup and code == select.POLLHUP
        need(code == 0 or hung_up, f"the client exited with {code}" + told(server, client))
        if case.ends:
            code = server.wait(20)
            need(code is not None, "the server did not end after its client" + told(server, client))
            need(code == 0, f"the server exited with {code}" + told(server, client))
        did = requests(lab.client) - before
        need(did >= case.traffic, f"the device did only {did} requests of at least {case.traffic}" + told(server, client))
        for check in case.check:
            try:
                check(server.output(), server.output() if hung_up else client.output())
            except labs.Trouble as e:
                raise labs.Trouble(f"{e}{told(server, client)}") from None
        return True
    finally:
        for process in (client, server):
            if process is not None and process.alive():
                process.kill()
        lab.processes = [p for p in lab.processes if p.alive()]


def established(host):
    """How many connections the host has had."""
    return host.status()["cm"]["counters"]["established"]


def wait_until(holds, text, *processes):
    end = time.monotonic() + LISTEN_SECONDS
    while not holds():
        need(time.monotonic() < end, text + told(*processes))
        time.sleep(0.01)


# --- rping and rcopy ---------------------------------------------------------------------------------------------------------

def _rping(lab, port, *args):
    return [labs.which("rping"), "-p", port, "-a", lab.server.address, *args]


def rping_clients(case, lab):
    """A persistent server and many clients at once."""
    clients, count = case.args
    port = labs.tcp_port()
    server = lab.start(lab.server, _rping(lab, port, "-s", "-P", "-S", "4000"), "server")
    others = []
    try:
        wait_ready(server, lab.server, "cm", port)
        for i in range(clients):
            connected = established(lab.server)
            others.append(lab.start(lab.client, _rping(lab, port, "-c", "-v", "-V", "-S", 100 + 50 * i, "-C", count), "client"))
            # rping may mix up two requests that come at the same moment: its event thread overwrites the ID of the first one.
            wait_until(lambda: established(lab.server) > connected, "no connection", others[-1], server)  # noqa: B023
        end = time.monotonic() + case.timeout
        for p in others:
            code = p.wait(end - time.monotonic())
            need(code == 0, f"a client " + ("did not end" if code is None else f"exited with {code}") + told(p, server))
            need(p.output().count("ping data: ") == count, "a client printed too few pings" + told(p))
        need(server.alive(), "the server ended" + told(server))
    finally:
        for p in [*others, server]:
            p.kill()


def rping_killed(case, lab):
    """One of two partners is killed. The other one sees the end of the connection, and ends."""
    (who,) = case.args
    port = labs.tcp_port()
    server = lab.start(lab.server, _rping(lab, port, "-s"), "server")
    wait_ready(server, lab.server, "cm", port)
    client = lab.start(lab.client, _rping(lab, port, "-c", "-C", 100000000), "client")
    before = requests(lab.client)
    end = time.monotonic() + 20
    while requests(lab.client) < before + 20:
        need(client.alive() and server.alive() and time.monotonic() < end, "no traffic" + told(server, client))
        time.sleep(0.01)
    victim, other = (client, server) if who == "client" else (server, client)
    victim.signal(signal.SIGKILL)
    code = other.wait(20)
    other.kill()
    need(code is not None, f"the partner of the killed {who} did not end" + told(other))


def no_server(_case, lab):
    """Nobody listens: the peer rejects the request at once. No such host: the address or the connection fails, in bounded time."""
    client = lab.start(lab.client, _rping(lab, labs.tcp_port(), "-c", "-C", 1), "client")
    code = client.wait(10)
    client.kill()
    need(code not in (0, None), f"exit code {code} without a server" + told(client))
    need("RDMA_CM_EVENT_REJECTED" in client.output(), "the request was not rejected" + told(client))


def rcopy(case, lab):
    """Files of these sizes arrive as they are."""
    port = labs.tcp_port()
    server = lab.start(lab.server, [labs.which("rcopy"), "-p", port], "server")
    try:
        wait_ready(server, lab.server, "cm", port)
        for i, size in enumerate(case.args):
            source, target = os.path.join(lab.dir, f"source{i}"), os.path.join(lab.dir, f"target{i}")
            with open(source, "wb") as f:
                f.write(random.Random(size).randbytes(size))
            os.chmod(source, 0o644)
            client = lab.start(lab.client, [labs.which("rcopy"), source, f"{lab.server.address}:{target}", "-p", port], "client")
            code = client.wait(case.timeout)
            client.kill()
            need(code == 0, f"{size} bytes: exit code {code}" + told(client, server))
            with open(source, "rb") as a, open(target, "rb") as b:
                need(a.read() == b.read(), f"{size} bytes: the copy differs" + told(client, server))
    finally:
        server.kill()


# --- programs of our own -----------------------------------------------------------------------------------------------------

def churn(case, lab):
    """Processes that connect, check data and disconnect, many times; with -k, some are killed in the middle."""
    port = labs.tcp_port()
    program = locate("churn", lab.build)
    server = lab.start(lab.server, [program, "-p", port, *case.args], "server")
    try:
        wait_ready(server, lab.server, "cm", port)
        client = lab.start(lab.client, [program, "-p", port, "-s", lab.server.address, *case.args], "client")
        code = client.wait(case.timeout)
        client.kill()
        need(code == 0 and "\nok " in "\n" + client.output(), f"exit code {code}" + told(client, server))
    finally:
        server.kill()


def live(case, lab):
    """So many connections at the same time."""
    (count,) = case.args
    port = labs.tcp_port()
    program = locate("churn", lab.build)
    server = lab.start(lab.server, [program, "-p", port], "server")
    try:
        wait_ready(server, lab.server, "cm", port)
        client = lab.start(lab.client, [program, "-p", port, "-s", lab.server.address, "-n", 1, "-c", count, "-l"], "client")
        code = client.wait(case.timeout)
        client.kill()
        need(code == 0 and f"\nlive {count}" in "\n" + client.output(), f"exit code {code}" + told(client, server))
    finally:
        server.kill()


def ucp(case, lab):
    """A client and a server of UCX that find each other by a socket address and rdma_cm, on the device and over nothing else."""
    port = labs.tcp_port()
    program = locate("ucp_pair", lab.build)
    setting = ["env", "UCX_TLS=rc_v,self", "UCX_SOCKADDR_TLS_PRIORITY=rdmacm", "UCX_LOG_LEVEL=warn"]
    before = requests(lab.client)
    server = lab.start(lab.server, setting + [program, port], "server")
    client = None
    try:
        wait_ready(server, lab.server, "cm", port)
        client = lab.start(lab.client, setting + [program, port, lab.server.address], "client")
        for p in (client, server):
            code = p.wait(case.timeout)
            need(code == 0, f"exit code {code}" + told(client, server))
            need("\nok " in "\n" + p.output() and "ERROR" not in p.output(), "no closing line, or an error" + told(client, server))
        need(requests(lab.client) - before >= 100, "the device was not used" + told(client, server))
    finally:
        for p in (server, client):
            if p is not None:
                p.kill()
