# SPDX-License-Identifier: BSD-2-Clause
"""The cases of programs that connect by rdma_cm. One end is the connection management of Linux, the other one Pumice's.

In arguments, {address} is the address of the server, {own} that of the side itself, {port} the port of the server.
"""

import dataclasses
import os
import re
import signal
import time

import lab as labs
from case import Case, perftest_done

# --- checks --------------------------------------------------------------------------------------------------------------


def cm_done(server, client):
    for who, out in (("server", server), ("client", client)):
        bad = re.search(r"failed|return status -|: end -|event: .*, error|data verification|data corruption|\[error\]", out)
        if bad:
            raise labs.Trouble(f"the {who} says '{bad.group(0)}'")


def joined(server, client):
    """Both ends have received the messages of the other one."""
    for who, out in (("server", server), ("client", client)):
        if "return status 0" not in out:
            raise labs.Trouble(f"the {who} did not report success")


# --- pairs of programs -----------------------------------------------------------------------------------------------------

AT, ON, BIND = ["-s", "{address}"], ["-p", "{port}"], ["-b", "{own}"]
O16 = ["-o", "16"]
GROUP = "239.78.0.1"  # not one that tests/rxe/join_groups.py joins: here the kernel does it


def twice(program, what, args, six=True, **more):
    """A program whose client is the server's command with -s. With IPv6 the server binds: its wildcard is that of IPv4."""
    common = [program, *args] + ([] if program == "udaddy" else ON)
    return program, what, common, common + AT, six, dict({"listens": "7174"} if program == "udaddy" else {}, **more)


def mckey(what, args):
    """Both ends join, wait for three seconds, and then the client sends. Linux joins no group of IPv6 by rdma_cm (ENOTSUPP)."""
    return "mckey", what, ["mckey", "-m", "{group}", *BIND, *args], ["mckey", "-m", "{group}", *BIND, "-s", *args], False, {"listens": "", "check": joined}


def rping(what, args, six=False):
    common = ["-a", "{address}", *ON, *args]
    return "rping", what, ["rping", "-s", *common], ["rping", "-c", *common], six, {}


# Program, what, server, client, also with IPv6, more fields of the case.
# With -R, perftest resolves addresses of IPv4 only.
PAIRS = [
    rping("verify", ["-V", "-C", "20", "-S", "1000"], True),
    rping("own-qp", ["-q", "-V", "-C", "20"]),
    twice("ucmatose", "8-connections", ["-c", "8"]),
    twice("ucmatose", "large", ["-C", "20", "-S", "100000"]),
    twice("ucmatose", "migrate", ["-m"], False),
    twice("ucmatose", "ib-port-space", ["-P", "ib"], False),
    twice("ucmatose", "tos-and-ack-timeout", ["-t", "32", "-a", "18"], False),
    twice("udaddy", "plain", []),
    twice("udaddy", "4-endpoints", ["-c", "4"], False),
    twice("udaddy", "only-connections", ["-C", "0", "-c", "10"], False),
    mckey("plain", []),
    mckey("2-groups", ["-c", "2", "-C", "20", "-S", "500"]),
    ("rdma_client", "plain", ["rdma_server", *ON], ["rdma_client", *AT, *ON], False, {}),
    ("rdma_xclient", "rc", ["rdma_xserver", "-c", "r", *ON], ["rdma_xclient", "-c", "r", *AT, *ON], False, {}),
    twice("rstream", "verify", ["-T", "v", "-S", "60000", "-C", "20"]),
    twice("rstream", "blocking", ["-T", "b", "-S", "5000", "-C", "100"], False),
    twice("riostream", "verify", ["-T", "v", "-S", "60000", "-C", "20"], False),
    ("cmtime", "50-connections", ["cmtime", *ON], ["cmtime", "-c", "50", *AT, *ON], True, {"stays": True}),
] + [(program, what, [program, "-F", "-n", "200", *more, *ON], [program, "-F", "-n", "200", *more, *ON, "{address}"], False, {"check": perftest_done})
     for program, what, more in (("ib_send_bw", "rdma_cm", ["-R"]), ("ib_write_bw", "rdma_cm", ["-R"]), ("ib_send_lat", "rdma_cm", ["-R"]), ("ib_write_lat", "rdma_cm", ["-R"]),
                                 ("ib_read_bw", "rdma_cm", ["-R"] + O16), ("ib_read_lat", "rdma_cm", ["-R"] + O16),
                                 ("ib_atomic_bw", "rdma_cm", ["-R"] + O16), ("ib_atomic_lat", "rdma_cm", ["-R"] + O16),
                                 ("ib_write_bw", "rdma_cm-4-qps", ["-R", "-q", "4"]), ("ib_send_bw", "rdma_cm-ud", ["-R", "-c", "UD", "-s", "1024", "-t", "16"]))]

# Those that also run while both ends lose and double packets.
LOSSY = ("rping/verify", "ucmatose/8-connections", "udaddy/only-connections", "cmtime/50-connections", "rstream/verify", "ib_write_bw/rdma_cm")


def bind(program, argv, six):
    """The server's command of a case with IPv6 names its address."""
    return argv + BIND if six and program in ("ucmatose", "udaddy", "rstream", "riostream", "cmtime") else argv


# --- cases that are more than a pair ------------------------------------------------------------------------------------------

class Play:
    """What such a case needs: start(side, argv) a program with addresses filled in, where side is "server" or "client"."""

    def __init__(self, machine, sides, values):
        self.machine, self.side, self.values, self.processes = machine, dict(zip(("server", "client"), sides)), values, []

    def start(self, side, argv, port=None):
        argv = [str(a).format(own=self.values[side], **self.values) for a in argv]
        argv[0] = argv[0] if "/" in argv[0] else labs.which(argv[0])
        process = self.machine.spawn(self.side[side], argv, side + str(len(self.processes)), port, cm=True)
        self.processes.append(process)
        if port:
            self.machine.wait_cm(process, self.side[side], port)
        return process

    def told(self):
        return "".join(f"\n--- {p.line}\n{p.output()[-3000:]}" for p in self.processes)

    def need(self, holds, text):
        if not holds:
            raise labs.Trouble(text + self.told())

    def ended(self, process, seconds, text):
        code = process.wait(seconds)
        self.need(code is not None, text)
        return code

    def until(self, holds, seconds, text):
        end = time.monotonic() + seconds
        while not holds():
            self.need(time.monotonic() < end, text)
            time.sleep(0.05)


def rping_of(side, *args):
    return ["rping", "-s" if side == "server" else "-c", "-a", "{address}", "-p", "{port}", *args]


def rejected(play):
    """Nobody listens."""
    for argv in (rping_of("client", "-C", "1"), ["ucmatose", *AT, *ON], ["rstream", *AT, *ON]):
        client = play.start("client", argv)
        code = play.ended(client, 30, "a client did not end")
        play.need(code != 0, "a client ended with 0")
        # The rejection reaches rstream before it polls, between its calls, or within rpoll. Then rpoll returns POLLERR and sets no errno, and
        # rstream prints an old one: none, or that of rconnect.
        wanted = r"RDMA_CM_EVENT_REJECTED|event: .*REJECTED, error|Connection refused|endpoint is not connected|rpoll: (Success|Operation now in progress)"
        play.need(re.search(wanted, client.output()), "a client does not say that it was rejected")
    client = play.start("client", ["udaddy", *AT])
    play.need(play.ended(client, 30, "udaddy did not end") != 0 and "UNREACHABLE" in client.output(), "udaddy does not say that there is no service")


def killed(who):
    """One of two partners is killed. The other one sees the end of the connection, and ends."""
    def play_it(play):
        server = play.start("server", rping_of("server"), play.values["port"])
        client = play.start("client", rping_of("client", "-v", "-C", "100000000"))
        play.until(lambda: "ping data" in client.output(), 30, "no traffic")
        victim, other = (client, server) if who == "client" else (server, client)
        victim.kill()
        play.ended(other, 30, f"the partner of the killed {who} did not end")
        play.need("DISCONNECT EVENT" in other.output(), f"the partner of the killed {who} did not see the end of the connection")
    return play_it


def stopped(play):
    """The server stops before a request comes, and goes on later: meanwhile the peer waits, and repeats its request."""
    server = play.start("server", rping_of("server", "-C", "5"), play.values["port"])
    server.signal(signal.SIGSTOP)
    client = play.start("client", rping_of("client", "-V", "-C", "5"))
    time.sleep(3)
    play.need(client.alive(), "the client did not wait for a server that is busy")
    server.signal(signal.SIGCONT)
    play.need(play.ended(client, 30, "the client did not end") == 0, "the client failed")


def persistent(play):
    """One server, many clients."""
    play.start("server", rping_of("server", "-P", "-S", "4000"), play.values["port"])
    for i in range(8):
        client = play.start("client", rping_of("client", "-V", "-S", 100 + 50 * i, "-C", 5))
        play.need(play.ended(client, 30, "a client did not end") == 0, "a client failed")


def unheard(play):
    """The server's answers are lost. The client gives up, and its peer is told."""
    server = play.start("server", rping_of("server", "-C", "1"), play.values["port"])
    play.machine.lose_all(play.side["server"])
    try:
        client = play.start("client", rping_of("client", "-C", "1"))
        code = play.ended(client, 150, "the client did not give up")
        play.need(code != 0 and "RDMA_CM_EVENT_UNREACHABLE" in client.output(), "the client does not say that nobody answered")
        play.ended(server, 60, "the server did not end")
    finally:
        play.machine.lose_all(None)


def churn(*args):
    """Processes that connect, check data and disconnect, many times; with -k, some are killed in the middle."""
    def play_it(play):
        program = os.path.join(play.machine.build.dir, "tests", "rdmacm", "churn")
        play.start("server", [program, "-p", "{port}", *args], play.values["port"])
        client = play.start("client", [program, "-p", "{port}", "-s", "{address}", *args])
        code = play.ended(client, 200, "the client did not end")
        play.need(code == 0 and "\nok " in "\n" + client.output(), f"the client ended with {code}")
    return play_it


# Program, what, function, also with IPv6
PLAYS = [
    ("rping", "no-server", rejected, True),
    ("rping", "killed-client", killed("client"), False),
    ("rping", "killed-server", killed("server"), True),
    ("rping", "stopped-server", stopped, False),
    ("rping", "persistent-server", persistent, False),
    ("rping", "unheard-server", unheard, False),
    ("churn", "200-connections", churn("-c", "200", "-n", "4"), False),
    ("churn", "200-connections-with-kills", churn("-c", "200", "-n", "4", "-k"), False),
]


def cases(group, six, names=None, **more):
    for program, what, server, client, also, fields in PAIRS:
        if (also or not six) and (names is None or f"{program}/{what}" in names):
            yield Case(f"{group}/{program}/{what}", client, server=bind(program, server, six), six=six, group=GROUP, **{"check": cm_done, "listens": "{port}", **fields, **more})
    for program, what, function, also in PLAYS:
        if (also or not six) and (names is None or f"{program}/{what}" in names):
            yield Case(f"{group}/{program}/{what}", [], play=function, six=six, timeout=300)


def lossy():
    for case in cases("faults/both-lose", False, LOSSY, fault="loss=5%,dup=2%", netem="loss 5% duplicate 2%", timeout=180):
        if case.server[0] == "udaddy":
            # A server that has answered its last client ends, and the service with it. If this answer is lost, the client asks again and
            # hears that there is no such service. So here the server waits for more clients than there are.
            case = dataclasses.replace(case, server=["udaddy", "-C", "0", "-c", "20"], stays=True)
        yield case
