# SPDX-License-Identifier: BSD-2-Clause
"""Programs that connect by rdma_cm, as data: their arguments, where they run, and what must be true afterwards.

A case's name is TOPOLOGY[+VARIANT]/PROGRAM/WHAT. run.py --list prints all names. `make test` runs the cases with quick=True,
`make test-rdmacm` runs all.

In arguments, {server} and {client} are the addresses of the two devices, {port} is a port that nobody uses, {dir} a directory of this lab.
"""

import dataclasses

import checks
import pairs

FAULT = ("--fault", "loss=5%,dup=2%,reorder=5%", "--seed", "7")


@dataclasses.dataclass
class Case:
    name: str
    topology: str
    server: list = None  # a pair of commands
    client: list = None
    python: object = None  # or a function, called with (case, lab)
    args: tuple = ()  # for that function
    options: tuple = ()  # of the daemons
    user: str = None
    ready: str = "cm"  # when the client may start: "cm", the server listens on the port by rdma_cm; "tcp", by TCP; "start", at once
    ends: bool = True  # the server ends after its client; otherwise it is killed
    hangup: bool = False  # the client may end with 16 (POLLHUP), if its server ends well; then the output of the server counts for both
    again: tuple = ()  # with one of these exit codes of the client, or after one of these texts of its output, the pair runs again
    traffic: int = 10  # requests that the device of the client must have carried out at least
    check: tuple = ()  # functions of (output of the server, output of the client)
    quick: bool = False
    timeout: float = 60


# Where the programs run: name, topology, options of the daemons, user. The letter stands for it in the tables below.
WHERE = {
    "h": ("hosts", "hosts", (), None),
    "f": ("hosts+faults", "hosts", FAULT, None),
    "d": ("device", "device", (), None),
    "e": ("device+faults", "device", FAULT, None),
    "w": ("device-wire", "device-wire", (), None),
    "x": ("device-wire+faults", "device-wire", FAULT, None),
    "n": ("nobody", "hosts", (), "nobody"),
    "m": ("nobody+faults", "hosts", FAULT, "nobody"),
    "o": ("nobody-device", "device", (), "nobody"),
}
ALL, CLEAN = "hfdewxnmo", "hdwno"  # CLEAN: datagrams that nobody repeats


def pair(program, what, server, client, quick="", where=ALL, **more):
    """A row of the tables: quick and where are letters of WHERE."""
    return program, what, server, client, quick, where, more


# --- rdmacm-utils ----------------------------------------------------------------------------------------------------------

def rping(what, args, quick="", count=10, where=ALL, **more):
    common = ["-p", "{port}", "-a", "{server}", "-C", str(count)] + args
    return pair("rping", what, ["rping", "-s"] + common, ["rping", "-c", "-v"] + common, quick, where, check=(checks.rping(count),), traffic=2 * count, **more)


def twice(program, what, args, quick="", where=ALL, **more):
    """A program whose client is the server's command with -s."""
    common = [program, "-p", "{port}"] + args
    return pair(program, what, common, common + ["-s", "{server}"], quick, where, **more)


def cmatose(what, args, quick="", where=ALL, **more):
    return twice("ucmatose", what, args, quick, where, check=(checks.complete,), **more)


def udaddy(what, args, quick="", where=CLEAN, **more):
    """Its port is fixed."""
    return pair("udaddy", what, ["udaddy"] + args, ["udaddy", "-s", "{server}"] + args, quick, where, ready="cm:7174", check=(checks.complete,), **more)


def mckey(what, args, quick="", where=CLEAN, group="239.1.1.1", **more):
    """Both ends join, wait three seconds, and then one sends."""
    common = ["mckey", "-m", group] + args
    return pair("mckey", what, common + ["-b", "{server}"], common + ["-b", "{client}", "-s"], quick, where, ready="start", check=(checks.complete,), **more)


UTILS = [
    rping("verbose", ["-v"], "hn"),
    rping("verify", ["-V", "-S", "1000"], "fd", 30),
    rping("large", ["-V", "-S", "60000"], "", 100),
    rping("own-qp", ["-V", "-q"], "hd"),
    rping("own-qp-faults", ["-V", "-q"], "f", where="fex"),
    cmatose("plain", [], "hfdn"),
    cmatose("20-connections", ["-c", "20", "-C", "20"], "f", timeout=120),
    cmatose("large", ["-S", "100000", "-C", "50"]),
    cmatose("migrate", ["-m", "-c", "4"], "hd"),
    cmatose("tos", ["-t", "32"]),
    cmatose("ack-timeout", ["-a", "18"], "h"),
    cmatose("ib-port-space", ["-P", "ib"], "h"),
    cmatose("no-messages", ["-C", "0", "-c", "10"], traffic=0),
    udaddy("plain", [], "hn"),
    udaddy("4-endpoints", ["-c", "4", "-C", "20"], "d"),
    udaddy("large", ["-S", "1000", "-C", "100"]),
    udaddy("tos", ["-t", "32"]),
    udaddy("only-connections", ["-C", "0", "-c", "10"], "f", where=ALL, traffic=0),
    mckey("plain", [], "n"),
    mckey("2-groups", ["-c", "2", "-C", "20", "-S", "500"]),
    mckey("only-join", ["-C", "0"], where=ALL, traffic=0),
    mckey("no-loopback", ["-l"]),
    twice("cmtime", "connections", ["-c", "50"], "", ends=False, check=(checks.cmtime(50),), traffic=0, timeout=120),
    twice("cmtime", "quick", ["-c", "10"], "hfd", ends=False, check=(checks.cmtime(10),), traffic=0, timeout=120),
    pair("rdma_client", "plain", ["rdma_server", "-p", "{port}"], ["rdma_client", "-s", "{server}", "-p", "{port}"], "hfdn", check=(checks.end_0,), traffic=1),
]
# Not quick with faults: the server ends at once, so a lost ACK makes the only request fail. rdma_xclient does not look at its status.
for kind, quick in (("r", "h"), ("x", "hdn")):
    UTILS.append(pair("rdma_xclient", "c-" + kind, ["rdma_xserver", "-p", "{port}", "-c", kind], ["rdma_xclient", "-s", "{server}", "-p", "{port}", "-c", kind], quick,
                      check=(checks.end_0,), traffic=1))

# rsockets. Of rstream and riostream: name, options, quick where.
STREAMS = [
    ("plain", [], ""),
    ("short", ["-S", "1000", "-C", "200"], ""),
    ("async", ["-T", "a", "-S", "5000", "-C", "200"], ""),
    ("blocking", ["-T", "b", "-S", "5000", "-C", "200"], "f"),
    ("nonblocking", ["-T", "n", "-S", "5000", "-C", "200"], ""),
    ("verify", ["-T", "v", "-S", "60000", "-C", "50"], "hd"),
    ("verify-blocking", ["-T", "v", "-T", "b", "-S", "1000003", "-C", "5"], ""),
    ("verify-async", ["-T", "v", "-T", "a", "-S", "70001", "-C", "50"], ""),
    ("iterations", ["-S", "64", "-C", "100", "-I", "20"], ""),
    ("small-buffer", ["-B", "4096", "-S", "65536", "-C", "20", "-T", "v"], ""),
    ("no-inline", ["-i", "0", "-S", "64", "-C", "500", "-T", "v"], ""),
]
SOCKETS = []
for program, more in (("rstream", [("resolve", ["-T", "r", "-S", "5000", "-C", "200"], "h"), ("keepalive", ["-k", "1", "-S", "5000", "-C", "200"], "")]), ("riostream", [])):
    for what, args, quick in STREAMS + more:
        # With -T a, these tools end with 16 if the end of the peer comes with its last data: then poll says POLLIN and POLLHUP, on any
        # device. The server sends both in one breath. So all data but those of the last transfer came to the client, and all to the server.
        SOCKETS.append(twice(program, what, args, quick if program == "rstream" or "verify" in what else "", timeout=120 if program == "rstream" else 300, check=(checks.stream,),
                             hangup="a" in args[1::2]))
    # riostream waits for data in memory, without a call or a pause. On two processors, the daemons then get half of the time.
    SOCKETS.append(twice(program, "all-sizes", ["-S", "all"], where="hdn", timeout=900, check=(checks.stream,)))
# Not with udpong's own counts: before version 63, rpoll of librdmacm never returns again after a timeout that ended before it slept.
# udpong gives it 1 ms, and the answer to the end of 100,000 datagrams comes later.
for what, args in (("small", ["-S", "64", "-C", "1000"]), ("large", ["-S", "1536", "-C", "1000"]), ("echo", ["-T", "e", "-S", "1000", "-C", "500"]), ("data", ["-S", "1000", "-C", "500"]), ("blocking", ["-T", "b", "-T", "e", "-S", "100", "-C", "200"]),
                   ("async", ["-T", "a", "-T", "e", "-S", "100", "-C", "200"]), ("nonblocking", ["-T", "n", "-T", "e", "-S", "100", "-C", "200"])):
    common = ["env", "PUMICE_DATAGRAM_RSOCKETS=1", "udpong", "-p", "{port}"] + args
    SOCKETS.append(pair("udpong", what, common + ["-b", "{server}"], common + ["-s", "{server}"], "hd" if what == "echo" else "", CLEAN, ready="udp", ends=False, check=(checks.stream,), timeout=120))
UTILS += SOCKETS

# --- perftest ----------------------------------------------------------------------------------------------------------------

BW, LAT = ("ib_send_bw", "ib_write_bw", "ib_read_bw", "ib_atomic_bw"), ("ib_send_lat", "ib_write_lat", "ib_read_lat", "ib_atomic_lat")
SEND, WRITE = ("ib_send_bw", "ib_send_lat"), ("ib_write_bw", "ib_write_lat")
SIZED = tuple(t for t in BW + LAT if "atomic" not in t)
EVENTS = tuple(t for t in BW + LAT if "write" not in t)  # nothing tells the target of a WRITE

# What, programs, arguments, quick where, where. With -R, perftest has RC and UD only: it refuses UC and XRC itself. With -z it exchanges
# its parameters by rdma_cm and connects its queue pairs as without; with XRC it posts a receive request to an XRC target for that, which has
# no receive queue, on any device.
PERFTEST = [
    ("R", BW + LAT, ["-R"], "", ALL),
    ("R-quick", ("ib_write_bw", "ib_send_lat", "ib_read_lat", "ib_atomic_bw"), ["-R", "-n", "200"], "hfdn", ALL),
    ("R-all-sizes", SIZED, ["-R", "-a", "-n", "100"], "", "hdn"),
    ("R-events", EVENTS, ["-R", "-e"], "", ALL),
    ("R-4-qps", BW, ["-R", "-q", "4"], "", ALL),
    ("R-4-qps-quick", ("ib_write_bw",), ["-R", "-q", "4", "-n", "400"], "f", ALL),
    ("R-bidirectional", BW, ["-R", "-b"], "", ALL),
    ("R-seconds", BW + LAT, ["-R", "-D", "2", "-f", "0"], "", "hdn"),
    ("R-inline", SEND + WRITE, ["-R", "-I", "64", "-s", "64"], "", ALL),
    ("R-tos", ("ib_send_bw",), ["-R", "-T", "96"], "", ALL),
    ("R-srq", SEND, ["-R", "--use-srq"], "", ALL),
    ("R-ud", SEND, ["-R", "-c", "UD", "-s", "1024"], "", CLEAN),
    ("R-ud-quick", SEND, ["-R", "-c", "UD", "-s", "1024", "-n", "200"], "hd", CLEAN),
    ("R-ud-events", SEND, ["-R", "-c", "UD", "-s", "1024", "-e"], "", CLEAN),
    ("R-old-post-send", BW, ["-R", "--use_old_post_send"], "", ALL),
    ("z", BW + LAT, ["-z", "-x", "0"], "", ALL),
    ("z-quick", ("ib_send_bw",), ["-z", "-x", "0", "-n", "200"], "h", ALL),
    ("z-uc", SEND + WRITE, ["-z", "-x", "0", "-c", "UC"], "", CLEAN),
    ("z-ud", SEND, ["-z", "-x", "0", "-c", "UD", "-s", "1024"], "", CLEAN),
]


def perftest():
    for what, programs, args, quick, where in PERFTEST:
        for program in programs:
            if program == "ib_send_lat" and "-e" in args:
                where = where.replace("f", "").replace("e", "").replace("x", "").replace("m", "")  # see e2e/programs/cases.py _confused
            common = [program, "-F", "-p", "{port}"] + args
            # The server listens twice: for the parameters, and then for the queue pairs. A client that comes before the second time is
            # rejected, and ends by a signal. The server does not wait until the second connection is established. If its RTU is lost,
            # the server rejects the connection at the end of the test (reason 28), as Linux would.
            yield pair(program, what, common, common + ["{server}"], quick, where, check=(checks.perftest,), timeout=240, again=(-11, "RDMA_CM_EVENT_REJECTED; error: 28"))


# --- qperf -------------------------------------------------------------------------------------------------------------------

# The tests that qperf connects by rdma_cm: those of RC. Each for a second.
QPERF = ("rc_bi_bw", "rc_bw", "rc_lat", "rc_rdma_read_bw", "rc_rdma_read_lat", "rc_rdma_write_bw", "rc_rdma_write_lat", "rc_rdma_write_poll_lat",
            "rc_compare_swap_mr", "rc_fetch_add_mr", "ver_rc_compare_swap", "ver_rc_fetch_add")


def qperf():
    for test in QPERF:
        quick = {"rc_lat": "h", "ver_rc_fetch_add": "fd"}.get(test, "")
        # The server tells its port by TCP before it listens there. A client that comes in between is rejected.
        yield pair("qperf", test, ["qperf", "-lp", "{port}"], ["qperf", "-lp", "{port}", "{server}", "-cm1", "-t", "1", test], quick,
                   ready="tcp", ends=False, check=(checks.qperf(test),), timeout=60, again=("Event rejected",))


# --- libfabric ---------------------------------------------------------------------------------------------------------------

def fabric():
    for what, provider, endpoint, where, more in (
            ("msg", "verbs", "msg", ALL, []), ("rxm", "verbs;ofi_rxm", "rdm", ALL, []),
            ("rxm-tagged", "verbs;ofi_rxm", "rdm", ALL, ["-m", "tagged"]), ("dgram", "verbs", "dgram", CLEAN, [])):
        for size, count in ((64, 200), (4096, 100), (65536, 50), (1 << 20, 10)):
            if endpoint == "dgram" and size > 1024:
                continue
            quick = {("msg", 64): "hf", ("rxm", 65536): "hfd", ("dgram", 64): "h"}.get((what, size), "")
            common = ["fi_pingpong", "-p", provider, "-e", endpoint, "-I", str(count), "-S", str(size), "-c"] + more
            yield pair("fi_pingpong", f"{what}-{size}", common + ["-B", "{port}"], common + ["-P", "{port}", "{server}"], quick, where, ready="tcp", traffic=count,
                       check=(checks.fi_pingpong(count),))


# --- fio ---------------------------------------------------------------------------------------------------------------------

# What, verb, rw of the client, more for both sides, more for the server. fio compares data where messages bring them (send and recv). Of a READ
# or WRITE, the other side does not know what arrived when, and fio has no check. The engine refuses random orders.
VERIFY = ["--verify=crc32c"]
# fio asks for no RNR retries, on any device, and its sender waits only half a second for its receiver. So the receiver posts a request for each of
# the 128 messages before the first comes. (--rate_iops is no help: a sender that was held up sends all at once.)
RECEIVER = ["--iodepth=128"]
FIO = [
    ("write", "write", "write", [], []),
    ("read", "read", "write", [], []), # for fio, the side that connects writes, whatever the verb
    ("send", "send", "write", [], RECEIVER),
    ("send-verify", "send", "write", VERIFY + ["--do_verify=0"], RECEIVER),
]


def fio():
    for what, verb, rw, client, server in FIO:
        common = ["fio", "--ioengine=rdma", "--port={port}", "--bs=64k", "--size=8m", "--iodepth=8", "--thread", "--name=pumice", "--output-format=terse",
                  "--verify_state_save=0"]
        verify = [a for a in client if a != "--do_verify=0"]
        yield pair("fio", what, common + ["--rw=read"] + verify + server, common + ["--hostname={server}", "--verb=" + verb, "--rw=" + rw] + client,
                   {"write": "h"}.get(what, ""), check=(checks.fio,), traffic=100)


# --- programs for TCP, by preload --------------------------------------------------------------------------------------------

def preload():
    """Programs that know nothing of RDMA: their TCP connections become rsockets. env keeps the client library."""
    common = ["iperf3", "-p", "{port}"]
    yield pair("rsockets", "iperf3", common + ["-s", "-1"], common + ["-c", "{server}", "-n", "4M"], "", check=(checks.iperf3,))
    yield pair("rsockets", "iperf3-reverse", common + ["-s", "-1"], common + ["-c", "{server}", "-n", "4M", "-R"], "", check=(checks.iperf3,))
    yield pair("rsockets", "tcp_echo", ["tcp_echo", "{port}"], ["tcp_echo", "{port}", "{server}", "4000000"], "hfdn", check=(checks.tcp_echo,))
    for what, args in (("rstream", ["-S", "60000", "-C", "20", "-T", "v"]), ("rstream-async", ["-S", "60000", "-C", "20", "-T", "a", "-T", "v"])):
        stream = ["rstream", "-p", "{port}", "-T", "s"] + args
        yield pair("rsockets", what, stream, stream + ["-s", "{server}"], "", check=(checks.stream,), hangup="a" in args)
    fork = ["rstream", "-p", "{port}", "-S", "60000", "-C", "20", "-T", "v"]
    yield pair("rsockets", "rstream-fork", fork + ["-T", "f"], fork + ["-T", "s", "-s", "{server}"], "", check=(checks.stream,))


# --- cases that are more than a pair -------------------------------------------------------------------------------------------

# Name, function, its arguments, quick where, where, seconds
PYTHON = [
    ("rping/persistent-server", pairs.rping_clients, (8, 10), "f", ALL, 120),
    ("rping/many-clients", pairs.rping_clients, (40, 5), "", ALL, 300),
    ("rping/killed-client", pairs.rping_killed, ("client",), "h", "hdn", 60),
    ("rping/killed-server", pairs.rping_killed, ("server",), "d", "hdn", 60),
    ("rping/no-server", pairs.no_server, (), "hd", "hdwn", 30),
    ("rcopy/file", pairs.rcopy, (3 << 20,), "f", ALL, 120),
    ("rcopy/empty-and-large", pairs.rcopy, (1, 30 << 20), "", ALL, 240),
    ("churn/quick", pairs.churn, ("-c", "300", "-n", "4"), "fdn", ALL, 120),
    ("churn/kill", pairs.churn, ("-c", "500", "-n", "4", "-k"), "f", ALL, 240),
    ("churn/long", pairs.churn, ("-c", "5000", "-n", "8", "-k"), "", ALL, 600),
    ("ucp/rdmacm", pairs.ucp, (), "h", ALL, 120),
    ("live/1000", pairs.live, (1000,), "d", "hd", 240),
    ("live/10000", pairs.live, (10000,), "", "h", 900),
]


def rows():
    yield from UTILS
    yield from perftest()
    yield from qperf()
    yield from fabric()
    yield from fio()
    for program, what, server, client, quick, where, more in preload():
        # With RDMAV_FORK_SAFE, a server listens at a TCP socket, and the connections become rsockets later. iperf3 asks TCP sockets for
        # what rsockets do not have.
        fork = what == "rstream-fork" or what.startswith("iperf3")
        env = ["env"] + ["RDMAV_FORK_SAFE=1"] * fork + ["LD_PRELOAD={preload}:" + pairs.RSOCKETS]
        more = dict(more, ready="tcp" if fork else "cm")
        yield program, what, env + server, env + client, quick, where, more


def all_cases():
    """In the order of WHERE, so that cases with the same daemons follow each other."""
    table = list(rows())
    for letter, (name, topology, options, user) in WHERE.items():
        slow = 3 if options else 1
        for program, what, server, client, quick, where, more in table:
            if letter in where:
                more = dict(more, timeout=more.get("timeout", 60) * slow)
                yield Case(f"{name}/{program}/{what}", topology, server=server, client=client, options=options, user=user, quick=letter in quick, **more)
        for what, function, args, quick, where, timeout in PYTHON:
            if letter in where:
                yield Case(f"{name}/{what}", topology, python=function, args=args, options=options, user=user, quick=letter in quick, timeout=timeout * slow)
