#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Runs an MPI program between virtual hosts over RDMA verbs, and prints how much it sent.
# Usage: examples/mpi/run.sh openmpi|mpich [HOSTS [RANKS [OPTION OF PUMICE RUN...]]]
# Example: examples/mpi/run.sh openmpi 2 4 --fault loss=1% --capture halo.pcapng
set -eu
mpi=${1:?openmpi or mpich}
hosts=${2:-2}
ranks=${3:-4}
[ $# -gt 3 ] && shift 3 || shift $#

here=$(cd "$(dirname "$0")" && pwd)
pumice=${PUMICE:-$(command -v pumice || echo "$here/../../build/bin/pumice")}
program=$(mktemp)
trap 'rm -f "$program"' EXIT

# UCX: only reliable connections between the ranks. By default, it uses shared memory between ranks of one machine.
export UCX_TLS=rc_v,self

case $mpi in
openmpi)
    mpirun="mpirun.openmpi --oversubscribe --bind-to none --mca pml ucx --mca osc ucx --mca btl ^openib"
    # Open MPI runs as root (in a container, for example) only if it is told to.
    [ "$(id -u)" -ne 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 ;;
mpich)
    mpirun=mpirun.mpich
    export MPIR_CVAR_NOLOCAL=1 ;; # MPICH: no shared memory of its own
*)
    echo "run.sh: openmpi or mpich, not $mpi" >&2
    exit 2 ;;
esac

"mpicc.$mpi" -O2 -o "$program" "$here/halo.c" -lm
# The exit code is that of the job.
# shellcheck disable=SC2016,SC2086
"$pumice" run --hosts "$hosts" "$@" -- sh -c 'code=0; "$@" || code=$?
    pumice status | grep -E "^===|sent_pkts|writes"
    exit $code' sh $mpirun -n "$ranks" "$program"
