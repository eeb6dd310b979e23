# SPDX-License-Identifier: BSD-2-Clause
"""Cases for other transports than plain RC: UC, UD, shared receive queues, XRC. They run the programs of cases.py with other options.

UC and UD may lose messages, and none of these programs repeats one. So these cases run without faults only.
"""

PINGPONG = [
    # program, what, arguments, quick on which topologies ("h": hosts, "d": device, "w": device-wire, "v": veth, "f": hosts with faults)
    ("ibv_uc_pingpong", "plain", [], "hdwv"),
    ("ibv_uc_pingpong", "events", ["-e"], "hd"),
    ("ibv_uc_pingpong", "check", ["-c"], "hdv"),
    ("ibv_uc_pingpong", "size-1", ["-c", "-s", "1"], ""),
    ("ibv_uc_pingpong", "size-1000003", ["-c", "-s", "1000003", "-n", "50"], "hd"),
    ("ibv_uc_pingpong", "mtu-256", ["-c", "-m", "256"], ""),
    ("ibv_uc_pingpong", "20000-small", ["-c", "-s", "64", "-n", "20000"], ""),
    ("ibv_ud_pingpong", "plain", ["-s", "1024"], "hdwv"),
    ("ibv_ud_pingpong", "events", ["-e", "-s", "1024"], "hd"),
    ("ibv_ud_pingpong", "check", ["-c", "-s", "1024"], "hdv"),
    ("ibv_ud_pingpong", "size-1", ["-c", "-s", "1"], "hd"),
    ("ibv_ud_pingpong", "size-24", ["-c", "-s", "24"], ""),
    ("ibv_ud_pingpong", "size-4096", ["-c", "-s", "4096"], "hd"),
    ("ibv_ud_pingpong", "20000-small", ["-c", "-s", "64", "-n", "20000"], ""),
    ("ibv_srq_pingpong", "plain", [], "hdwvf"),
    ("ibv_srq_pingpong", "events", ["-e"], "hdf"),
    ("ibv_srq_pingpong", "check", ["-c"], "hdvf"),
    ("ibv_srq_pingpong", "1-qp", ["-c", "-q", "1"], ""),
    ("ibv_srq_pingpong", "few-requests", ["-c", "-r", "20"], "hf"),
    ("ibv_srq_pingpong", "size-65536", ["-c", "-s", "65536", "-n", "100"], ""),
    ("ibv_xsrq_pingpong", "plain", ["-m", "1024"], "hdwvf"),
    ("ibv_xsrq_pingpong", "events", ["-e", "-m", "1024"], "hdf"),
    ("ibv_xsrq_pingpong", "mtu-4096", ["-m", "4096"], "hd"),
    ("ibv_xsrq_pingpong", "2000-tests", ["-m", "1024", "-n", "2000"], "hf"),
    ("ibv_xsrq_pingpong", "size-1000003", ["-m", "1024", "-s", "1000003", "-n", "20"], "hf"),
]
RELIABLE = ("ibv_srq_pingpong", "ibv_xsrq_pingpong")
LARGE_MTU = ("mtu-4096", "size-4096")  # not over an interface whose MTU is 1500

SEND, WRITE = ("ib_send_bw", "ib_send_lat"), ("ib_write_bw", "ib_write_lat")
READ, ATOMIC = ("ib_read_bw", "ib_read_lat"), ("ib_atomic_bw", "ib_atomic_lat")

GROUP = "0:0:0:0:0:0:0:0:0:0:255:255:239:1:1:1"

PERFTEST = [
    # what, programs, arguments, quick on which topologies, arguments of the quick run
    ("uc", SEND + WRITE, ["-c", "UC"], "hd", ["-c", "UC", "-n", "300"]),
    ("uc-all-sizes", ("ib_send_bw",) + WRITE, ["-c", "UC", "-a"], "", None),
    ("uc-events", SEND, ["-c", "UC", "-e"], "", None),
    ("uc-4-qps", ("ib_send_bw", "ib_write_bw"), ["-c", "UC", "-q", "4"], "", None),
    ("uc-bidirectional", ("ib_send_bw", "ib_write_bw"), ["-c", "UC", "-b"], "", None),
    ("ud", SEND, ["-c", "UD", "-s", "1024"], "hd", ["-c", "UD", "-s", "1024", "-n", "300"]),
    ("ud-all-sizes", SEND, ["-c", "UD", "-a"], "", None),
    ("ud-events", SEND, ["-c", "UD", "-s", "1024", "-e"], "", None),
    ("ud-multicast", SEND, ["-c", "UD", "-s", "1024", "-g", "-M", GROUP], "hd", ["-c", "UD", "-s", "1024", "-g", "-M", GROUP, "-n", "300"]),
    # Its default group is one of InfiniBand, not of IPv4. ib_send_bw refuses to mix that with an IPv4 GID, ib_send_lat does not.
    ("ud-multicast-default", ("ib_send_lat",), ["-c", "UD", "-s", "1024", "-g"], "hd", ["-c", "UD", "-s", "1024", "-g", "-n", "300"]),
    ("srq", SEND, ["--use-srq"], "hdf", ["--use-srq", "-n", "300"]),
    ("srq-all-sizes", SEND, ["--use-srq", "-a", "-n", "100"], "", None),
    ("srq-4-qps", ("ib_send_bw",), ["--use-srq", "-q", "4"], "h", ["--use-srq", "-q", "4", "-n", "400"]),
    # More than one packet: the ACK of a message must not come behind the answer.
    ("srq-events", SEND, ["--use-srq", "-e"], "h", ["--use-srq", "-e", "-s", "5000"]),
    ("xrc", SEND + WRITE + READ + ATOMIC, ["-c", "XRC"], "hdf", ["-c", "XRC", "-n", "200"]),
    ("xrc-all-sizes", SEND + WRITE + READ, ["-c", "XRC", "-a", "-n", "100"], "", None),
    ("xrc-events", SEND + READ + ATOMIC, ["-c", "XRC", "-e"], "", None),
    ("xrc-4-qps", ("ib_send_bw", "ib_write_bw", "ib_read_bw"), ["-c", "XRC", "-q", "4"], "", None),
    ("xrc-bidirectional", ("ib_send_bw", "ib_write_bw", "ib_read_bw"), ["-c", "XRC", "-b"], "", None),
]

# Data-checked traffic (tests/verbs/endurance)
ENDURANCE = [
    ("srq", ["-c", "SRQ", "-n", "4000"], "hdwvf"),
    ("srq-events", ["-c", "SRQ", "-e", "-n", "2000", "-r", "2"], "h"),
    ("xrc", ["-c", "XRC", "-n", "4000"], "hdwvf"),
    ("xrc-events", ["-c", "XRC", "-e", "-n", "2000", "-r", "2"], "h"),
    ("xrc-megabytes", ["-c", "XRC", "-n", "100", "-s", "1000000", "-S", "4194304", "-q", "8"], "hf"),
    ("uc", ["-c", "UC", "-n", "4000"], "hdwv"),
]


def unreliable(args):
    return "UC" in args or "UD" in args
