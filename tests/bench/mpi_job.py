# SPDX-License-Identifier: BSD-2-Clause
"""Jobs of Open MPI that UCX carries: between the hosts of a lab by Pumice, or over TCP."""

import os

import cases as table
import lab as labs

TCP = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "lo", "OMPI_MCA_opal_common_ucx_tls": "any", "OMPI_MCA_opal_common_ucx_devices": "any"}
QUIET = {"UCX_LOG_LEVEL": "error", "UCX_WARN_UNUSED_ENV_VARS": "n"}


def start(build, lab, way, ranks, *what):
    """Starts tests/mpi/perf with so many ranks, with the arguments `what`. way: "rc" or "tcp"."""
    program = os.path.join(build.dir, "tests", "mpi", "openmpi", "perf")
    if not os.path.exists(program):
        raise labs.Unavailable(f"{os.path.relpath(program)} is not built (make mpi-programs)")
    launcher, env = table.LAUNCH["openmpi"]
    ours = dict(LD_PRELOAD=lab.preload, PUMICE_LAB=lab.dir, PUMICE_HOSTS=str(len(lab.hosts)), UCX_TLS="rc_v,self")
    env = {**env, **QUIET, **(ours if way == "rc" else TCP)}
    return labs.Process([labs.which(launcher[0])] + launcher[1:] + ["-n", ranks, program, *what], env, lab.log("job"))
