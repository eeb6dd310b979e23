# SPDX-License-Identifier: BSD-2-Clause
"""The cases as data. A name is HOSTS[+faults]/WHO/TRANSPORT/..., where WHO is an MPI or "ucx" (ucx_perftest alone); run.py --list
prints them all. Those with quick=True make up `make test-mpi`, all of them `make test-mpi MPI_ARGS=--full`."""

import dataclasses

FAULT = ("--fault", "loss=1%,reorder=1%", "--seed", "7")

# What UCX is told to use. rc_v is rc_verbs, and ud_verbs as its auxiliary transport: UCX connects queue pairs of RC by messages on a
# transport that needs no connection.
TRANSPORTS = {"rc": "rc_v,self", "ud": "ud_verbs,self"}

# How each MPI starts a job, and what it needs to take the network for ranks on one machine, too. (For such ranks some builds of MPICH
# have shared memory of their own, below which UCX is never asked.)
LAUNCH = {
    "openmpi": (["mpirun.openmpi", "--oversubscribe", "--bind-to", "none", "--mca", "pml", "ucx", "--mca", "osc", "ucx", "--mca", "btl", "^openib"],
                {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}),
    "mpich": (["mpirun.mpich"], {"MPIR_CVAR_NOLOCAL": "1"}),
}

PROGRAMS = ("p2p", "collectives", "onesided", "datatypes", "threads")
DEATHS = ("abort", "kill")

# Tests of ucx_perftest with the sizes that make sense for them.
SIZES = (8, 65536, 1048576)
PERFTESTS = [(test, size) for test in ("tag_lat", "tag_bw", "tag_sync_lat", "ucp_put_lat", "ucp_put_bw", "ucp_get", "stream_lat", "stream_bw",
                                       "ucp_am_lat", "ucp_am_bw") for size in SIZES]
PERFTESTS += [(test, 8) for test in ("ucp_add", "ucp_fadd", "ucp_swap", "ucp_cswap")]


@dataclasses.dataclass
class Case:
    name: str
    hosts: int
    faults: bool
    transport: str  # a key of TRANSPORTS
    mpi: str = None  # a key of LAUNCH; None: ucx_perftest
    ranks: int = 0
    program: str = None  # in build/tests/mpi/MPI, or the test of ucx_perftest
    args: tuple = ()
    death: bool = False  # it must end with an error
    size: int = 0
    quick: bool = False
    timeout: float = 240

    @property
    def options(self):
        return FAULT if self.faults else ()


def all_cases():
    """Those that want the same daemons stand together."""
    cases = []
    for hosts in (2, 1):
        for faults in (False, True):
            first = f"{hosts}hosts" if hosts > 1 else "1host"
            first += "+faults" if faults else ""
            for mpi in LAUNCH:
                for transport in TRANSPORTS:
                    for ranks in (2, 4):
                        name = f"{first}/{mpi}/{transport}/{ranks}"
                        quick = hosts == 2 and ranks == (2 if faults else 4)
                        cases += [Case(f"{name}/{p}", hosts, faults, transport, mpi, ranks, p, quick=quick) for p in PROGRAMS]
                        cases += [Case(f"{name}/death-{d}", hosts, faults, transport, mpi, ranks, "death", (d,), True, quick=quick and not faults,
                                       timeout=90) for d in DEATHS]
            for transport in TRANSPORTS:
                for test, size in PERFTESTS:
                    cases.append(Case(f"{first}/ucx/{transport}/{test}-{size}", hosts, faults, transport, program=test, size=size,
                                      quick=hosts == 2 and not faults and size != 65536))
    return cases
