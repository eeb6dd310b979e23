#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs some programs that connect by rdma_cm, between two hosts and within one device, without and with faults. The linter judges the
# packets of each. `make test-rdmacm` runs all programs.
cd "$(dirname "$0")/../../.." || exit 1
without=()
if [ -n "${SANITIZED:-}" ]; then
    echo "# skipped: rsockets by preload, UCX, libfabric: they intercept what sanitizers do"
    without=(-x rsockets -x ucp -x fi_pingpong)
fi
exec tests/rdmacm/run.py --build "${BUILD:-build}" --lint "${BUILD:-build}/captures/rdmacm" "${without[@]}"
