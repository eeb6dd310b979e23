#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Tests pumice capture, within one device and between two hosts, without and with faults. The linter and tshark accept what it writes.
# Filters, snap length and rotation work. A reader that does not read delays nothing.
. "$(dirname "$0")/../lib/common.bash"
. "$lib/captures.bash"
block=127.33.$(($$ % 250)) # of loopback addresses, so that two runs at once don't meet
export block

need tshark ibv_rc_pingpong

# within OPTION... -- COMMAND: pumice run with a time limit
within()
{
    timeout 120 pumice run "$@" >"$dir/out" 2>&1 || fail "$*: $(tail -5 "$dir/out")"
}

# ping HOST HOST OPTION...: a ping-pong from the second to the first; until the server listens
cat >"$dir/ping" <<'END'
server=$1 client=$2
shift 2
pumice on "$server" -- ibv_rc_pingpong -g 0 "$@" >/dev/null &
for i in 1 2 3 4 5 6 7 8 9 10; do
    sleep 0.3
    pumice on "$client" -- ibv_rc_pingpong -g 0 "$@" 127.0.0.1 >"$dir/client" 2>&1 && wait && exit 0
done
cat "$dir/client"
exit 1
END
# capture FILE OPTION...: in the background, and returns when it captures; then "end"
cat >"$dir/begin" <<'END'
pumice capture "$@" 2>"$dir/said" &
capture=$!
for i in $(seq 100); do
    grep -q "capturing at" "$dir/said" && break
    sleep 0.05
done
END
end='kill -INT $capture; wait $capture || exit 9'

within --addresses "$block.1" --capture "$dir/inside.pcapng" -- sh "$dir/ping" 0 0 -n 100
accepted "$dir/inside.pcapng" 800
right=$(shark -X "lua_script:$lua" -r "$dir/inside.pcapng" -Y 'pumice.icrc.status == 1' | wc -l)
[ "$right" -ge 800 ] || fail "only $right packets inside of a device have a right ICRC"
shark -r "$dir/inside.pcapng" -T fields -e frame.comment >"$dir/out"
grep -q 'QP 0x[0-9a-f]* of ibv_rc_pingpong (pid [0-9]*), wr_id 0x2, inside of the device' "$dir/out" ||
    fail "no comment: $(head -2 "$dir/out")"

within --addresses "$block.1,$block.2" --capture "$dir/hosts.pcapng" -- sh "$dir/ping" 0 1 -n 100
accepted "$dir/hosts.pcapng" 800
[ "$(shark -r "$dir/hosts.pcapng" -T fields -e frame.interface_name | sort -u | tr '\n' ' ')" = "host0:pumice0 host1:pumice0 " ] ||
    fail "not one interface for each host"

within --addresses "$block.1,$block.2" --fault loss=3%,dup=3%,reorder=3%,corrupt=2% --capture "$dir/faulty.pcapng" -- \
    sh "$dir/ping" 0 1 -n 300
wrong=_ws.lua.error accepted "$dir/faulty.pcapng" 1000 --faulty
shark -r "$dir/faulty.pcapng" -T fields -e frame.comment | grep -q 'struck by a fault: .*damaged' || fail "damaged packets are not in the capture"
shark -r "$dir/faulty.pcapng" -T fields -e frame.comment | grep -q retransmission || fail "no retransmission"

# Both directions at one host; the same before faults: nothing is damaged there.
# shellcheck disable=SC2016
within --addresses "$block.1,$block.2" --fault corrupt=20% -- bash -c '
    . "$dir/begin" --host 0 --before-faults --direction out "$dir/before.pcapng"
    sh "$dir/ping" 0 1 -n 100; '"$end"
accepted "$dir/before.pcapng" 400
grep -q "packets captured, 0 dropped" "$dir/said" || fail "no summary: $(cat "$dir/said")"
# shellcheck disable=SC2016
within --addresses "$block.1,$block.2" -- bash -c '
    . "$dir/begin" --host 1 "$dir/both.pcapng"
    sh "$dir/ping" 0 1 -n 100; '"$end"
accepted "$dir/both.pcapng" 800
shark -r "$dir/both.pcapng" -T fields -e ip.src -e frame.packet_flags_direction | sort -u | tr -s '\t\n' ' ' >"$dir/out"
is "directions" "$(cat "$dir/out")" "$block.1 0x00000001 $block.2 0x00000002 " # in, out

# Filters, on the way through pipes, one into a program that shows live what comes; snap length; the end by a count. (With a sanitizer, a
# program must not have the library without the run time of the sanitizer.)
# shellcheck disable=SC2016
within --addresses "$block.1,$block.2,$block.3" -- bash -c '
    (pumice capture --opcode acknowledge -c 20 - 2>"$dir/said" | cat >"$dir/acks.pcapng") &
    (pumice capture --host 0 -c 20 - 2>"$dir/said.live" | env -u LD_PRELOAD HOME=$dir tshark -l -i - -T fields -e frame.comment >"$dir/live" 2>"$dir/live.err") &
    (pumice capture --host 0 --peer '"$block"'.3 -c 100 "$dir/peer.pcapng" 2>"$dir/said.peer") &
    (pumice capture --peer '"$block"'.9 "$dir/nobody.pcapng" 2>"$dir/said.nobody" & echo $! >"$dir/pid"; wait)  &
    (pumice capture --snaplen 40 -c 100 "$dir/short.pcapng" 2>"$dir/said.short") &
    for i in $(seq 200); do
        [ "$(grep -l "capturing at" "$dir/said" "$dir/said."* 2>/dev/null | wc -l)" = 5 ] && break
        sleep 0.05
    done
    sh "$dir/ping" 0 1 -n 100; sh "$dir/ping" 0 2 -n 100; kill -INT $(cat "$dir/pid"); wait'
opcodes=$(shark -r "$dir/acks.pcapng" -T fields -e infiniband.bth.opcode | sort | uniq -c | tr -s ' ')
[ "$opcodes" = " 20 17" ] || fail "the filter for ACKs gave: $opcodes"
[ "$(grep -c '^QP 0x.*ibv_rc_pingpong' "$dir/live")" = 20 ] || fail "through a pipe into tshark: $(tail -n 3 "$dir/live" "$dir/live.err")"
is "only one peer" "$(shark -r "$dir/peer.pcapng" -T fields -e ip.addr | tr , '\n' | sort | uniq -c | tr -s ' \n' ' ')" " 100 $block.1 100 $block.3 "
[ "$(shark -r "$dir/nobody.pcapng" | wc -l)" = 0 ] || fail "packets of a peer that is not there"
longest=$(shark -r "$dir/short.pcapng" -T fields -e frame.cap_len | sort -n | tail -1)
[ "$longest" = 82 ] || fail "a snap length of 40 gave frames of $longest bytes"
[ "$(shark -r "$dir/short.pcapng" -T fields -e frame.len | sort -n | tail -1)" -gt 1000 ] || fail "the length got lost"

# One queue pair of several: what goes to it, and what it sends.
# shellcheck disable=SC2016
within --addresses "$block.1,$block.2" -- bash -c '
    for port in 20001 20002; do
        pumice on 0 -- ibv_rc_pingpong -g 0 -p $port -n 1000000 >/dev/null &
        for i in 1 2 3 4 5 6 7 8 9 10; do
            sleep 0.3
            pumice on 1 -- ibv_rc_pingpong -g 0 -p $port -n 1000000 127.0.0.1 >/dev/null 2>&1 &
            sleep 0.3
            kill -0 $! 2>/dev/null && break
        done
    done
    qp=$(pumice status --host 0 --json | sed -n "s/.*\"qpn\": \([0-9]*\).*/\1/p" | head -1)
    qp=$(printf "0x%06x" "$qp")
    echo "$qp" >"$dir/qp"
    timeout 20 pumice capture -q --host 0 --qp "$qp" -c 200 "$dir/one.pcapng"
    kill $(jobs -p)
    wait'
qp=$(cat "$dir/qp")
[ "$(shark -r "$dir/one.pcapng" -T fields -e frame.number | wc -l)" = 200 ] || fail "a queue pair's packets: $(cat "$dir/out")"
shark -r "$dir/one.pcapng" -T fields -e frame.comment -e infiniband.bth.destqp | grep -vi "^QP $qp \|$qp$" >"$dir/out" &&
    fail "packets of another queue pair than $qp: $(head -3 "$dir/out")"

# Files that take turns.
# shellcheck disable=SC2016
within --addresses "$block.1,$block.2" -- bash -c '
    . "$dir/begin" -C 1 -W 2 "$dir/turn.pcapng"
    sh "$dir/ping" 0 1 -n 400; '"$end"
[ -s "$dir/turn.0.pcapng" ] && [ -s "$dir/turn.1.pcapng" ] && [ ! -e "$dir/turn.2.pcapng" ] ||
    fail "rotation: $(ls "$dir")"
[ "$(stat -c %s "$dir/turn.0.pcapng")" -lt 1300000 ] || fail "a file is too long"
shark -r "$dir/turn.1.pcapng" >"$dir/out" || fail "a file of several can't be read"

# A reader stops reading: the traffic continues, and the end of the capture reports the loss.
# shellcheck disable=SC2016
within --addresses "$block.1,$block.2" -- bash -c '
    mkfifo "$dir/fifo"
    pumice capture -B 1 - 2>"$dir/said" >"$dir/fifo" &
    capture=$!
    exec 3<"$dir/fifo"
    sleep 0.5
    sh "$dir/ping" 0 1 -n 1500 || exit 1
    kill -INT $capture
    cat <&3 >"$dir/slow.pcapng"
    wait $capture'
dropped=$(sed -n 's/.* \([0-9]*\) dropped.*/\1/p' "$dir/said")
[ "${dropped:-0}" -gt 1000 ] || fail "a slow reader: $(cat "$dir/said")"
shark -r "$dir/slow.pcapng" >"$dir/out" || fail "the capture of a slow reader can't be read"

exit $((failures > 0))
