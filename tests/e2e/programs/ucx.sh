#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Runs a few tests of UCX's and libfabric's own tools on two hosts, for each transport. `make test-mpi` runs all of them, and MPIs.
cd "$(dirname "$0")/../../.." || exit 1
if [ -n "${SANITIZED:-}" ]; then
    echo "skip: sanitizers intercept memory calls, as UCX does"
    exit 77
fi
exec tests/mpi/run.py --basic --build "${BUILD:-build}"
