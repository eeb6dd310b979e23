# SPDX-License-Identifier: BSD-2-Clause
"""The cases of tests/rxe/run.py as data. Each runs in both directions: with Pumice as the client, and as the server.

A case's name is GROUP/PROGRAM/WHAT. The group says how packets travel: ipv4, ipv6, or faults.
"""

import cm_cases
from case import Case, perftest_done
from lab import Trouble


# --- checks --------------------------------------------------------------------------------------------------------------

def pingpong_done(server, client):
    for who, out in (("server", server), ("client", client)):
        if "invalid data" in out:
            raise Trouble(f"the {who} found invalid data")
        if "iters in" not in out and "\nsuccess\n" not in out:
            raise Trouble(f"the {who} did not report its iterations")


def endurance_done(server, client):
    for who, out in (("server", server), ("client", client)):
        if "\nok " not in "\n" + out:
            raise Trouble(f"the {who} printed no closing line")


# --- tables --------------------------------------------------------------------------------------------------------------

# Program, what, arguments, also with IPv6
PINGPONG = [
    ("ibv_rc_pingpong", "plain", [], True),
    ("ibv_rc_pingpong", "events", ["-e"], False),
    ("ibv_rc_pingpong", "check", ["-c"], False),
    ("ibv_rc_pingpong", "mtu-2048", ["-c", "-m", "2048", "-s", "20000"], False),
    ("ibv_rc_pingpong", "mtu-4096", ["-c", "-m", "4096", "-s", "20000"], True),
    ("ibv_rc_pingpong", "size-1000003", ["-c", "-s", "1000003", "-n", "10"], False),
    ("ibv_uc_pingpong", "plain", [], True),
    ("ibv_ud_pingpong", "plain", ["-s", "1024"], True),
    ("ibv_srq_pingpong", "plain", [], True),
    ("ibv_srq_pingpong", "events", ["-e"], False),
    ("ibv_xsrq_pingpong", "plain", ["-m", "1024"], False),
]

GROUP = "0:0:0:0:0:0:0:0:0:0:255:255:239:1:1:1"
SEND, WRITE = ("ib_send_bw", "ib_send_lat"), ("ib_write_bw", "ib_write_lat")
READ, ATOMIC = ("ib_read_bw", "ib_read_lat"), ("ib_atomic_bw", "ib_atomic_lat")
O16 = ["-o", "16"]

# Programs, what, arguments, also with IPv6
PERFTEST = [
    (SEND + WRITE, "rc", [], True),
    (READ + ATOMIC, "rc", O16, True),
    (READ + ATOMIC, "default-outstanding", [], False),
    (ATOMIC, "compare-and-swap", ["-A", "CMP_AND_SWAP"] + O16, False),
    # Nothing limits an unreliable sender, so small messages and few at a time: the guest loses no more than its queues hold.
    (SEND + WRITE, "uc", ["-c", "UC", "-s", "4096", "-t", "16"], True),
    (SEND, "ud", ["-c", "UD", "-s", "1024", "-t", "16"], True),
    (("ib_send_bw", "ib_write_bw"), "all-sizes", ["-a", "-n", "5"], False),
    (("ib_read_bw",), "all-sizes", ["-a", "-n", "5"] + O16, False),
    (("ib_send_bw",), "ud-all-sizes", ["-c", "UD", "-a", "-n", "50", "-t", "16"], False),
    (("ib_send_bw", "ib_write_bw"), "bidirectional", ["-b"], False),
    (("ib_read_bw", "ib_atomic_bw"), "bidirectional", ["-b"] + O16, False),
    (("ib_send_bw", "ib_write_bw"), "4-qps", ["-q", "4"], False),
    (("ib_read_bw",), "4-qps", ["-q", "4"] + O16, False),
    (("ib_send_bw",), "bidirectional-4-qps", ["-b", "-q", "4"], False),
    (SEND, "events", ["-e"], False),
    (READ + ATOMIC, "events", ["-e"] + O16, False),
    (SEND, "srq", ["--use-srq"], False),
    (SEND + WRITE, "inline", ["-I", "64", "-s", "64"], False),
    (("ib_send_bw", "ib_write_bw"), "post-list", ["-l", "16", "-n", "320"], False),
    (("ib_send_bw", "ib_write_bw"), "mtu-1024", ["-m", "1024"], False),
    (("ib_read_bw",), "mtu-1024", ["-m", "1024"] + O16, False),
    (("ib_send_bw", "ib_write_bw"), "mtu-2048", ["-m", "2048"], False),
    (("ib_read_bw",), "mtu-2048", ["-m", "2048"] + O16, False),
    (("ib_send_bw",), "10-mebibytes", ["-s", "1048576", "-n", "10", "-m", "1024"], False),
    (("ib_send_bw",), "bidirectional-10-mebibytes-4-qps", ["-b", "-q", "4", "-s", "1048576", "-n", "10", "-m", "1024"], False),
    (SEND, "multicast", ["-c", "UD", "-s", "1024", "-g", "-M", GROUP], False),
    (SEND, "xrc", ["-c", "XRC"], False),
]

# All operations but bind: rxe may not return from destroying a QP with a window.
OPERATIONS = ["-o", "send,send_imm,write,write_imm,read,faa,cas"]

# Traffic whose data both ends check (tests/verbs/endurance): what, arguments, also with IPv6
ENDURANCE = [
    ("mixed", ["-n", "2000"], True),
    ("mixed-mtu-4096", ["-n", "2000", "-m", "4096", "-r", "2"], True),
    ("mixed-mtu-256", ["-n", "1000", "-m", "256", "-S", "20000", "-r", "3"], False),
    ("events", ["-e", "-n", "1000", "-r", "4"], False),
    ("small-deep", ["-n", "10000", "-S", "64", "-q", "256", "-u", "16", "-r", "5"], False),
    ("empty-and-tiny", ["-n", "4000", "-S", "2", "-r", "6"], False),
    ("megabytes", ["-n", "40", "-s", "1000000", "-S", "4194304", "-q", "8", "-r", "7"], False),
    ("atomic", ["-n", "5000", "-o", "faa,cas", "-r", "11"], False),
    ("srq", ["-c", "SRQ", "-n", "2000"], True),
    ("uc", ["-c", "UC", "-n", "2000", "-S", "4096", "-q", "8"], True),
]

# What, faults of Pumice's packets, faults of the guest's packets
FAULTS = [
    ("pumice-loses", "loss=3%", ""),
    ("rxe-loses", "", "loss 3%"),
    ("both-lose", "loss=3%", "loss 3%"),
    ("both-double-and-reorder", "dup=3%,reorder=3%", "duplicate 3% reorder 97% delay 1ms"),
    ("pumice-loses-acks", "ack-loss=20%", ""),
]
FAULTY = [
    ("rdma_endurance/send-write", ["rdma_endurance", "-n", "1000", "-S", "16384", "-o", "send,send_imm,write,write_imm"], endurance_done),
    ("rdma_endurance/small", ["rdma_endurance", "-n", "2000", "-S", "64", "-o", "send,send_imm,write,write_imm", "-r", "5"], endurance_done),
    ("rdma_endurance/mixed", ["rdma_endurance", "-n", "1000", "-S", "16384", "-T", "8", "-r", "6"] + OPERATIONS, endurance_done),
    ("ib_send_bw", ["ib_send_bw", "-F", "-n", "200", "-s", "16384"], perftest_done),
    ("ib_write_bw", ["ib_write_bw", "-F", "-n", "200", "-s", "16384"], perftest_done),
    ("ib_read_bw", ["ib_read_bw", "-F", "-n", "200", "-s", "16384"] + O16, perftest_done),
    ("ib_atomic_bw", ["ib_atomic_bw", "-F", "-n", "500"] + O16, perftest_done),
]


def _programs(group, six):
    for program, what, args, also in PINGPONG:
        if also or not six:
            yield Case(f"{group}/{program}/{what}", [program, "-n", "200"] + args, pingpong_done, six)
    for programs, what, args, also in PERFTEST:
        for program in programs if also or not six else ():
            yield Case(f"{group}/{program}/{what}", [program, "-F"] + ([] if "-n" in args else ["-n", "200"]) + args, perftest_done, six)
    for what, args, also in ENDURANCE:
        if also or not six:
            yield Case(f"{group}/rdma_endurance/{what}", ["rdma_endurance"] + ([] if "-o" in args else OPERATIONS) + args, endurance_done, six)


def all_cases():
    cases = list(_programs("ipv4", False))
    for what, fault, netem in FAULTS:
        for traffic, argv, check in FAULTY:
            cases.append(Case(f"faults/{what}/{traffic}", argv, check, fault=fault, netem=netem))
    cases += [*cm_cases.cases("ipv4", False), *cm_cases.lossy()]
    cases += _programs("ipv6", True)
    cases += cm_cases.cases("ipv6", True)
    for traffic, argv, check in FAULTY:
        cases.append(Case(f"ipv6/both-lose/{traffic}", argv, check, True, "loss=3%", "loss 3%"))
    return cases


# Odd cases that also run with IPv6: those in which addresses or packets of special lengths matter. (The others are the same
# code after the address was found.)
ODD_IPV6 = ("send-1", "send-0", "send-60001*", "send-inline", "late-receive*", "write-60001*", "write-the-whole-region", "write-unknown-rkey",
            "read-60001*", "read-64", "fetch-add", "psn-wraps*", "retry-peer*", "mtu-*", "srq-send", "uc-*", "ud-*", "multicast*", "window-2-write")

# Odd cases that run last, each by a program of its own. rxe sometimes keeps a queue pair for ever after the peer used a window, and then the
# call that destroys it does not return. The result was printed before.
ODD_ALONE = "window-*"
