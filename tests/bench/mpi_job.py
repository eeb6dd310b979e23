# SPDX-License-Identifier: BSD-2-Clause
"""Jobs of Open MPI that UCX carries: between the hosts of a lab by Pumice, or over TCP."""

import os

import cases as table
import lab as labs

TCP = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "lo", "OMPI_MCA_opal_common_ucx_tls": "any", "OMPI_MCA_opal_common_ucx_devices": "any"}
QUIET = {"UCX_LOG_LEVEL": "error", "UCX_WARN_UNUSED_ENV_VARS": "n"}
# For jobs with many ranks: by default, UCX fills 40 MB of receive buffers in each rank before it sends anything.
FEW_BUFFERS = {"UCX_RC_VERBS_RX_QUEUE_LEN": "512"}


def start(build, lab, way, ranks, *what):
    """Starts tests/mpi/perf with so many ranks, with the arguments `what`. way: "rc", "rc-512" (with FEW_BUFFERS) or "tcp"."""
    program = os.path.join(build.dir, "tests", "mpi", "openmpi", "perf")
    if not os.path.exists(program):
        raise labs.Unavailable(f"{os.path.relpath(program)} is not built (make mpi-programs)")
    launcher, env = table.LAUNCH["openmpi"]
    ours = dict(LD_PRELOAD=lab.preload, PUMICE_LAB=lab.dir, PUMICE_HOSTS=str(len(lab.hosts)), UCX_TLS="rc_v,self")
    env = {**env, **QUIET, **(TCP if way == "tcp" else ours), **(FEW_BUFFERS if way == "rc-512" else {})}
    return labs.Process([labs.which(launcher[0])] + launcher[1:] + ["-n", ranks, program, *what], env, lab.log("job"))
