#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Captures real traffic between two daemons on loopback: without faults, with faults, and with GSO, whose datagrams must be split. The
# linter and the dissector accept it. The test is skipped if this user may not capture, or if dumpcap is missing.
. "$(dirname "$0")/../lib/common.bash"
. "$lib/captures.bash"
block=127.43.$(($$ % 250)) # of loopback addresses, so that two runs at once don't meet
capture= file=
also_clean() { [ -z "$capture" ] || kill "$capture" 2>/dev/null; }

need dumpcap tshark ibv_xsrq_pingpong ib_read_bw

start() # FILE
{
    file=$1
    dumpcap -q -i lo -B 64 -f "udp port 4791 and net $block.0/24" -w "$file" 2>"$dir/dumpcap" &
    capture=$!
    for _ in $(seq 100); do
        [ -s "$file" ] && return # it has begun
        kill -0 $capture 2>/dev/null || break
        sleep 0.1
    done
    capture=
    skip "can't capture on lo: $(head -1 "$dir/dumpcap")"
}

stop()
{
    await_unchanged "$file"
    kill -INT $capture
    wait $capture
    capture=
}

# pair OPTION... -- SECONDS PROGRAM...: each program between the two hosts, its server on host 0
pair()
{
    local options=()
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    printf '%s\n' "$@" >"$dir/programs"
    # shellcheck disable=SC2016
    timeout 120 "$pumice" run --addresses "$block.1,$block.2" "${options[@]}" -- sh -c '
        while read -r program; do
            pumice on 0 -- $program </dev/null >"$0/server" 2>&1 &
            for i in 1 2 3 4 5 6 7 8; do # until the server listens
                sleep 0.3
                pumice on 1 -- $program "$1" </dev/null >"$0/client" 2>&1 && break
            done || echo "no success: $program: $(tail -n 2 "$0/client")"
            wait
        done <"$0/programs"' "$dir" "$block.1" >"$dir/out" 2>&1
    [ ! -s "$dir/out" ] || fail "$(head -5 "$dir/out")"
}

start "$dir/clean.pcapng"
pair -- "ibv_rc_pingpong -g 0 -n 50" "ib_write_bw -s 10000 -n 100" "ib_read_bw -s 10000 -n 60" "ib_atomic_bw -n 100" \
    "ibv_uc_pingpong -g 0 -n 50" "ibv_ud_pingpong -g 0 -n 50" "ibv_srq_pingpong -g 0 -n 50" "ibv_xsrq_pingpong -g 0 -n 50"
stop
accepted "$dir/clean.pcapng" 1000
packets=$(shark -X "lua_script:$lua" -r "$dir/clean.pcapng" -Y 'pumice.xrceth.srqn && pumice.icrc.status == 1' | wc -l)
[ "$packets" -ge 100 ] || fail "only $packets XRC requests with a right ICRC"

start "$dir/faulty.pcapng"
pair --fault loss=2%,dup=2%,reorder=2%,corrupt=1% -- "ibv_rc_pingpong -g 0 -n 100" "ib_write_bw -s 10000 -n 100" "ib_read_bw -s 10000 -n 60"
stop
# A damaged packet may look like another operation, for which it is too short.
wrong='_ws.malformed && pumice.icrc.status == 1 || _ws.lua.error' accepted "$dir/faulty.pcapng" 500 --faulty
"$pumice" lint "$dir/faulty.pcapng" >/dev/null && fail "damaged packets are not found"
"$pumice" lint --faulty --notes "$dir/faulty.pcapng" | grep -q '\[repeat' || fail "no retransmission in a faulty network"

start "$dir/gso.pcapng"
pair --gso=on -- "ib_write_bw -s 10000 -n 100"
stop
accepted "$dir/gso.pcapng" 200
"$pumice" lint --notes "$dir/gso.pcapng" | grep -q '\[merged' || fail "GSO merged nothing"

exit $((failures > 0))
