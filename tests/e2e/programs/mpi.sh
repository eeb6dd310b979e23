#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Runs a few jobs of Open MPI and MPICH on two hosts: all our MPI programs, jobs that die, many jobs in turn, a job of another user. `make
# test-mpi` runs more.
cd "$(dirname "$0")/../../.." || exit 1
if [ -n "${SANITIZED:-}" ]; then
    echo "skip: sanitizers intercept memory calls, as UCX does"
    exit 77
fi
for tool in mpicc.openmpi mpicc.mpich; do
    command -v $tool >/dev/null || { echo "skip: $tool is not installed (make deps-mpi)"; exit 77; }
done
make -s mpi-programs BUILD="${BUILD:-build}" || exit 1
exec tests/mpi/run.py --mpi --build "${BUILD:-build}"
