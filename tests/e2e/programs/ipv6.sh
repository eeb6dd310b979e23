#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Unmodified programs between two hosts with IPv6 addresses: pingpongs, perftest with GSO, multicast, MPI, both GIDs of a host, and both
# families at one device. The linter judges what leaves the hosts; if this user may capture, also what is on the wire.
. "$(dirname "$0")/../lib/common.bash"
. "$lib/captures.bash"
need ibv_rc_pingpong ibv_srq_pingpong ib_write_bw ib_read_bw ib_atomic_bw ib_send_bw

# Each line of the file programs runs between the two hosts, its server on host 0. Within the lab.
cat >"$dir/pairs" <<'EOF'
while read -r program; do
    pumice on 0 -- $program </dev/null >"$dir/server" 2>&1 &
    for i in 1 2 3 4 5 6 7 8; do # until the server listens
        sleep 0.2
        pumice on 1 -- $program 127.0.0.1 </dev/null >"$dir/client" 2>&1 && break
    done || echo "no success: $program: $(tail -n 2 "$dir/client" "$dir/server")"
    wait $!
done <"$dir/programs"
EOF

lab() # OPTION... -- COMMAND...
{
    timeout 120 "$pumice" run --hosts 2 "$@" >"$dir/out" 2>&1
    local code=$?
    [ $code = 0 ] && [ ! -s "$dir/out" ] || fail "exit code $code of pumice run $*: $(head -5 "$dir/out")"
}

timeout 60 "$pumice" run --hosts 2 --ipv6 -- true 2>"$dir/out" || skip "no IPv6 lab: $(cat "$dir/out")"

# --- what a host has -------------------------------------------------------------------------------------------------
gids() { python3 -c 'import json, sys
for host in json.load(sys.stdin)["hosts"]:
    print(*(g["gid"] for g in host["status"]["devices"][0]["gids"]))'; }
is "GIDs of an IPv6 lab" "$("$pumice" run -n 2 --ipv6 -- pumice status --json | gids | xargs)" "fd00::1 fd00::1:1 fd00::2 fd00::1:2"
has "devinfo" "$("$pumice" run --ipv6 -- ibv_devinfo -v)" "fd00::1:1, RoCE v2"
out=$("$pumice" run --ipv6 --addresses fd00::1 true 2>&1); is "both options" $? 125; has "both options" "$out" "either --ipv6 or --addresses"

# --- programs --------------------------------------------------------------------------------------------------------
cat >"$dir/programs" <<'EOF'
ibv_rc_pingpong -g 0 -n 50
ibv_rc_pingpong -g 1 -n 50
ibv_uc_pingpong -g 0 -n 50
ibv_ud_pingpong -g 1 -n 50
ibv_srq_pingpong -g 0 -n 50
ib_write_bw -x 1 -s 65536 -n 200
ib_read_bw -s 65536 -n 200
ib_atomic_bw -n 100
ib_send_bw -c UD -g -n 100
EOF
lab --ipv6 --gso=on --capture "$dir/gso.pcapng" -- sh "$dir/pairs"
accepted "$dir/gso.pcapng" 1000
is "packets of IPv4" "$(shark -r "$dir/gso.pcapng" -Y ip | wc -l)" 0
[ "$(shark -r "$dir/gso.pcapng" -Y 'ipv6.src == fd00::1:2 && ipv6.dst == fd00::1:1' | wc -l)" -ge 300 ] || fail "index 1 was not used"
[ "$(shark -r "$dir/gso.pcapng" -Y 'ipv6.dst == ff00::/8' | wc -l)" -ge 100 ] || fail "no multicast"

# Datagrams: the header area is the IPv6 header. (The program reaches both hosts by their sockets.)
test_ud=$BUILD/tests/verbs/datapath/test_ud
# shellcheck disable=SC2016
out=$(timeout 60 "$pumice" run --hosts 2 --ipv6 -- sh -c 'PUMICE_SOCKET=$PUMICE_LAB/host0.sock VT_PEER_SOCKET=$PUMICE_LAB/host1.sock exec "$0"' "$test_ud" 2>&1) ||
    fail "datagrams: $(grep -v '^ok' <<<"$out")"
is "header areas that are IPv6 headers" "$(grep -c '^ok - they are the IP header' <<<"$out")" 2

# A capture on the interface shows the packets that the kernel makes of GSO sends, with their real addresses.
cat >"$dir/wire" <<'EOF'
dumpcap -q -i lo -B 64 -f "udp port 4791" -w "$dir/wire.pcapng" 2>"$dir/dumpcap" &
for i in $(seq 50); do [ -s "$dir/wire.pcapng" ] && break; sleep 0.1; done
sh "$dir/pairs"
sleep 0.5
kill -INT %1 2>/dev/null || kill -INT $!
wait
EOF
if command -v dumpcap >/dev/null && "$pumice" run --ipv6 -- timeout 5 dumpcap -q -i lo -a duration:0 -w "$dir/try.pcapng" 2>/dev/null; then
    printf '%s\n' "ib_write_bw -s 65536 -n 50" "ib_send_bw -c UD -g -n 50" >"$dir/programs"
    timeout 60 "$pumice" run --hosts 2 --ipv6 --gso=on -- bash "$dir/wire" >"$dir/out" 2>&1
    [ ! -s "$dir/out" ] || fail "on the wire: $(head -5 "$dir/out")"
    accepted "$dir/wire.pcapng" 100
    pumice lint --notes "$dir/wire.pcapng" | grep -q '\[merged' || fail "GSO merged nothing"
else
    skip_part "packets on the interface: this user may not capture"
fi

# --- both families at one device -------------------------------------------------------------------------------------
cat >"$dir/programs" <<'EOF'
ibv_rc_pingpong -g 0 -n 50
ibv_rc_pingpong -g 1 -n 50
ibv_ud_pingpong -g 0 -n 50
ibv_ud_pingpong -g 1 -n 50
EOF
cat >"$dir/both" <<'EOF'
"$1" run --addresses 127.0.0.1+fd00::1,127.0.0.2+fd00::2 --capture "$dir/both.pcapng" -- sh "$dir/pairs"
EOF
if unshare --net true 2>/dev/null; then
    enter=(unshare --net)
else
    enter=(unshare --user --map-root-user --net)
fi
if "${enter[@]}" sh -c 'ip link set lo up && ip -6 address add fd00::1/128 dev lo nodad && ip -6 address add fd00::2/128 dev lo nodad &&
    exec timeout 60 sh "$dir/both" "$0"' "$pumice" >"$dir/out" 2>&1; then
    [ ! -s "$dir/out" ] || fail "both families: $(head -5 "$dir/out")"
    accepted "$dir/both.pcapng" 200
    [ "$(shark -r "$dir/both.pcapng" -Y 'ip.src == 127.0.0.1' | wc -l)" -ge 50 ] || fail "no packets of IPv4"
    [ "$(shark -r "$dir/both.pcapng" -Y 'ipv6.src == fd00::1' | wc -l)" -ge 50 ] || fail "no packets of IPv6"
else
    skip_part "both families: $(head -2 "$dir/out" | xargs)"
fi

# --- link-local addresses between two interfaces ---------------------------------------------------------------------
ns=pmv6$$
also_clean()
{
    ip netns del ${ns}a 2>/dev/null
    ip netns del ${ns}b 2>/dev/null
}
two_hosts() # each with 10.77.0.N and a link-local address on e0
{
    local n i=0
    ip netns add ${ns}a && ip netns add ${ns}b && ip -n ${ns}a link add e0 type veth peer name e0 netns ${ns}b || return 1
    for n in a b; do
        i=$((i + 1))
        ip netns exec $ns$n sysctl -qw net.ipv6.conf.e0.accept_dad=0 && ip -n $ns$n link set lo up &&
            ip -n $ns$n link set e0 address 02:00:00:00:00:0$i mtu 9000 up && ip -n $ns$n address add 10.77.0.$i/24 dev e0 || return 1
    done
    for n in a b; do
        for i in $(seq 100); do
            ip -n $ns$n -6 address show dev e0 -tentative | grep -q fe80 && break
            sleep 0.05
        done
        mkfifo "$dir/ready$n"
        i=1
        [ $n = b ] && i=2
        ip netns exec $ns$n "$BUILD/bin/pumiced" --socket "$dir/s$n" --address 10.77.0.$i --ready-fd 3 3>"$dir/ready$n" 2>"$dir/log$n" &
        pids+=($!)
        read -r -t 20 _ <"$dir/ready$n" || return 1
    done
}
library=$BUILD/lib/pumice/libibverbs.so.1
asan=$(ldd "$library" | awk '/libasan/ { print $3 }')
with() # a|b COMMAND...
{
    local n=$1
    shift
    ip netns exec $ns$n env LD_PRELOAD="${asan:+$asan:}$library" PUMICE_SOCKET="$dir/s$n" "$@"
}
if [ "$(id -u)" = 0 ] && two_hosts 2>"$dir/out"; then
    has "GIDs" "$(with a ibv_devinfo -v)" "fe80::ff:fe00:1, RoCE v2"
    for program in "ibv_rc_pingpong -g 1 -n 50" "ibv_ud_pingpong -g 1 -n 50" "ibv_rc_pingpong -g 0 -n 50"; do
        with a $program >"$dir/server" 2>&1 &
        for i in 1 2 3 4 5 6 7 8; do # until the server listens
            sleep 0.2
            with b $program 10.77.0.1 >"$dir/client" 2>&1 && break
            [ $i = 8 ] && fail "$program over veth: $(tail -n 2 "$dir/client" "$dir/server")"
        done
        wait $!
    done
    has "ping" "$("$pumice" ping --socket "$dir/sa" fe80::ff:fe00:2 2>&1)" "OK: small and large"
else
    skip_part "link-local addresses: not root, or no network namespaces: $(head -1 "$dir/out")"
fi

# --- MPI -------------------------------------------------------------------------------------------------------------
if [ -z "${SANITIZED:-}" ] && have "MPI" mpicc.openmpi mpirun.openmpi && make -s -C "$root" mpi-programs BUILD="$BUILD"; then
    program=$(find "$BUILD/tests/mpi" -name p2p -path '*openmpi*' | head -1)
    [ -x "$program" ] || fail "no MPI program"
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
    out=$(UCX_TLS=rc_v,self UCX_IB_GID_INDEX=1 timeout 60 "$pumice" run --hosts 2 --ipv6 -- \
        mpirun.openmpi --mca pml ucx -n 2 "$program" 2>&1) || fail "MPI with GID index 1: $(tail -5 <<<"$out")"
fi
exit $((failures > 0))
