#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# pumice run --net: emulated networks between the hosts of a lab. Bandwidths are checked in the simulator (sim --net), because
# no test may depend on how fast this machine is. Here: packets pass the links, never faster than these allow; short queues
# lose packets; ECN marks them, and senders slow down; errors name the place in the file.
. "$(dirname "$0")/../lib/common.bash"
need python3
export endurance=$BUILD/tests/verbs/rdma_endurance
port=$((28000 + $$ % 20000))

cat >"$dir/senders" <<'SH'
# PORT SENDERS ARGUMENT...: hosts 1 ... SENDERS write to host 0. Then the counters, and the time that this took.
port=$1 senders=$2
shift 2
from=$(date +%s%N)
for h in $(seq "$senders"); do
    pumice on 0 -- "$endurance" -p $((port + h)) >"$dir/server$h" 2>&1 &
done
sleep 0.4
clients=()
for h in $(seq "$senders"); do
    pumice on "$h" -- "$endurance" -p $((port + h)) "$@" 127.0.0.1 >"$dir/client$h" 2>&1 &
    clients+=($!)
done
failed=0
for pid in "${clients[@]}"; do
    wait "$pid" || failed=1
done
wait
echo "failed=$failed"
echo "ms=$((($(date +%s%N) - from) / 1000000))"
pumice status --json | python3 -c 'import collections, json, sys
sums = collections.Counter()
for host in json.load(sys.stdin)["hosts"]:
    for name, n in host["status"]["devices"][0]["counters"].items():
        sums[name] += n
for name in ("net_packets", "net_dropped", "net_marked", "np_cnp_sent", "rp_cnp_handled", "tx_packets"):
    print(f"{name}={sums[name]}")'
SH

network() # PLAN HOSTS OPTIONS ARGUMENT...: sets `out`
{
    local hosts=$2 options=$3
    printf '%b\n' "$1" >"$dir/plan"
    shift 3
    port=$((port + 10))
    # shellcheck disable=SC2086
    out=$(timeout 120 "$pumice" run --hosts "$hosts" $options --net "$dir/plan" -- bash "$dir/senders" $port $((hosts - 1)) "$@" 2>&1)
    has "$1" "$out" "failed=0"
}

value() # NAME
{
    sed -n "s/^$1=//p" <<<"$out"
}

# 200 WRITEs of 8192 bytes at 10 Mbit/s take 1.3 s at the least.
network '0 <-> 1: rate 10Mbit' 2 "" -n 200 -s 8192 -S 8192 -m 1024 -o write
[ "$(value net_packets)" -ge 1600 ] || fail "packets do not pass the link: $out"
is "no queue is full" "$(value net_dropped)" 0
[ "$(value ms)" -ge 1300 ] || fail "1.6 MB pass 10 Mbit/s in $(value ms) ms"

# Three hosts send to one, through a queue of some packets.
network 'default: latency 10us\nto 0: rate 100Mbit, queue 16kB' 4 "" -n 100 -s 8192 -S 8192 -m 1024 -o write
[ "$(value net_dropped)" -gt 0 ] || fail "incast: no packet is lost: $out"
[ "$(value ms)" -ge 190 ] || fail "2.4 MB pass 100 Mbit/s in $(value ms) ms"

# The same with a longer queue that marks: the senders slow down.
network 'default: latency 10us\nto 0: rate 100Mbit, queue 4MiB, mark 8kB' 4 --ecn=on -n 100 -s 8192 -S 8192 -m 1024 -o write
[ "$(value net_marked)" -gt 0 ] || fail "no packet is marked: $out"
is "marks, and nothing is lost" "$(value net_dropped)" 0
echo "# incast with ECN: $(xargs <<<"$out")"
network 'to 0: rate 100Mbit, queue 4MiB, mark 8kB' 2 "" -n 50 -s 8192 -S 8192 -m 1024 -o write
is "without --ecn=on nothing is marked" "$(value net_marked)" 0

# Two racks: the link between them is one, whoever sends.
network 'rack a: 1-2\nrack b: 0\na -> b: rate 20Mbit, queue 4MiB' 3 "" -n 50 -s 8192 -S 8192 -m 1024 -o write
[ "$(value ms)" -ge 320 ] || fail "two racks: 0.8 MB pass 20 Mbit/s in $(value ms) ms"

# Packets within a host, and hosts without a link, are as before.
printf '1 <-> 2: rate 1kbit\n' >"$dir/plan"
out=$(timeout 60 "$pumice" run --hosts 3 --net "$dir/plan" -- bash "$dir/senders" $((port + 50)) 1 -n 50 -o write 2>&1)
is "no link" "$(value net_packets)" 0

# Marks that begin within the burst of one sender.
for case in '--ecn=on 4KiB hint' '--ecn=on 8KiB' '--ecn=off 4KiB'; do
    read -r ecn mark hint <<<"$case"
    echo "to 0: rate 1Gbit, queue 1MiB, mark $mark" >"$dir/plan"
    out=$("$pumice" run --hosts 2 "$ecn" --net "$dir/plan" true 2>&1) || fail "$case: $out"
    if [ -n "$hint" ]; then
        has "$case" "$out" "hint: --net: a link marks packets that 4096 bytes wait before, but a sender sends up to 8192"
    else
        is "$case" "$out" ""
    fi
done

# --- errors ---
printf '# a plan\n\n0 <-> 1: rate 10Gbit, latncy 5us\n' >"$dir/plan"
out=$("$pumice" run --hosts 2 --net "$dir/plan" true 2>&1)
is "exit code" $? 125
has "error" "$out" "net: line 3, column 23: 'latncy': expected rate, latency, jitter, queue or mark"
printf '0 <-> 2: rate 10Gbit\n' >"$dir/plan"
out=$("$pumice" run --hosts 2 --net "$dir/plan" true 2>&1)
is "exit code of a host too many" $? 125
has "a host too many" "$out" "net: line 1, column 7: there is no host 2: pumice run --hosts N has the hosts 0 to N-1"
out=$("$pumice" run --net "$dir/none" true 2>&1)
is "no such file" "$? $out" "125 pumice: --net: can't read $dir/none: No such file or directory"

for example in "$root"/examples/networks/*.net; do
    "$pumice" run --hosts 4 --net "$example" true || fail "$example"
done

[ $failures -eq 0 ] && echo "ok"
exit $((failures > 0))
