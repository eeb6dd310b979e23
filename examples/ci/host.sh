#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Makes this container (or any machine) an RDMA host while a command runs: starts pumiced on its first address, and then
# the command with the environment that it needs. PUMICED_OPTIONS has more options for pumiced.
# Usage: host.sh COMMAND [ARGUMENT...]
set -eu
dir=$(mktemp -d)
export PUMICE_SOCKET="$dir/pumiced.sock"
# shellcheck disable=SC2086
pumiced --socket "$PUMICE_SOCKET" ${PUMICED_OPTIONS:-} &
daemon=$!
trap 'kill $daemon 2>/dev/null; wait $daemon; rm -rf "$dir"' EXIT
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    pumice env >"$dir/env" 2>/dev/null && break
    kill -0 $daemon || exit 1 # pumiced has printed the reason
    sleep 0.2
done
status=0
(
    . "$dir/env"
    exec "$@"
) || status=$?
exit $status
