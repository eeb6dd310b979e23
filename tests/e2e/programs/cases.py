# SPDX-License-Identifier: BSD-2-Clause
"""The cases as data: unmodified programs, their arguments, where they run, and what must be true afterwards.

A case's name is TOPOLOGY[+VARIANT]/PROGRAM/WHAT. run.py --list prints all names. `make test` runs the cases with quick=True,
run.py --full runs all.
"""

import dataclasses
import re

import programs
import special
import transports
from lab import Trouble, Unavailable

FAULT = ("--fault", "loss=5%,dup=2%,reorder=5%", "--seed", "7")
TOPOLOGIES = ("hosts", "device", "device-wire", "veth1500", "veth9000")


@dataclasses.dataclass
class Case:
    name: str
    topology: str
    server: list = None  # a pair; the port and, for the client, the address are added as the program wants them
    client: list = None
    single: list = None  # one command on host 0
    python: object = None  # or a function of special.py, called with (lab, full)
    options: tuple = ()  # of the daemons
    user: str = None
    quick: bool = False
    timeout: float = 60
    check: tuple = ()  # functions of (output of the server or the single, output of the client, case)
    lab: bool = True  # False: python makes its own daemons
    alone: bool = False  # it measures how long or how often daemons run: nothing else should


# --- checks --------------------------------------------------------------------------------------------------------------

def data_valid(server, client, _case):
    for out in (server, client):
        if "invalid data" in out:
            raise Trouble("the program found invalid data")


def pingpong_done(server, client, case):
    args = case.client
    iters = int(args[args.index("-n") + 1]) if "-n" in args else 1000
    for who, out in (("server", server), ("client", client)):
        if f"{iters} iters in" not in out:
            raise Trouble(f"the {who} did not report {iters} iterations")


def perftest_rows(text):
    """Result lines of a perftest program: message size -> list of numbers."""
    rows = {}
    for line in text.splitlines():
        field = line.partition("Correlation")[0].split()  # where speeds vary much it says so, at the end of the line
        # (A percentile of few and very uneven times may be "-nan", and all times "inf" if the tool measured the processor's frequency wrong.)
        if len(field) >= 4 and all(re.fullmatch(r"\d+(\.\d+)?|-?nan|inf", f) for f in field):
            rows[int(field[0])] = [float(f) for f in field[1:] if "nan" not in f]
    return rows


def perftest_done(_server, client, case):
    rows = perftest_rows(client)
    largest = PINGPONG_MTU.get(case.topology, 4096) if "UD" in case.client else 1 << 23
    sizes = {1 << i for i in range(1, largest.bit_length())} if "-a" in case.client else None
    if not rows:
        raise Trouble("the client printed no result")
    if sizes and set(rows) != sizes:
        raise Trouble(f"results for {sorted(rows)} instead of every power of two from 2 to {largest}")
    for size, row in rows.items():
        # On a busy machine perftest may be unable to measure the clock. Then it says so, and prints the speed 0.
        if row[0] <= 0 or (max(row[1:]) <= 0 and "Correlation coefficient r^2" not in client):
            raise Trouble(f"no iterations or no speed for size {size}: {row}")


def endurance_done(server, client, _case):
    for out in (server, client):
        if "\nok " not in "\n" + out:
            raise Trouble("no closing line")


def timestamp_supported(server, client, _case):
    if "isn't completion timestamp capable" in server + client:
        raise Unavailable("the device does not offer completion timestamps")


# --- tables --------------------------------------------------------------------------------------------------------------

# (Not -e with -t: then ibv_rc_pingpong takes an event whose completions it has already polled for an error.)
# Name, arguments, quick on which topologies ("h": hosts, "d": device, "w": device-wire, "v": veth, "f": hosts with faults)
PINGPONG = [
    ("plain", [], "hdwvf"),
    ("events", ["-e"], "hdf"),
    ("check", ["-c"], "hdvf"),
    ("new-send", ["-N"], "hd"),
    # Not -e with -t: the tool then ends with "poll CQ failed 2" if it has already polled the completion of an event.
    ("timestamp", ["-t"], "hd"),
    ("events-check-new-send", ["-e", "-c", "-N"], "hf"),
    ("mtu-256", ["-c", "-m", "256"], "hd"),
    ("mtu-512", ["-c", "-m", "512"], "h"),
    ("mtu-1024", ["-c", "-m", "1024"], ""),
    ("mtu-2048", ["-c", "-m", "2048"], "h"),
    ("mtu-4096", ["-c", "-m", "4096"], "hdf"),
    ("size-1", ["-c", "-s", "1"], "hdf"),
    ("size-2", ["-c", "-s", "2"], ""),
    ("size-1023", ["-c", "-s", "1023"], ""),
    ("size-1025", ["-c", "-s", "1025"], "h"),
    ("size-65536", ["-c", "-s", "65536", "-n", "500"], ""),
    ("size-1000003", ["-c", "-s", "1000003", "-n", "50"], "hdf"),
    ("size-8388608", ["-c", "-s", "8388608", "-n", "20", "-r", "20"], "hd"),
    ("size-8388608-mtu-4096", ["-c", "-s", "8388608", "-m", "4096", "-n", "20", "-r", "20"], "hf"),
    ("100000", ["-c", "-n", "100000"], ""),
    ("20000-small", ["-c", "-s", "64", "-n", "20000"], "hd"),
]
PINGPONG_MTU = {"veth1500": 1024}

BW, LAT = ("ib_send_bw", "ib_write_bw", "ib_read_bw", "ib_atomic_bw"), ("ib_send_lat", "ib_write_lat", "ib_read_lat", "ib_atomic_lat")
SEND_WRITE = ("ib_send_bw", "ib_write_bw", "ib_send_lat", "ib_write_lat")
READ_ATOMIC = ("ib_read_bw", "ib_atomic_bw", "ib_read_lat", "ib_atomic_lat")
SIZED = ("ib_send_bw", "ib_write_bw", "ib_read_bw", "ib_send_lat", "ib_write_lat", "ib_read_lat")
EVENTS = tuple(t for t in BW + LAT if "write" not in t)  # perftest itself refuses: nothing tells the target of a WRITE

# Name, programs that have the option, arguments, quick on which topologies, arguments of the quick run if they differ
PERFTEST = [
    ("plain", BW + LAT, [], "hdf", ["-n", "200"]),
    ("all-sizes", SIZED, ["-a"], "hdv", ["-a", "-n", "20"]),  # see QUICK_ALL_SIZES
    ("events", EVENTS, ["-e"], "hd", ["-e", "-n", "200"]),
    ("4-qps", BW, ["-q", "4"], "hd", ["-q", "4", "-n", "400"]),
    ("bidirectional", BW, ["-b"], "hd", ["-b", "-n", "500"]),
    ("bidirectional-4-qps", BW, ["-b", "-q", "4"], "h", ["-b", "-q", "4", "-n", "400"]),
    ("seconds", BW + LAT, ["-D", "5"], "", None),
    ("outstanding-1", READ_ATOMIC, ["-o", "1"], "hd", ["-o", "1", "-n", "200"]),
    ("outstanding-4", READ_ATOMIC, ["-o", "4"], "", None),
    ("inline-64", SEND_WRITE, ["-I", "64", "-s", "64"], "hdf", ["-I", "64", "-s", "64", "-n", "1000"]),
    ("inline-0", SEND_WRITE, ["-I", "0", "-s", "64"], "", None),
    ("compare-and-swap", ("ib_atomic_bw", "ib_atomic_lat"), ["-A", "CMP_AND_SWAP"], "h", ["-A", "CMP_AND_SWAP", "-n", "200"]),
    ("mtu-256", SIZED, ["-m", "256"], "", None),
    ("post-list", ("ib_send_bw", "ib_write_bw", "ib_read_bw"), ["-l", "16", "-n", "4800"], "h", ["-l", "16", "-n", "800"]),
    ("old-post-send", BW, ["--use_old_post_send"], "h", ["--use_old_post_send", "-n", "200"]),
]
# One program is enough in the quick run to see that a duration works.
QUICK_SECONDS = ("ib_write_bw", ["-D", "3", "-f", "1"])

# perftest takes ten seconds for all sizes, with any device. So the quick run has only these sizes.
QUICK_ALL_SIZES = {"h": ("ib_send_bw", "ib_write_bw", "ib_read_bw", "ib_send_lat"), "d": ("ib_write_bw", "ib_read_bw"), "v": ("ib_write_bw",)}

# Data-checked traffic (tests/verbs/endurance): what, arguments, quick on which topologies
ENDURANCE = [
    ("mixed", ["-n", "4000"], "hdwvf"),
    ("mixed-mtu-4096", ["-n", "4000", "-m", "4096", "-r", "2"], "hf"),
    ("mixed-mtu-256", ["-n", "2000", "-m", "256", "-r", "3"], "h"),
    ("events", ["-e", "-n", "2000", "-r", "4"], "hdf"),
    ("small-deep", ["-n", "50000", "-S", "64", "-q", "512", "-u", "16", "-r", "5"], "hd"),
    ("empty-and-tiny", ["-n", "10000", "-S", "2", "-r", "6"], "hdf"),
    ("megabytes", ["-n", "200", "-s", "1000000", "-S", "4194304", "-q", "8", "-r", "7"], "hdf"),
    ("send", ["-n", "5000", "-o", "send,send_imm", "-r", "8"], ""),
    ("write", ["-n", "5000", "-o", "write,write_imm", "-r", "9"], ""),
    ("read", ["-n", "5000", "-o", "read", "-r", "10"], ""),
    ("atomic", ["-n", "20000", "-o", "faa,cas", "-r", "11"], "hf"),
    ("long", ["-D", "20", "-r", "12"], ""),
]


def _variants():
    """Topology, variant suffix, daemon options, the letter of the tables above."""
    letter = {"hosts": "h", "device": "d", "device-wire": "w", "veth1500": "v", "veth9000": "v"}
    for topology in TOPOLOGIES:
        yield topology, topology, (), letter[topology]
        yield topology, topology + "+faults", FAULT, "f" if topology == "hosts" else ""
    yield "hosts", "hosts+process_vm", ("--memory", "process_vm"), ""
    yield "hosts", "hosts+proc_mem", ("--memory", "proc_mem"), ""
    yield "hosts", "hosts+gso-on", ("--gso", "on"), ""
    yield "hosts", "hosts+gso-off", ("--gso", "off"), ""


def _pairs(name, topology, options, quick, kind, program, args, **more):
    argv = [program] + args
    slow = 3 if FAULT[0] in options else 1
    timeout = more.pop("timeout", 90) * slow
    return Case(f"{name}/{kind}", topology, server=argv, client=argv, options=options, quick=quick, timeout=timeout, **more)


def _programs(topology, name, options, letter):
    for what, args, quick in PINGPONG:
        mtu = int(args[args.index("-m") + 1]) if "-m" in args else 1024
        if mtu > PINGPONG_MTU.get(topology, 4096):
            continue  # the path does not carry it, and no verbs program would ask for it
        yield _pairs(name, topology, options, bool(letter) and letter in quick, f"ibv_rc_pingpong/{what}", "ibv_rc_pingpong", ["-g", "0"] + args,
                     check=(timestamp_supported, data_valid, pingpong_done), timeout=240 if what == "100000" else 60)
    for what, programs, args, quick, quick_args in PERFTEST if topology == name or FAULT[0] in options else ():
        for program in programs:
            fits = bool(letter) and letter in quick and (what != "all-sizes" or program in QUICK_ALL_SIZES[letter])
            if _confused(program, what, options):
                continue
            if what == "all-sizes" and options:
                args = ["-a", "-n", "100"]  # faults slow 8 MiB messages down
            yield _pairs(name, topology, options, False, f"{program}/{what}", program, ["-F", "-x", "0"] + args, check=(perftest_done,), timeout=240)
            if fits:
                yield _pairs(name, topology, options, True, f"{program}/{what}-quick", program, ["-F", "-x", "0"] + (quick_args or args),
                             check=(perftest_done,))
    for what, args, quick in ENDURANCE:
        if topology == "veth1500" and "4096" in args:
            continue  # the active MTU is 1024 there
        fits = bool(letter) and letter in quick
        yield _pairs(name, topology, options, fits, f"rdma_endurance/{what}", "rdma_endurance", args, check=(endurance_done,), timeout=120)
    if letter in ("h", "d"):
        yield _pairs(name, topology, options, True, f"{QUICK_SECONDS[0]}/seconds-quick", QUICK_SECONDS[0], ["-F", "-x", "0"] + QUICK_SECONDS[1],
                     check=(perftest_done,))


def xrc_pingpong_done(server, client, _case):
    for who, out in (("server", server), ("client", client)):
        if "\nsuccess\n" not in out:
            raise Trouble(f"the {who} did not report success")


def _confused(program, what, options):
    """ib_send_lat waits on one channel for the events of both its queues, and takes the next one for its send's. That holds as long as no
    ACK is lost: then the answer comes first, on any device, and the tool ends with "Couldn't post send"."""
    return what.endswith("events") and program == "ib_send_lat" and FAULT[0] in options


def _transports(topology, name, options, letter):
    """The same for what transports.py lists."""
    faults = FAULT[0] in options
    for program, what, args, quick in transports.PINGPONG:
        if (faults and program not in transports.RELIABLE) or (topology == "veth1500" and what in transports.LARGE_MTU):
            continue
        check = (xrc_pingpong_done,) if program == "ibv_xsrq_pingpong" else (data_valid,)
        yield _pairs(name, topology, options, bool(letter) and letter in quick, f"{program}/{what}", program, ["-g", "0"] + args, check=check)
    for what, programs, args, quick, quick_args in transports.PERFTEST:
        if faults and transports.unreliable(args):
            continue
        for program in programs:
            if _confused(program, what, options):
                continue
            common = ["-F", "-x", "0"]
            yield _pairs(name, topology, options, False, f"{program}/{what}", program, common + args, check=(perftest_done,), timeout=240)
            if letter and letter in quick:
                yield _pairs(name, topology, options, True, f"{program}/{what}-quick", program, common + quick_args, check=(perftest_done,))
    for what, args, quick in transports.ENDURANCE:
        if faults and transports.unreliable(args):
            continue
        yield _pairs(name, topology, options, bool(letter) and letter in quick, f"rdma_endurance/{what}", "rdma_endurance", args,
                     check=(endurance_done,), timeout=120)


def _queries(topology, name, options):
    yield Case(f"{name}/ibv_devices", topology, single=["ibv_devices"], options=options, quick=True, check=(special.devices_listed,))
    yield Case(f"{name}/ibv_devinfo", topology, single=["ibv_devinfo", "-v"], options=options, quick=True, check=(special.devinfo_complete,))


# Ways that only need a look, not the whole matrix, in the quick run.
SPOT = [("hosts+process_vm", ("--memory", "process_vm")), ("hosts+proc_mem", ("--memory", "proc_mem")), ("hosts+gso-on", ("--gso", "on")),
        ("hosts+gso-off", ("--gso", "off"))]

PYTHON = [
    # name, function, topology, options, user, quick, timeout
    ("memory/process_vm", special.memory_path_process_vm, "device", ("--memory", "process_vm"), None, True, 60),
    ("memory/proc_mem", special.memory_path_proc_mem, "device", ("--memory", "proc_mem"), None, True, 60),
    ("capture/icrc", special.capture_icrc, "netns", (), None, True, 90),
    ("capture/icrc-faults", special.capture_icrc, "netns", ("--fault", "loss=2%,dup=2%,reorder=5%", "--seed", "3"), None, False, 90),
    ("kill/client", special.kill_clients, "hosts", (), None, True, 400),
    ("kill/client-one-device", special.kill_clients, "device", (), None, False, 400),
    ("kill/daemon", special.kill_daemon, "hosts", (), None, True, 60),
    ("kill/daemon-one-device", special.kill_daemon, "device", (), None, True, 60),
    ("asyncwatch", programs.asyncwatch, "device", (), None, True, 60),
    ("xsrq/3-clients", programs.xsrq_clients, "hosts", (), None, True, 60),
    ("xsrq/3-clients-faults", programs.xsrq_clients, "hosts", FAULT, None, False, 90),
    ("starved/daemon", special.sleeping_daemon, "hosts", ("--min-timeout-us", "500000"), None, True, 200),
    ("idle/no-cpu", special.idle_cpu, "hosts", (), None, True, 60),
    ("idle/no-cpu-with-clients", special.idle_cpu_with_clients, "hosts", (), None, True, 60),
]
ALONE = [ # no daemon runs, or it is to fail
    ("no-daemon/hint", special.no_daemon, True),
    ("no-daemon/loading-is-silent", special.loading_is_silent, True),
    ("start/port-busy", special.start_port_busy, True),
    ("start/address-not-ours", special.start_bad_address, True),
    ("start/socket-directory", special.start_bad_socket, True),
    ("start/bad-option", special.start_bad_option, True),
    ("start/second-daemon", special.start_second, True),
    ("stop/terminated", special.stop_terminated, True),
    ("command/run-and-on", special.pumice_run, True),
    ("examples/xrc_scale", programs.xrc_scale, True),
    ("examples/transpose", programs.transpose, True),
    ("examples/tagmpi", programs.tagmpi, True),
    ("examples/tagmpi-strict", programs.tagmpi_strict, True),
    ("tagmpi/stress", programs.tagmpi_stress, True),
    ("soak/short", programs.soak, True),
    ("soak/connections", programs.soak_connections, True),
    ("pyverbs", special.pyverbs, True),
    ("pyverbs/strict", special.pyverbs_strict, True),
    ("pyverbs/wire", special.pyverbs_wire, True),
]


MEASURED = (special.sleeping_daemon, special.idle_cpu, special.idle_cpu_with_clients)
MAY_KILL_DAEMON = (special.kill_daemon, programs.asyncwatch)


def all_cases():
    cases = []
    for topology, name, options, letter in _variants():
        cases += _queries(topology, name, options) if not options else []
        cases += _programs(topology, name, options, letter)
        cases += _transports(topology, name, options, letter)
    for name, options in SPOT:
        for what, args in (("mixed-quick", ["-n", "2000", "-r", "21"]), ("megabytes-quick", ["-n", "60", "-s", "1000000", "-S", "4194304", "-q", "8"])):
            cases.append(_pairs(name, "hosts", options, True, f"rdma_endurance/{what}", "rdma_endurance", args, check=(endurance_done,)))
    for name, topology in (("nobody", "hosts"), ("nobody-one-device", "device")):
        common = {"options": (), "quick": True, "user": "nobody"}
        cases.append(Case(f"{name}/ibv_devinfo", topology, single=["ibv_devinfo", "-v"], check=(special.devinfo_complete,), **common))
        for program, args, check in (("ibv_rc_pingpong", ["-g", "0", "-c"], (data_valid, pingpong_done)),
                                     ("ib_write_bw", ["-F", "-x", "0", "-n", "500"], (perftest_done,)),
                                     ("rdma_endurance", ["-n", "2000"], (endurance_done,))):
            cases.append(Case(f"{name}/{program}", topology, server=[program] + args, client=[program] + args, check=check, **common))
    for name, function, topology, options, user, quick, timeout in PYTHON:
        cases.append(Case(name, topology, python=function, options=options, user=user, quick=quick, timeout=timeout, alone=function in MEASURED))
    for name, function, quick in ALONE:
        cases.append(Case(name, "none", python=function, quick=quick, lab=False))
    return cases
