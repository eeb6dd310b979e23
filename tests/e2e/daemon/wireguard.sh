#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Two daemons whose packets travel through a WireGuard tunnel, as docs/security.md recommends for networks that are not to be trusted. Each is
# in a network namespace of its own. On the link between the namespaces there is nothing but the tunnel. WireGuard is that of the kernel, or
# wireguard-go if the kernel has none. All of it is in namespaces that end
# with the test.
if [ "${PUMICE_TEST_NAMESPACE:-}" != yes ]; then
    [ "$(id -u)" = 0 ] || { echo "skip: not root: it makes network namespaces"; exit 77; }
    unshare --net --mount true 2>/dev/null || { echo "skip: no network namespace can be made here"; exit 77; }
    PUMICE_TEST_NAMESPACE=yes exec unshare --net --mount "$0" "$@"
fi
. "$(dirname "$0")/../lib/common.bash"
need ip wg ibv_rc_pingpong ibv_ud_pingpong
library=$BUILD/lib/pumice/libibverbs.so.1
asan=$(ldd "$library" | awk '/libasan/ { print $3 }')
mount -t tmpfs none /run || skip "no file system can be mounted here"
mkdir -p /run/netns /run/wireguard
umask 077

make_link()
{
    local i
    for i in 1 2; do
        ip netns add h$i && ip -n h$i link set lo up || return 1
    done
    ip link add e1 netns h1 type veth peer name e2 netns h2 || return 1
    for i in 1 2; do
        ip -n h$i address add 10.77.0.$i/24 dev e$i && ip -n h$i link set e$i up || return 1
        wg genkey >"$dir/key$i" && wg pubkey <"$dir/key$i" >"$dir/public$i" || return 1
    done
}
tunnel() # NUMBER: the interface wgNUMBER, by the kernel or by a program
{
    local i
    ip -n "h$1" link add "wg$1" type wireguard 2>/dev/null && return
    command -v wireguard-go >/dev/null || skip "neither this kernel nor a program has WireGuard"
    ip netns exec "h$1" wireguard-go -f "wg$1" >"$dir/wg$1.log" 2>&1 &
    pids+=($!)
    for ((i = 0; i < 100; i++)); do
        [ -S "/run/wireguard/wg$1.sock" ] && return
        sleep 0.1
    done
    return 1
}
make_tunnels()
{
    local i
    for i in 1 2; do
        tunnel $i && ip netns exec h$i wg set wg$i listen-port 51820 private-key "$dir/key$i" peer "$(cat "$dir/public$((3 - i))")" \
            allowed-ips 10.78.0.$((3 - i))/32 endpoint 10.77.0.$((3 - i)):51820 || return 1
        ip -n h$i address add 10.78.0.$i/24 dev wg$i && ip -n h$i link set wg$i up || return 1
    done
}
start_daemon() # NUMBER
{
    mkfifo "$dir/ready$1"
    ip netns exec "h$1" "$BUILD/bin/pumiced" --socket "$dir/s$1" --address "10.78.0.$1" --log-level info --ready-fd 3 3>"$dir/ready$1" 2>"$dir/log$1" &
    pids+=($!)
    read -r -t 20 _ <"$dir/ready$1" || { echo "the daemon does not start: $(cat "$dir/log$1")"; exit 1; }
}
at() # NUMBER COMMAND...: on that host, with the library
{
    local n=$1
    shift
    ip netns exec "h$n" env LD_PRELOAD="${asan:+$asan:}$library" PUMICE_SOCKET="$dir/s$n" timeout 60 "$@"
}
pair() # COMMAND...: as a server on host 1, and as its client on host 2
{
    local server i
    at 1 "$@" >"$dir/server" 2>&1 &
    server=$!
    for ((i = 0; i < 100; i++)); do
        ip netns exec h1 ss -ltn 2>/dev/null | grep -q ':18515 ' && break
        sleep 0.1
    done
    at 2 "$@" 10.78.0.1 >"$dir/client" 2>&1 || fail "$1, the client: $(cat "$dir/client")"
    wait $server || fail "$1, the server: $(cat "$dir/server")"
}

make_link || skip "no pair of interfaces can be made here"
make_tunnels || { fail "no tunnel: $(cat "$dir"/wg?.log 2>/dev/null)"; exit 1; }
start_daemon 1
start_daemon 2
has "the path MTU" "$(cat "$dir/log1")" "10.78.0.1 on wg1, path MTU 1024"
has "ping" "$(ip netns exec h1 "$pumice" ping --socket "$dir/s1" 10.78.0.2)" "OK: small and large packets are answered"
before=$(ip netns exec h1 wg show wg1 transfer | awk '{ print $2 }')
pair ibv_rc_pingpong -g 0 -c -n 200 -s 65536
pair ibv_ud_pingpong -g 0 -c -n 200 -s 512
[ $(($(ip netns exec h1 wg show wg1 transfer | awk '{ print $2 }') - before)) -gt 13000000 ] || fail "the messages did not come through the tunnel"
# An RDMA packet outside of the tunnel does not reach the device.
received() { "$pumice" status --json --socket "$dir/s1" | sed -n 's/.*"rx_packets": \([0-9]*\).*/\1/p' | head -n 1; }
before=$(received)
[ "${before:-0}" -gt 0 ] || fail "the device has received nothing"
ip netns exec h2 python3 "$lib/forge.py" 10.77.0.2 10.77.0.1 0xabcdef 0 5
is "packets outside of the tunnel" "$(received)" "$before"
[ $failures -eq 0 ] && echo "ok"
exit $((failures > 0))
