#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# An interface goes down and up, gets addresses and loses them. The test checks what an unmodified program sees: asynchronous events, the
# port's state and the GID table. Needs root and network namespaces.
. "$(dirname "$0")/../lib/common.bash"
need ip ibv_asyncwatch ibv_devinfo script
ns=pport$$
also_clean()
{
    ip netns del $ns 2>/dev/null
}
if [ "$(id -u)" != 0 ] || ! ip netns add $ns 2>/dev/null || ! ip -n $ns link add e0 type veth peer name e1 2>/dev/null; then
    skip "not root, or no network namespaces"
fi
# Without IPv6 there is one address at first, and none that comes and goes with the link.
ip netns exec $ns sysctl -qw net.ipv6.conf.e0.disable_ipv6=1
ip -n $ns link set lo up && ip -n $ns link set e1 up && ip -n $ns link set e0 up && ip -n $ns address add 10.80.1.1/24 dev e0
mkfifo "$dir/ready"
ip netns exec $ns "$BUILD/bin/pumiced" --socket "$dir/s" --address 10.80.1.1 --ready-fd 3 3>"$dir/ready" 2>"$dir/log" &
pids+=($!)
read -r -t 20 _ <"$dir/ready" || { echo "the daemon does not start: $(cat "$dir/log")"; exit 1; }
library=$BUILD/lib/pumice/libibverbs.so.1
asan=$(ldd "$library" | awk '/libasan/ { print $3 }')
with() { LD_PRELOAD=${asan:+$asan:}$library PUMICE_SOCKET=$dir/s "$@"; }

# (Of a terminal it makes lines that are there at once.)
with exec script -qfec ibv_asyncwatch /dev/null >"$dir/events" 2>&1 </dev/null &
pids+=($!)
for _ in $(seq 100); do
    [ -s "$dir/events" ] && break
    sleep 0.1
done
comes() # EVENT: it is the next one
{
    local seen
    count=$((count + 1))
    for _ in $(seq 100); do
        seen=$(grep -ac 'event_type' "$dir/events")
        [ "$seen" -ge "$count" ] && break
        sleep 0.1
    done
    has "event $count" "$(grep -a 'event_type' "$dir/events" | sed -n "${count}p")" "$1"
}
state() { with ibv_devinfo 2>&1 | sed -n 's/.*state:[[:space:]]*\([A-Z_]*\).*/\1/p'; }
gids() { with ibv_devinfo -v 2>&1 | grep -c 'GID\['; }

count=0
is "at first" "$(state) $(gids)" "PORT_ACTIVE 1"
ip -n $ns link set e0 down
comes IBV_EVENT_PORT_ERR
is "down" "$(state)" "PORT_DOWN"
ip -n $ns link set e0 up
comes IBV_EVENT_PORT_ACTIVE
is "up again" "$(state)" "PORT_ACTIVE"
ip -n $ns address add 10.80.1.7/24 dev e0
comes IBV_EVENT_GID_CHANGE
is "with another address" "$(with ibv_devinfo -v 2>&1 | tr -d '\t' | sed -n 's/GID\[ *\([0-9]*\)\]:\([^,]*\).*/\1\2/p' | xargs)" \
    "0::ffff:10.80.1.1 1::ffff:10.80.1.7"
# Both are of one network, so the second goes with the first unless the kernel promotes it.
ip netns exec $ns sysctl -qw net.ipv4.conf.e0.promote_secondaries=1
ip -n $ns address del 10.80.1.1/24 dev e0
comes IBV_EVENT_GID_CHANGE
is "without its address" "$(gids)" 1
ip -n $ns address add 10.80.1.1/24 dev e0
comes IBV_EVENT_GID_CHANGE
is "with its address" "$(gids)" 2
has "log" "$(cat "$dir/log")" "e0 is down"
has "log" "$(cat "$dir/log")" "lost its address 10.80.1.1"
is "port counters" "$("$pumice" status --json --socket "$dir/s" | python3 -c 'import json, sys
print(json.load(sys.stdin)["hosts"][0]["status"]["devices"][0]["hw_counters"]["link_downed"])')" 1
kill "${pids[1]}"
[ $failures -eq 0 ] || cat "$dir/events"
[ $failures -eq 0 ] && echo "ok"
exit $((failures > 0))
