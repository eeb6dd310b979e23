#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Two hosts send to a third through a router with one slow port and a short queue. Without ECN the queue overflows. With ecn=on the router
# marks packets, the receiver's daemon answers them by CNPs, the senders' daemons slow down, and the queue stays short.
# Needs root, ip and /dev/net/tun. With an argument -v it prints the figures.
# alone: with two busy processes beside it, daemons that wait for a processor answer marks too late, and the queue stays long
. "$(dirname "$0")/../lib/common.bash"
[ "$(id -u)" = 0 ] || skip "not root"
need ip ib_send_bw
[ -c /dev/net/tun ] || skip "no /dev/net/tun"
ns=pneck$$
net=10.$((100 + $$ % 100)).7
also_clean()
{
    local n
    for n in a b c; do
        ip netns del "$ns$n" 2>/dev/null
    done
}
host=0
for n in a b c; do
    host=$((host + 1))
    ip netns add "$ns$n" 2>/dev/null || skip "network namespaces can't be made"
    ip -n "$ns$n" link set lo up && ip -n "$ns$n" tuntap add mode tun t0 && ip -n "$ns$n" address add "$net.$host/24" dev t0 &&
        ip -n "$ns$n" link set t0 mtu 1500 txqueuelen 20000 up || skip "no TUN interface can be made in a network namespace"
done

library=$BUILD/lib/pumice/libibverbs.so.1
asan=$(ldd "$library" | awk '/libasan/ { print $3 }')
export -f await_listener
program() # HOST COMMAND...
{
    local n=$1
    shift
    ip netns exec "$ns$n" env PUMICE_SOCKET="$dir/$n.sock" LD_PRELOAD="${asan:+$asan:}$library" timeout 120 "$@"
}

counter() # HOST NAME: a counter of its device
{
    "$pumice" status --json --socket "$dir/$1.sock" | python3 -c '
import json, sys
print(json.load(sys.stdin)["hosts"][0]["status"]["devices"][0]["counters"].get(sys.argv[1], 0))' "$2"
}

# traffic ECN: both hosts send; sets router (what the router says), marks, cnps_sent, cnps
traffic()
{
    local n at=0 p neck first=${#pids[@]} senders=()
    rm -f "$dir"/neck "$dir"/ready*
    mkfifo "$dir/neck"
    "$BUILD/tests/e2e/daemon/bottleneck" "${ns}a" "${ns}b" "${ns}c" 400 256 32 >"$dir/neck" 2>"$dir/neck.err" &
    neck=$!
    exec 4<"$dir/neck"
    read -r -t 10 _ <&4 || fail "router: $(cat "$dir/neck.err")"
    for n in a b c; do
        at=$((at + 1))
        mkfifo "$dir/ready$n"
        ip netns exec "$ns$n" "$BUILD/bin/pumiced" --socket "$dir/$n.sock" --address "$net.$at" --ecn "$1" --ready-fd 3 3>"$dir/ready$n" \
            2>"$dir/log$n" &
        pids+=($!)
        read -r -t 20 _ <"$dir/ready$n" || fail "daemon $n: $(cat "$dir/log$n")"
    done
    for n in a b; do
        [ $n = a ] && p=18601 || p=18602
        program c ib_send_bw -p $p -e -s 65536 -n 600 -t 16 >"$dir/server$n" 2>&1 &
        pids+=($!)
    done
    ip netns exec "${ns}c" bash -c 'await_listener 18601 18602'
    for n in a b; do
        [ $n = a ] && p=18601 || p=18602
        program "$n" ib_send_bw -p $p -e -s 65536 -n 600 -t 16 "$net.3" >"$dir/client$n" 2>&1 &
        senders+=($!)
    done
    for n in a b; do
        wait "${senders[0]}" || fail "ecn=$1: sender $n: $(tail -n 5 "$dir/client$n")"
        senders=("${senders[@]:1}")
    done
    marks=$(counter c np_ecn_marked_roce_packets)
    cnps_sent=$(counter c np_cnp_sent)
    cnps=$(($(counter a rp_cnp_handled) + $(counter b rp_cnp_handled)))
    kill -TERM $neck
    read -r -t 10 router <&4
    exec 4<&-
    kill "${pids[@]:first}" 2>/dev/null
    wait "${pids[@]:first}" $neck 2>/dev/null
    [ -z "$verbose" ] || echo "ecn=$1: $router; marks seen $marks, CNPs sent $cnps_sent, CNPs taken $cnps"
}
verbose=${1:-}
of() # WORD: the number behind it in what the router said
{
    local words="${router#*"$1 "}"
    echo "${words%% *}"
}
traffic off
is "marks without ECN" "$(of marked) $marks $cnps_sent $cnps" "0 0 0 0"
[ "$(of dropped)" -gt 0 ] || fail "without ECN the queue does not overflow: $router"
mean=$(of mean)
for try in 1 2 3; do # a busy machine may keep a daemon from answering marks for as long as the queue takes to fill
    traffic on
    [ $((2 * $(of mean))) -gt "$mean" ] && [ $try -lt 3 ] || break
done
[ "$marks" -gt 0 ] || fail "no mark has come: $router"
[ $((marks - $(of marked))) -le 0 ] || fail "more marks than the router made: $marks; $router"
[ "$cnps_sent" -gt 0 ] && [ "$cnps_sent" -le "$marks" ] || fail "$cnps_sent CNPs for $marks marks"
is "CNPs that arrived" "$cnps" "$cnps_sent"
[ $((2 * $(of mean))) -le "$mean" ] || fail "a packet meets $(of mean) others in the queue, without ECN $mean: $router"
exit $((failures > 0))
