#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# pumice capture: within one device and between two hosts, clean and with faults; what it writes passes the linter and tshark; filters,
# snap length, rotation; a reader that does not read holds nothing up.
set -u
here=$(cd "$(dirname "$0")" && pwd)
BUILD=$(realpath "${BUILD:-$here/../../build}")
export PATH=$BUILD/bin:$PATH
lua=$here/../../pcap/wireshark/pumice.lua
block=127.33.$(($$ % 250)) # of loopback addresses, so that two runs at once don't meet
work=$(mktemp -d)
export work block
trap 'rm -rf "$work"' EXIT
unset PUMICE_LAB PUMICE_SOCKET PUMICE_HOST PUMICE_HOSTS
failures=0

for tool in tshark ibv_rc_pingpong; do
    command -v $tool >/dev/null || { echo "skip: no $tool"; exit 77; }
done

fail()
{
    echo "FAIL: $*"
    failures=$((failures + 1))
}

shark() # OPTION...
{
    HOME=$work XDG_CONFIG_HOME=$work tshark "$@" 2>/dev/null
}

# accepted FILE PACKETS OPTION...: no violation in at least so many packets, nothing malformed (but what a fault has damaged:
# its opcode may have become another)
wrong='_ws.malformed || _ws.lua.error'
accepted()
{
    local file=$1 least=$2 packets
    shift 2
    pumice lint "$@" "$file" >"$work/out" || fail "$file: $(tail -6 "$work/out")"
    packets=$(sed -n 's/.* \([0-9]*\) RoCEv2 packets.*/\1/p' "$work/out")
    [ "${packets:-0}" -ge "$least" ] || fail "$file: only ${packets:-0} packets"
    shark -X "lua_script:$lua" -2 -r "$file" -Y "$wrong" >"$work/out"
    [ ! -s "$work/out" ] || fail "$file: $(head -3 "$work/out")"
    echo "${file##*/}: $packets packets"
}

# within OPTION... -- COMMAND: pumice run with a time limit
within()
{
    timeout 120 pumice run "$@" >"$work/out" 2>&1 || fail "$*: $(tail -5 "$work/out")"
}

# ping HOST HOST OPTION...: a ping-pong from the second to the first; until the server listens
cat >"$work/ping" <<'END'
server=$1 client=$2
shift 2
pumice on "$server" -- ibv_rc_pingpong -g 0 "$@" >/dev/null &
for i in 1 2 3 4 5 6 7 8 9 10; do
    sleep 0.3
    pumice on "$client" -- ibv_rc_pingpong -g 0 "$@" 127.0.0.1 >"$work/client" 2>&1 && wait && exit 0
done
cat "$work/client"
exit 1
END
# capture FILE OPTION...: in the background, and returns when it captures; then "end"
cat >"$work/begin" <<'END'
pumice capture "$@" 2>"$work/said" &
capture=$!
for i in $(seq 100); do
    grep -q "capturing at" "$work/said" && break
    sleep 0.05
done
END
end='kill -INT $capture; wait $capture || exit 9'

within --addresses "$block.1" --capture "$work/inside.pcapng" -- sh "$work/ping" 0 0 -n 100
accepted "$work/inside.pcapng" 800
right=$(shark -X "lua_script:$lua" -r "$work/inside.pcapng" -Y 'pumice.icrc.status == 1' | wc -l)
[ "$right" -ge 800 ] || fail "only $right packets inside of a device have a right ICRC"
shark -r "$work/inside.pcapng" -T fields -e frame.comment >"$work/out"
grep -q 'QP 0x[0-9a-f]* of ibv_rc_pingpong (pid [0-9]*), wr_id 0x2, inside of the device' "$work/out" ||
    fail "no comment: $(head -2 "$work/out")"

within --addresses "$block.1,$block.2" --capture "$work/hosts.pcapng" -- sh "$work/ping" 0 1 -n 100
accepted "$work/hosts.pcapng" 800
[ "$(shark -r "$work/hosts.pcapng" -T fields -e frame.interface_name | sort -u | tr '\n' ' ')" = "host0:pumice0 host1:pumice0 " ] ||
    fail "not one interface for each host"

within --addresses "$block.1,$block.2" --fault loss=3%,dup=3%,reorder=3%,corrupt=2% --capture "$work/faulty.pcapng" -- \
    sh "$work/ping" 0 1 -n 300
wrong=_ws.lua.error accepted "$work/faulty.pcapng" 1000 --faulty
pumice lint "$work/faulty.pcapng" >/dev/null && fail "damaged packets are not in the capture"
shark -r "$work/faulty.pcapng" -T fields -e frame.comment | grep -q retransmission || fail "no retransmission"

# Both directions at one host; the same before faults: nothing is damaged there.
# shellcheck disable=SC2016
within --addresses "$block.1,$block.2" --fault corrupt=20% -- bash -c '
    . "$work/begin" --host 0 --before-faults --direction out "$work/before.pcapng"
    sh "$work/ping" 0 1 -n 100; '"$end"
accepted "$work/before.pcapng" 400
grep -q "packets captured, 0 dropped" "$work/said" || fail "no summary: $(cat "$work/said")"
# shellcheck disable=SC2016
within --addresses "$block.1,$block.2" -- bash -c '
    . "$work/begin" --host 1 "$work/both.pcapng"
    sh "$work/ping" 0 1 -n 100; '"$end"
accepted "$work/both.pcapng" 800

# Filters, on the way through a pipe; snap length; the end by a count.
# shellcheck disable=SC2016
within --addresses "$block.1,$block.2" -- bash -c '
    (pumice capture --opcode acknowledge -c 20 - 2>"$work/said" | cat >"$work/acks.pcapng") &
    (pumice capture --peer '"$block"'.9 "$work/nobody.pcapng" 2>/dev/null & echo $! >"$work/pid"; wait)  &
    (pumice capture -q --snaplen 40 -c 100 "$work/short.pcapng") &
    sleep 1
    sh "$work/ping" 0 1 -n 100; kill -INT $(cat "$work/pid"); wait'
opcodes=$(shark -r "$work/acks.pcapng" -T fields -e infiniband.bth.opcode | sort | uniq -c | tr -s ' ')
[ "$opcodes" = " 20 17" ] || fail "the filter for ACKs gave: $opcodes"
[ "$(shark -r "$work/nobody.pcapng" | wc -l)" = 0 ] || fail "packets of a peer that is not there"
longest=$(shark -r "$work/short.pcapng" -T fields -e frame.cap_len | sort -n | tail -1)
[ "$longest" = 82 ] || fail "a snap length of 40 gave frames of $longest bytes"
[ "$(shark -r "$work/short.pcapng" -T fields -e frame.len | sort -n | tail -1)" -gt 1000 ] || fail "the length got lost"

# Files that take turns.
# shellcheck disable=SC2016
within --addresses "$block.1,$block.2" -- bash -c '
    . "$work/begin" -C 1 -W 2 "$work/turn.pcapng"
    sh "$work/ping" 0 1 -n 400; '"$end"
[ -s "$work/turn.0.pcapng" ] && [ -s "$work/turn.1.pcapng" ] && [ ! -e "$work/turn.2.pcapng" ] ||
    fail "rotation: $(ls "$work")"
[ "$(stat -c %s "$work/turn.0.pcapng")" -lt 1300000 ] || fail "a file is too long"
shark -r "$work/turn.1.pcapng" >"$work/out" || fail "a file of several can't be read"

# A reader that stops reading: the traffic goes on, and the end tells of the loss.
# shellcheck disable=SC2016
within --addresses "$block.1,$block.2" -- bash -c '
    mkfifo "$work/fifo"
    pumice capture -B 1 - 2>"$work/said" >"$work/fifo" &
    capture=$!
    exec 3<"$work/fifo"
    sleep 0.5
    sh "$work/ping" 0 1 -n 1500 || exit 1
    kill -INT $capture
    cat <&3 >"$work/slow.pcapng"
    wait $capture'
dropped=$(sed -n 's/.* \([0-9]*\) dropped.*/\1/p' "$work/said")
[ "${dropped:-0}" -gt 1000 ] || fail "a slow reader: $(cat "$work/said")"
shark -r "$work/slow.pcapng" >"$work/out" || fail "the capture of a slow reader can't be read"

exit $((failures > 0))
