#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A demonstration: runs unmodified programs of the distribution between two virtual hosts on this machine, once without
# faults, and once with 1 % of all packets lost. `make demo` calls it. PUMICE names the command (build/bin/pumice).
set -u

loss=1%
size=65536
seconds=2
pumice=${PUMICE:-build/bin/pumice}
[[ $pumice == */* ]] && pumice=$(realpath "$pumice")

# --- in the lab: $0 --inside DIRECTORY

# Waits at most ten seconds until a program listens on TCP port $1. The programs exchange their addresses over it.
wait_for_port()
{
    local hex i
    hex=$(printf ':%04X' "$1")
    for ((i = 0; i < 200; i++)); do
        awk -v port="$hex" '$4 == "0A" && substr($2, length($2) - 4) == port { found = 1 } END { exit !found }' \
            /proc/net/tcp /proc/net/tcp6 2>/dev/null && return
        sleep 0.05
    done
}

# pair NAME PROGRAM ARGUMENTS...: runs the server on host 0 and the client on host 1. Their output goes to NAME.server and
# NAME.client.
pair()
{
    local name=$1 port=$((20000 + RANDOM % 20000)) server status
    shift
    timeout 60 pumice on 0 -- "$@" -p $port >"$dir/$name.server" 2>&1 &
    server=$!
    wait_for_port $port
    timeout 60 pumice on 1 -- "$@" -p $port 127.0.0.1 >"$dir/$name.client" 2>&1
    status=$?
    [ $status -eq 0 ] || kill $server 2>/dev/null
    wait $server || status=1
    if [ $status -ne 0 ]; then
        echo "$* failed (exit code $status). The server printed:" >&2
        sed 's/^/    /' "$dir/$name.server" >&2
        echo "and the client:" >&2
        sed 's/^/    /' "$dir/$name.client" >&2
    fi
    return $status
}

inside()
{
    dir=$1
    pair pingpong ibv_rc_pingpong -g 0 -n 2000 || exit 1
    pair write_bw ib_write_bw -F -x 0 -s $size -D $seconds || exit 1
    pumice status --json >"$dir/status.json"
}

# --- results

# The sum of a counter over the devices of both hosts.
counter()
{
    python3 - "$1/status.json" "${@:2}" <<'END'
import json, sys
def total(node, name):
    if isinstance(node, dict):
        return sum(v if k == name and isinstance(v, int) else 0 if k in ("sessions", "qps") else total(v, name)
                   for k, v in node.items())
    return sum(total(v, name) for v in node) if isinstance(node, list) else 0
with open(sys.argv[1]) as f:
    status = json.load(f)
print("{:,}".format(sum(total(status, name) for name in sys.argv[2:])))
END
}

latency() # round trip, in microseconds
{
    sed -n 's/.*seconds = \([0-9.]*\) usec\/iter.*/\1 us/p' "$1/pingpong.client"
}

bandwidth() # ib_write_bw's columns: bytes, iterations, peak and average bandwidth in MiB/s, messages
{
    awk -v size=$size '$1 == size { printf "%.2f GB/s\n", $4 * 1048576 / 1e9 }' "$1/write_bw.client"
}

line()
{
    printf '  %-46s %16s %16s\n' "$@"
}

main()
{
    local work
    work=$(mktemp -d)
    # shellcheck disable=SC2064
    trap "rm -rf '$work'" EXIT
    mkdir "$work/clean" "$work/loss"

    echo "Two virtual hosts on this machine: two daemons, at 127.0.0.1 and 127.0.0.2, that speak RoCEv2 over UDP."
    echo "ibv_rc_pingpong and ib_write_bw run between them, unmodified, as $(. /etc/os-release && echo "$NAME") ships them."
    echo
    echo "without loss:      pumice run --hosts 2 -- ..."
    "$pumice" run --hosts 2 -- "$0" --inside "$work/clean" || exit 1
    echo "with $loss loss:      pumice run --hosts 2 --fault loss=$loss -- ..."
    "$pumice" run --hosts 2 --fault loss=$loss -- "$0" --inside "$work/loss" || exit 1
    echo
    line "" "no loss" "$loss loss"
    line "ibv_rc_pingpong, 4 KiB, round trip" "$(latency "$work/clean")" "$(latency "$work/loss")"
    line "ib_write_bw, 64 KiB" "$(bandwidth "$work/clean")" "$(bandwidth "$work/loss")"
    line "packets sent" "$(counter "$work/clean" sent_pkts)" "$(counter "$work/loss" sent_pkts)"
    line "  lost on purpose" "$(counter "$work/clean" fault_dropped)" "$(counter "$work/loss" fault_dropped)"
    line "  sent again" "$(counter "$work/clean" fast_retrans probe_retrans timeout_retrans)" \
        "$(counter "$work/loss" fast_retrans probe_retrans timeout_retrans)"
    echo
    echo "All data arrived in both cases. Try such a lab yourself:"
    echo "  ${PUMICE:-pumice} run --hosts 2 -- bash        and then, in this shell: pumice on 1 -- ibv_devinfo; pumice status; pumice fault loss=5%"
    echo "README.md tells how to run your own programs. docs/architecture.md tells how Pumice works."
    echo "pumice run --check finds mistakes in your own RDMA programs, without a NIC: docs/checks.md has examples."
}

if [ "${1:-}" = --inside ]; then
    inside "$2"
else
    main
fi
