#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Real traffic between two daemons, captured on loopback: the linter accepts it, clean, with faults, and with GSO (which must be taken
# apart); the dissector shows it without complaint. Exit code 77: this user may not capture, or there is no dumpcap.
set -u
here=$(cd "$(dirname "$0")" && pwd)
BUILD=$(realpath "${BUILD:-$here/../../build}")
pumice=$BUILD/bin/pumice
lua=$here/../../pcap/wireshark/pumice.lua
block=127.43.$(($$ % 250)) # of loopback addresses, so that two runs at once don't meet
work=$(mktemp -d)
capture=
finish()
{
    [ -n "$capture" ] && kill "$capture" 2>/dev/null
    rm -rf "$work"
}
trap finish EXIT
unset PUMICE_LAB PUMICE_SOCKET PUMICE_HOST PUMICE_HOSTS
failures=0

for tool in dumpcap tshark ibv_xsrq_pingpong ib_read_bw; do
    command -v $tool >/dev/null || { echo "skip: no $tool"; exit 77; }
done

fail()
{
    echo "FAIL: $*"
    failures=$((failures + 1))
}

start() # FILE
{
    dumpcap -q -i lo -B 64 -f "udp port 4791 and net $block.0/24" -w "$1" 2>"$work/dumpcap" &
    capture=$!
    for _ in $(seq 100); do
        [ -s "$1" ] && return # it has begun
        kill -0 $capture 2>/dev/null || break
        sleep 0.1
    done
    capture=
    echo "skip: can't capture on lo: $(head -1 "$work/dumpcap")"
    exit 77
}

stop()
{
    sleep 0.5
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
    printf '%s\n' "$@" >"$work/programs"
    # shellcheck disable=SC2016
    PATH=$BUILD/bin:$PATH timeout 120 "$pumice" run --addresses "$block.1,$block.2" "${options[@]}" -- sh -c '
        while read -r program; do
            pumice on 0 -- $program </dev/null >"$0/server" 2>&1 &
            for i in 1 2 3 4 5 6 7 8; do # until the server listens
                sleep 0.3
                pumice on 1 -- $program "$1" </dev/null >"$0/client" 2>&1 && break
            done || echo "no success: $program: $(tail -n 2 "$0/client")"
            wait
        done <"$0/programs"' "$work" "$block.1" >"$work/out" 2>&1
    [ ! -s "$work/out" ] || fail "$(head -5 "$work/out")"
}

# accepted WHAT FILE PACKETS OPTION...: no violation in at least so many packets, nothing malformed
accepted()
{
    local what=$1 file=$2 least=$3 packets
    shift 3
    "$pumice" lint "$@" "$file" >"$work/out" || fail "$what: $(tail -6 "$work/out")"
    packets=$(sed -n 's/.* \([0-9]*\) RoCEv2 packets.*/\1/p' "$work/out")
    [ "${packets:-0}" -ge "$least" ] || fail "$what: only ${packets:-0} packets"
    HOME=$work XDG_CONFIG_HOME=$work tshark -X "lua_script:$lua" -2 -r "$file" -Y '_ws.malformed || _ws.lua.error' >"$work/out" 2>/dev/null
    [ ! -s "$work/out" ] || fail "$what: $(head -3 "$work/out")"
    echo "$what: $packets packets"
}

start "$work/clean.pcapng"
pair -- "ibv_rc_pingpong -g 0 -n 50" "ib_write_bw -s 10000 -n 100" "ib_read_bw -s 10000 -n 60" "ib_atomic_bw -n 100" \
    "ibv_uc_pingpong -g 0 -n 50" "ibv_ud_pingpong -g 0 -n 50" "ibv_srq_pingpong -g 0 -n 50" "ibv_xsrq_pingpong -g 0 -n 50"
stop
accepted clean "$work/clean.pcapng" 1000
packets=$(HOME=$work XDG_CONFIG_HOME=$work tshark -X "lua_script:$lua" -r "$work/clean.pcapng" -Y 'pumice.xrceth.srqn && pumice.icrc.status == 1' 2>/dev/null | wc -l)
[ "$packets" -ge 100 ] || fail "only $packets XRC requests with a right ICRC"

start "$work/faulty.pcapng"
pair --fault loss=2%,dup=2%,reorder=2%,corrupt=1% -- "ibv_rc_pingpong -g 0 -n 100" "ib_write_bw -s 10000 -n 100" "ib_read_bw -s 10000 -n 60"
stop
accepted faulty "$work/faulty.pcapng" 500 --faulty
"$pumice" lint "$work/faulty.pcapng" >/dev/null && fail "damaged packets are not found"
"$pumice" lint --faulty --notes "$work/faulty.pcapng" | grep -q '\[repeat' || fail "no retransmission in a faulty network"

start "$work/gso.pcapng"
pair --gso=on -- "ib_write_bw -s 10000 -n 100"
stop
accepted GSO "$work/gso.pcapng" 200
"$pumice" lint --notes "$work/gso.pcapng" | grep -q '\[merged' || fail "GSO merged nothing"

exit $((failures > 0))
