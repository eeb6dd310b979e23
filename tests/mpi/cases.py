# SPDX-License-Identifier: BSD-2-Clause
"""The cases as data. A name is HOSTS[-DEVICES][+faults]/WHO/TRANSPORT/... WHO is an MPI, "ucx" (UCX's own tools) or "fabric" (libfabric's).
run.py --list prints all names. A case is in one or more of these sets, which are its fields:

    basic   a part of `make test`, without an MPI        mpi     a part of `make test`, with both MPIs
    quick   `make test-mpi`                              matrix  `make test-mpi-matrix`: all combinations
    long    a thousand times MPI_Init and MPI_Finalize   --full  all cases
"""

import dataclasses

FAULT = ("--fault", "loss=1%,reorder=1%", "--seed", "7")

# The transports for UCX. rc_v is rc_verbs with ud_verbs as its auxiliary transport: UCX connects queue pairs of RC by messages on a
# transport that needs no connection.
TRANSPORTS = {"rc": "rc_v,self", "ud": "ud_verbs,self"}
# For comparison, with shared memory between the ranks: on one machine UCX then takes the device for little or nothing.
WITH_SM = {"rc+sm": "rc_v,self,sm", "ud+sm": "ud_verbs,self,sm"}

# How each MPI starts a job, and what it needs to take the network for ranks on one machine, too. (For such ranks some builds of MPICH
# have shared memory of their own, below which UCX is never asked.)
OPENMPI = ["mpirun.openmpi", "--oversubscribe", "--bind-to", "none", "--mca", "btl", "^openib,ofi"]
LAUNCH = {
    "openmpi": (OPENMPI + ["--mca", "pml", "ucx", "--mca", "osc", "ucx"], {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}),
    "mpich": (["mpirun.mpich"], {"MPIR_CVAR_NOLOCAL": "1"}),
}

PROGRAMS = ("p2p", "collectives", "onesided", "datatypes", "threads")
# Open MPI's other way to the device, libfabric: a provider follows. Reliable datagrams, or messages over connections by rdma_cm.
OVER_FABRIC = OPENMPI + ["--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca", "mtl_ofi_provider_include"]
RXD, RXM = "verbs;ofi_rxd", "verbs;ofi_rxm"
# How a job ends, by its launcher, whose last rank calls MPI_Abort with code 3, is killed, or is killed in the middle of large transfers:
# the exit code (None: any but 0), and what the launcher says. (Of an abort it is the rank that says something, which may be lost with
# it.) In such a transfer others may learn of the death before the launcher does: UCX then aborts them (signal 6), and it is chance
# which death the launcher reports.
DEATHS = {
    "abort": {"openmpi": (3, ""), "mpich": (3, "")},
    "kill": {"openmpi": (137, "exited on signal 9 (Killed)"), "mpich": (9, "EXIT STRING: Killed (signal 9)")},
    "storm": {"openmpi": (None, "exited on signal"), "mpich": (None, "EXIT STRING: ")},
}
HOSTS = (1, 2, 4)
RANKS = (2, 4, 16)
MIB = 1 << 20

# Tests of ucx_perftest with the sizes that make sense for them: on the level of UCP all, for each transport.
SIZES = (8, 64, 1024, 8192, 65536, MIB, 4 * MIB)
UCP_TESTS = ("tag_lat", "tag_bw", "tag_sync_lat", "tag_sync_bw", "ucp_put_lat", "ucp_put_bw", "ucp_get", "stream_lat", "stream_bw", "ucp_am_lat",
             "ucp_am_bw")
UCP_ATOMICS = ("ucp_add", "ucp_fadd", "ucp_swap", "ucp_cswap")
THREADS = ((4, 8), (4, 1024), (2, 65536), (2, 4 * MIB))  # with so many threads, of these sizes

# ucx_perftest's ways of doing the same: (name, test, size, options).
MODES = (("multi", "tag_bw", 8192, ("-M", "multi", "-T", "2")), ("multi-put", "ucp_put_bw", 8192, ("-M", "multi", "-T", "2")),
         ("sleep", "tag_lat", 8, ("-E", "sleep")), ("sleep-large", "tag_bw", MIB, ("-E", "sleep")), ("sleep-am", "ucp_am_lat", 8192, ("-E", "sleep")),
         ("iov", "tag_lat", 0, ("-D", "iov,iov", "-s", "64,1024,8192")), ("iov-large", "tag_bw", 0, ("-D", "iov,contig", "-s", "100000,8,65536,300001")),
         ("iov-gaps", "tag_bw", 0, ("-D", "iov,iov", "-s", "8192,8192,8192,8192", "-i", "12288")),
         ("any-tag", "tag_lat", 65536, ("-C",)), ("unexpected", "tag_lat", 65536, ("-U",)), ("unexpected-small", "tag_bw", 8, ("-U",)),
         ("recv-data", "stream_lat", 8192, ("-r", "recv_data")), ("recv-data-large", "stream_bw", MIB, ("-r", "recv_data")),
         ("errors", "tag_lat", 65536, ("-e",)), ("errors-put", "ucp_put_bw", 65536, ("-e",)), ("registered", "ucp_put_bw", MIB, ("-z",)),
         ("outstanding", "tag_bw", MIB, ("-O", "64")), ("header", "ucp_am_bw", 8192, ("-H", "64")))
# One-sided, while the target does nothing (UD needs its processor).
PASSIVE = (("ucp_put_bw", 8), ("ucp_put_bw", MIB), ("ucp_get", 8), ("ucp_get", MIB))

# On the level of UCT what a transport can do by itself: (test, layout, sizes). Short messages travel in the work request, bcopy copies them
# to a buffer that is registered, zcopy takes them from where they are. rc_verbs has no atomic swap.
UCT_TESTS = {
    "rc": [("am_lat", "short", (8, 63)), ("am_lat", "bcopy", (8, 8192)), ("am_lat", "zcopy", (64, 8192)), ("am_bw", "short", (8,)),
           ("am_bw", "bcopy", (1024, 8192)), ("am_bw", "zcopy", (8192,)), ("am_lat", "shortiov", (8, 63)), ("put_lat", "short", (8, 64)), ("put_lat", "bcopy", (8, 8192)),
           ("put_lat", "zcopy", (8192, 4 * MIB)), ("put_bw", "short", (8, 64)), ("put_bw", "bcopy", (8192,)), ("put_bw", "zcopy", (65536, 4 * MIB)),
           ("get", "bcopy", (8, 8192)), ("get", "zcopy", (128, 65536, 4 * MIB)),
           ("add_lat", "short", (8,)), ("add_mr", "short", (8,)), ("fadd", "short", (8,)), ("cswap", "short", (8,))],
    "ud": [("am_lat", "short", (8, 56)), ("am_lat", "bcopy", (8, 4088)), ("am_lat", "zcopy", (64, 4088)), ("am_bw", "short", (8,)),
           ("am_bw", "bcopy", (1024, 4088)), ("am_bw", "zcopy", (4088,))],
}


@dataclasses.dataclass
class Case:
    name: str
    hosts: int
    faults: bool
    transport: str  # a key of TRANSPORTS or WITH_SM
    mpi: str = None  # a key of LAUNCH; None: no MPI
    ranks: int = 0
    program: str = None  # in build/tests/mpi/MPI, or the test of ucx_perftest
    args: tuple = ()
    death: str = None  # a key of DEATHS: it must end with an error, and so
    size: int = 0
    threads: int = 1  # of ucx_perftest
    environment: dict = dataclasses.field(default_factory=dict)  # what else is set
    check: str = None  # a key of run.py's CHECKS; None: a job that passes or dies
    user: str = None  # whose daemons and programs these are
    memory: str = "auto"  # how daemons reach the memory of programs
    devices: int = 1  # of each host
    fabric: str = None  # provider of libfabric that Open MPI takes in place of UCX
    basic: bool = False
    mpi_basic: bool = False
    quick: bool = False
    matrix: bool = False
    long: bool = False
    timeout: float = 240  # seconds
    patient: bool = False  # UCX shall not give a connection up as long as the job may take

    @property
    def options(self):
        return ("--memory", self.memory) + (FAULT if self.faults else ())

    @property
    def topology(self):
        return f"hosts{self.hosts}" if self.hosts > 1 else "device"

    @property
    def tls(self):
        return {**TRANSPORTS, **WITH_SM}[self.transport]


def first(hosts, faults=False):
    return f"{hosts}host" + ("s" if hosts > 1 else "") + ("+faults" if faults else "")


def level(transport, ranks, faults):
    """The thread level that a suite asks for, so that each transport and each number of ranks runs with both levels."""
    return "single" if (list(TRANSPORTS).index(transport) + RANKS.index(ranks) + faults) % 2 == 0 else "multiple"


def suites(hosts, faults):
    """All of our own programs in one job, with every MPI, transport and number of ranks; and jobs that die. (Two ranks are on two hosts.)"""
    for mpi in LAUNCH:
        for transport in TRANSPORTS:
            common = (hosts, faults, transport, mpi)
            for ranks in RANKS:
                name = f"{first(hosts, faults)}/{mpi}/{transport}/{ranks}"
                if ranks >= hosts:
                    yield Case(f"{name}/suite", *common, ranks, "suite", (level(transport, ranks, faults),), matrix=True, timeout=150 if ranks < 16 else 580,
                               mpi_basic=hosts == 2 and not faults and ranks == 4 and transport == "rc")
                for d in DEATHS:
                    if ranks == 4 or (ranks == 16 and d == "kill"):
                        yield Case(f"{name}/death-{d}", *common, ranks, "death", (d,), d, matrix=True, timeout=120,
                                   quick=hosts == 2 and ranks == 4 and not faults, mpi_basic=hosts == 2 and ranks == 4 and not faults and transport == "rc")
    if not faults:
        for mpi in LAUNCH:
            for transport in WITH_SM:
                yield Case(f"{first(hosts, faults)}/{mpi}/{transport}/4/suite", hosts, faults, transport, mpi, 4, "suite", ("multiple",), matrix=True, timeout=150)


def programs(hosts, faults):
    """The same one by one, each a job of its own, with few ranks."""
    for mpi in LAUNCH:
        for transport in TRANSPORTS:
            for ranks in (2, 4):
                for p in PROGRAMS:
                    yield Case(f"{first(hosts, faults)}/{mpi}/{transport}/{ranks}/{p}", hosts, faults, transport, mpi, ranks, p,
                               quick=hosts == 2 and ranks == (2 if faults else 4))


def habits(hosts, faults):
    """Other features of real jobs: large messages, children, ports, targets that sleep, fork."""
    for mpi in LAUNCH:
        for transport in TRANSPORTS:
            # Where datagrams get lost, UCX waits some 40 ms for its timers each time, although the other side has said at once what
            # is missing: that makes some 2 MB/s of any device, and minutes of 64 MiB. With faster timers it is some 20 s.
            ticks = {"UCX_UD_TIMER_TICK": "1ms"} if faults and transport == "ud" else {}
            for program, ranks in (("big", 2), ("spawn", 2), ("connect", 4), ("passive", 4), ("forks", 4)):
                if (program == "connect" and mpi == "mpich") or (program == "passive" and transport == "ud"):
                    continue  # MPICH has no ports over UCX, and UD no remote memory: the target must be awake
                quick = hosts == 2 and not faults and transport == "rc"
                yield Case(f"{first(hosts, faults)}/{mpi}/{transport}/{ranks}/{program}", hosts, faults, transport, mpi, ranks, program, quick=quick,
                           matrix=program != "forks" if hosts == 2 else program in ("big", "passive") and not faults, timeout=600,
                           environment=ticks if program == "big" else {})


def many(hosts, faults):
    """Many more ranks than cores. (UCX gives a connection over UD up if there has been no answer for 30 s. Where others compute, too, a
    rank out of 64 may well not have got to answering in that time.)"""
    for mpi in LAUNCH:
        for transport in TRANSPORTS:
            name = f"{first(hosts, faults)}/{mpi}/{transport}"
            for p in ("p2p", "collectives", "onesided"):
                yield Case(f"{name}/16/{p}", hosts, faults, transport, mpi, 16, p, quick=hosts == 4 and not faults and p == "collectives", timeout=400)
            if not faults:
                two = hosts == 2
                yield Case(f"{name}/64/collectives", hosts, faults, transport, mpi, 64, "collectives", timeout=580, patient=True, matrix=two)
                yield Case(f"{name}/64/death-kill", hosts, faults, transport, mpi, 64, "death", ("kill",), "kill", timeout=300, patient=True,
                           matrix=two and transport == "rc")
                yield Case(f"{name}/64/starve", hosts, faults, transport, mpi, 64, "pause", ("20",), check="starve", timeout=300, patient=True,
                           matrix=two, quick=two and transport == "rc" and mpi == "mpich")


def tools(hosts, faults):
    """UCX's and libfabric's own tools."""
    for case in tests_of_tools(hosts, faults):
        case.timeout = 120 if faults else 60
        case.matrix = hosts == 2
        yield case


def tests_of_tools(hosts, faults):
    name = first(hosts, faults)
    clean2 = hosts == 2 and not faults
    for transport in TRANSPORTS:
        common = (hosts, faults, transport)
        for test in UCP_TESTS:
            for size in SIZES:
                yield Case(f"{name}/ucx/{transport}/{test}-{size}", *common, program=test, size=size, check="ucp",
                           quick=clean2 and size in (8, 65536, 4 * MIB), basic=clean2 and test in ("tag_bw", "ucp_put_lat", "stream_bw") and size == 65536)
            for threads, size in THREADS:
                yield Case(f"{name}/ucx/{transport}/{test}-{size}-threads", *common, program=test, size=size, threads=threads, check="ucp",
                           quick=clean2 and size == 1024, basic=clean2 and test == "tag_lat" and size == 1024)
        for test in UCP_ATOMICS:
            for size in (4, 8):
                yield Case(f"{name}/ucx/{transport}/{test}-{size}", *common, program=test, size=size, check="ucp", quick=clean2,
                           basic=clean2 and transport == "rc" and test == "ucp_cswap")
        for mode, test, size, options in MODES:
            yield Case(f"{name}/ucx/{transport}/{mode}", *common, program=test, size=size, args=options, check="ucp", quick=clean2,
                       basic=clean2 and transport == "rc" and mode == "sleep")
        for test, size in PASSIVE if transport == "rc" else ():
            yield Case(f"{name}/ucx/{transport}/{test}-{size}-passive", *common, program=test, size=size, args=("-o",), check="ucp", quick=clean2)
        for test, layout, sizes in UCT_TESTS[transport]:
            for size in sizes:
                yield Case(f"{name}/uct/{transport}/{test}-{layout}-{size}", *common, program=test, args=("-D", layout), size=size, check="uct",
                           quick=clean2, basic=clean2 and test in ("am_lat", "get", "fadd") and size == sizes[-1])
    for transport in WITH_SM:
        for test, size in (("tag_lat", 8), ("tag_bw", MIB), ("ucp_put_bw", 65536), ("ucp_get", 65536), ("ucp_fadd", 8)):
            yield Case(f"{name}/ucx/{transport}/{test}-{size}", hosts, faults, transport, program=test, size=size, check="ucp", quick=clean2)
    yield Case(f"{name}/ucx/info", hosts, faults, "rc", check="info", quick=clean2, basic=clean2)
    yield Case(f"{name}/fabric/info", hosts, faults, "ud", check="fi_info", quick=clean2, basic=clean2)
    yield Case(f"{name}/fabric/rdma_cm", hosts, faults, "ud", check="rdma_cm", quick=clean2, basic=clean2)
    if clean2:
        yield Case(f"{name}/fabric/name_server", hosts, faults, "ud", check="name_server", quick=True)
    for size, count in ((8, 500), (4096, 200), (65536, 100), (MIB, 20), (4 * MIB, 5)):
        yield Case(f"{name}/fabric/pingpong-{size}", hosts, faults, "ud", size=size, args=(str(count),), check="fi_pingpong", quick=clean2,
                   basic=clean2 and size in (8, 65536))


def over_fabric():
    """MPI messages over libfabric 1.17, but not p2p. Over ofi_rxd an MPI_Ssend ends in a crash, over its own UDP, too. Over ofi_rxm an
    MPI_Mrecv of a message that goes by rendezvous does not end, over TCP neither (with FI_OFI_RXM_ENABLE_DYN_RBUF=0, as verbs has it)."""
    for ranks, p in ((2, "collectives"), (4, "collectives"), (4, "datatypes")):
        yield Case(f"2hosts/openmpi/ofi/{ranks}/{p}", 2, False, "ud", "openmpi", ranks, p, fabric=RXD, matrix=True, quick=True, timeout=120)
    for hosts in (2, 4):
        for faults in (False, True):
            for ranks in (hosts, 2 * hosts):
                for p in ("collectives", "datatypes", "threads"):
                    clean2 = hosts == 2 and not faults
                    yield Case(f"{first(hosts, faults)}/openmpi/rxm/{ranks}/{p}", hosts, faults, "rc", "openmpi", ranks, p, fabric=RXM, matrix=True,
                               quick=not faults and ranks == hosts, mpi_basic=clean2 and ranks == 2 and p == "collectives", timeout=360 if faults else 180)


def without_process_vm():
    """Memory by way of /proc/PID/mem, as in containers that forbid process_vm_readv."""
    for mpi in LAUNCH:
        yield Case(f"2hosts/{mpi}/rc/proc_mem/4/suite", 2, False, "rc", mpi, 4, "suite", (level("rc", 4, False),), memory="proc_mem", matrix=True, quick=True, timeout=150)


def storms():
    """Jobs that do nothing but come and go; the name ends with how many times in all ranks do so."""
    for mpi in LAUNCH:
        for transport in TRANSPORTS:
            def storm(ranks, times, **more):
                return Case(f"2hosts/{mpi}/{transport}/storm-{times}", 2, False, transport, mpi, ranks, "pause", ("0",), check="storm", size=times, **more)

            yield storm(2, 20, timeout=120, mpi_basic=transport == "rc")
            yield storm(8, 80, timeout=240, matrix=True, quick=transport == "rc" and mpi == "mpich")
            yield storm(8, 1000, timeout=1800, long=True)


def replacing():
    """READs and WRITEs of one place. With losses, only READs of 64 bytes or less are sure to return what was there before."""
    for hosts in (2, 1):
        for faults in (False, True):
            for mpi in LAUNCH:
                yield Case(f"{first(hosts, faults)}/{mpi}/rc/replace", hosts, faults, "rc", mpi, 2, "replace", () if faults else ("1", "5", "100", "5000"),
                           timeout=120, quick=True, matrix=True, mpi_basic=mpi == "openmpi" and (hosts == 2 or not faults))


def on_devices():
    """Hosts with two devices each, over which the ranks of a host are spread."""
    for faults in (False, True):
        for mpi in LAUNCH:
            for transport in TRANSPORTS:
                for ranks in (4, 16):
                    yield Case(f"2hosts-2devices{'+faults' if faults else ''}/{mpi}/{transport}/{ranks}/suite", 2, faults, transport, mpi, ranks, "suite",
                               (level(transport, ranks, faults),), devices=2, matrix=True, timeout=150 if ranks < 16 else 580, quick=not faults and ranks == 4,
                               mpi_basic=not faults and ranks == 4 and transport == "rc" and mpi == "openmpi")


def of_users():
    """Daemons and jobs of a user who may nothing."""
    for mpi in LAUNCH:
        for transport in TRANSPORTS:
            for p in ("p2p", "onesided", "forks"):
                yield Case(f"2hosts/{mpi}/{transport}/user-{p}", 2, False, transport, mpi, 2, p, user="nobody", quick=transport == "rc",
                           matrix=True, mpi_basic=transport == "rc" and p == "onesided")


def all_cases():
    """Those that want the same daemons stand together."""
    cases = []
    for hosts in (2, 1, 4):
        for faults in (False, True):
            cases += suites(hosts, faults)
            for part in (programs, habits, tools) if hosts < 4 else ():
                cases += part(hosts, faults)
            if hosts == 2 or not faults:
                cases += many(hosts, faults)
    return cases + list(over_fabric()) + list(storms()) + list(without_process_vm()) + list(replacing()) + list(on_devices()) + list(of_users())
