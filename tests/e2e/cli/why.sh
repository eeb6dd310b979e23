#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Tests pumice why, the log and the counters. For every reason why a QP can stand still, a QP does, and the test checks what Pumice reports.
. "$(dirname "$0")/../lib/common.bash"
stuck=$BUILD/tests/verbs/stuck
block=127.46.$(($$ % 256))

ns=pwhy$$
also_clean()
{
    ip netns del $ns 2>/dev/null
}
json() # TEXT EXPRESSION: of the document d
{
    python3 -c 'import json, sys; d = json.load(sys.stdin); print(eval(sys.argv[1]))' "$2" <<<"$1"
}

# Two hosts, h0 and h1, as `pumice run --hosts 2` makes them. Their sockets' buffers are small, so that one can see them full.
lab=$dir/lab
mkdir "$lab"
for h in 0 1; do
    mkfifo "$dir/ready$h"
    "$BUILD/bin/pumiced" --socket "$lab/host$h.sock" --address "$block.$((h + 1))" --window 6 --ecn on --rcvbuf 65536 --log-level info,qp=debug --log-format json \
        --ready-fd 3 3>"$dir/ready$h" 2>"$dir/log$h" &
    pids+=($!)
    read -r -t 10 _ <"$dir/ready$h" || { echo "the daemon does not start: $(cat "$dir/log$h")"; exit 1; }
done
in_lab() { PUMICE_LAB=$lab PUMICE_HOSTS=2 "$@"; }
library=$BUILD/lib/pumice/libibverbs.so.1
asan=$(ldd "$library" | awk '/libasan/ { print $3 }')

# scene NAME [FAULTS]: the program holds still; qp, other and key are its queue pairs and a key that is not there.
scene()
{
    in_lab "$pumice" fault off || fail "faults can't be ended"
    [ $# -lt 2 ] || in_lab "$pumice" fault "$2" || fail "$1: faults"
    coproc P { LD_PRELOAD=${asan:+$asan:}$library PUMICE_SOCKET=$lab/host0.sock VT_PEER_SOCKET=$lab/host1.sock exec "$stuck" "$1" 2>"$dir/err"; }
    program=$P_PID
    exec 7>&"${P[1]}"
    read -r -t 20 qp other key <&"${P[0]}" || fail "$1: the program does not get there: $(cat "$dir/err")"
    sleep 0.1
}
end()
{
    exec 7>&-
    eval "exec ${P[1]}>&-"
    wait "$program" 2>/dev/null
}
why() { in_lab "$pumice" why "$@" 2>&1; }

scene new
has "a new one" "$(why "$qp")" "has not connected it yet"
out=$(why --all)
has "all" "$out" "$qp"
has "all, the other" "$out" "$other"
end
out=$(why "$qp"); [ $? -eq 1 ] || fail "exit code for a queue pair that is gone"
has "gone" "$out" "there is no queue pair $qp"
out=$(why nonsense); has "nonsense" "$out" "is not a queue pair number"
out=$(why); has "nothing" "$out" "no queue pair given"

scene idle
out=$(why "$qp")
has "an idle one" "$out" "nothing to send"
has "an idle one" "$out" "no receive request posted"
hasnt "an idle one" "$out" "waits for an ACK"
end

scene unmapped
has "memory that was unmapped" "$(why "$other")" "memory that its program had unmapped"
hasnt "memory that was unmapped: the other end" "$(why "$qp")" "unmapped"
has "the counter of a QP" "$(in_lab "$pumice" status --json)" '"mem_unmapped": 1'
end

scene rnr
out=$(why "$qp")
has "RNR" "$out" "The peer has no receive request"
has "RNR: who" "$out" "stuck (pid"
has "RNR: retries" "$out" "of 6 RNR retries are left"
hasnt "RNR" "$out" "waits for an ACK"
has "RNR, seen from there" "$(why "$other")" "waits for a receive request here"
end
scene rnr
[ "$(json "$(why --json "$qp")" 'd["qps"][0]["why"][0]["code"]')" = rnr ] || fail "RNR in JSON"
[ "$(json "$(why --json --host 0 "$qp")" '"pid" in d["qps"][0]["why"][0]["text"]')" = True ] ||
    fail "the peer is not looked up on other hosts with --host"
end

scene xrc
out=$(why "$qp")
has "XRC" "$out" "It waits for a receive request in SRQ 0x"
has "XRC: whose" "$out" " of stuck (pid"
has "XRC: what waits for nothing of its own" "$out" "The requests after this message (1) wait too"
hasnt "XRC" "$out" "has posted none"
end

scene ack loss=100%
out=$(why "$qp")
has "ACK" "$out" "waits for an ACK: PSN 1 to 3"
has "ACK: faults" "$out" "Faults are injected into the packets that this host sends: loss=100%"
hasnt "ACK: window" "$out" "Its window is full"
end

scene window loss=100%
out=$(why "$qp")
has "window" "$out" "Its window is full"
has "window" "$out" "at most 6 packets"
hasnt "ACK: no retry yet" "$out" "retries are left"
end

scene retry 'loss=100%'
for _ in $(seq 15); do # until the first retry
    out=$(why "$qp")
    [[ $out != *"retries are left"* ]] || break
    sleep 0.1
done
has "retries" "$out" "retries are left, then it fails"
for _ in $(seq 50); do
    out=$(why "$qp")
    [[ $out == *"retries are left"* ]] || break
    sleep 0.2
done
has "retries used up" "$out" "all retries are used up"
has "retries used up" "$out" "pumice ping"
end

scene gone
out=$(why "$qp")
has "the peer is gone" "$out" "There is no queue pair"
end

scene reads 'loss=100%'
has "READs" "$(why "$qp")" "no credit for the next READ"
end
scene fence 'loss=100%'
has "a fence" "$(why "$qp")" "has a fence"
end
scene drain 'loss=100%'
has "SQD" "$(why "$qp")" "It is in SQD: it finishes the requests that have begun"
end

scene refused
out=$(why "$qp")
has "refused" "$out" "It is in ERR: failed: the peer refused a request (remote access error)"
has "refused: key" "$out" "key $key"
out=$(why "$other")
has "refused, there" "$out" "It is in ERR: failed: it refused a request of the peer (remote access error)"
has "refused, there: key" "$out" "key $key"
has "refused: completions" "$(why "$qp")" "ERR"
# The log: one line for each NAK and error, with PSN, key and address, valid JSON.
log() { python3 - "$1" "$2" <<'PY'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
for d in rows:
    assert d["time"].endswith("Z") and d["level"] in ("error", "warn", "info", "debug") and d["area"], d
print(sum(1 for d in rows if eval(sys.argv[2])))
PY
}
hex=$((qp))
[ "$(log "$dir/log0" "d.get('event') == 'nak_received' and d['qpn'] == $hex and d['syndrome'] == 0x62 and d['psn'] == 1")" = 1 ] ||
    fail "the log of the sender has no line for the NAK: $(tail -n 5 "$dir/log0")"
[ "$(log "$dir/log1" "d.get('event') == 'nak_sent' and d.get('key') == '$key' and d['va'].startswith('0x') and '$block.1' in d['peer']")" = 1 ] ||
    fail "the log of the receiver has no line for the NAK: $(tail -n 5 "$dir/log1")"
[ "$(log "$dir/log0" "d.get('event') == 'error' and d['cause'] == 'peer_nak' and d['level'] == 'warn'")" = 1 ] ||
    fail "the log has no line for the error"
[ "$(log "$dir/log1" "d.get('event') == 'drop' and d['cause'] == 'unknown_qp' and d['area'] == 'packet'")" -ge 1 ] ||
    fail "the log has no line for packets to the queue pair that was gone"
end

scene unpolled
out=$(why "$qp")
has "completions" "$out" "has not polled 5 completions"
status=$(in_lab "$pumice" status --json)
q="next(q for q in d['hosts'][0]['status']['devices'][0]['qps'] if q['qpn'] == $((qp)))"
dev="d['hosts'][0]['status']['devices'][0]"
[ "$(json "$status" "$q['hw_counters']['sent_pkts'] >= 5")" = True ] || fail "the queue pair's counters by rxe's names"
[ "$(json "$status" "$q['usnic_counters']['ack_recvs'] >= 1")" = True ] || fail "the queue pair's counters by usnic's names"
[ "$(json "$status" "$dev['port_counters']['port_xmit_packets'] == $dev['counters']['tx_packets'] > 0")" = True ] || fail "the port's counters"
[ "$(json "$status" "$dev['hw_counters']['completer_retry_err'] > 0 and $dev['usnic_counters']['resends'] > 0")" = True ] ||
    fail "the device's counters by rxe's names"
out=$(in_lab "$pumice" status --json --host 0 --only qps,cqs --pid "$program")
[ "$(json "$out" "sorted($dev)")" = "['address', 'cqs', 'name', 'port', 'qps']" ] || fail "status --only: $(json "$out" "sorted($dev)")"
[ "$(json "$out" "{q['pid'] for q in $dev['qps']} == {$program} and len($dev['cqs']) >= 2")" = True ] || fail "status --pid"
out=$(in_lab "$pumice" status --json --host 0 --pid 1)
[ "$(json "$out" "$dev['sessions'] == $dev['qps'] == $dev['mrs'] == [] and $dev['counters'] != {}")" = True ] || fail "status --pid of nobody"
has "status --only" "$(in_lab "$pumice" status --only qps,nonsense 2>&1)" "expected one or more of gids, sessions, pds, qps"
has "status --all" "$(in_lab "$pumice" status --all)" "usnic_counters"
hasnt "status" "$(in_lab "$pumice" status)" "usnic_counters"
end

scene nonsense
out=$(why "$qp")
has "nonsense in its rings" "$out" "Its program wrote invalid data into its rings (a tail beyond the end of its send queue)"
hasnt "nonsense in its rings" "$out" "its program set it"
has "nonsense in its rings: the other" "$(why "$other")" "is in RTS"
end

scene overrun
out=$(why "$qp")
has "a completion queue that overran" "$out" "overran: it has"
hasnt "a completion queue that overran" "$out" "its program set it"
end

scene unread
out=$(why "$qp")
has "requests that the daemon was not told of" "$out" "The daemon has not read 3 of its requests yet."
end

scene crowd loss=100%
for _ in $(seq 5); do # what was lost gives its room back after a while: too late, if the program was slow
    out=$(why "$qp")
    [[ $out == *"The window of its destination"* ]] && break
    end
    scene crowd loss=100%
done
has "the window of all who send there" "$out" "The window of its destination ::ffff:$block.2 is full"
end

scene marked ce=100%
out=
for _ in $(seq 20); do # the rate recovers soon
    out=$(why --json "$qp")
    [[ $out == *'"ecn"'* ]] && break
    end
    scene marked ce=100%
done
has "congestion" "$out" "Congested routers (ECN) have lowered its rate to"
end
in_lab "$pumice" fault off

# An interface that goes down, in a network namespace.
if [ "$(id -u)" = 0 ] && ip netns add $ns 2>/dev/null && ip -n $ns link add e0 type veth peer name e1 2>/dev/null; then
    ip -n $ns link set lo up && ip -n $ns link set e1 up && ip -n $ns link set e0 up && ip -n $ns address add 10.79.1.1/24 dev e0
    mkfifo "$dir/ready2"
    ip netns exec $ns "$BUILD/bin/pumiced" --socket "$dir/link.sock" --address 10.79.1.1 --fault loss=100% \
        --ready-fd 3 3>"$dir/ready2" 2>"$dir/log2" &
    pids+=($!)
    read -r -t 10 _ <"$dir/ready2" || fail "the daemon does not start: $(cat "$dir/log2")"
    coproc P { LD_PRELOAD=${asan:+$asan:}$library PUMICE_SOCKET=$dir/link.sock exec "$stuck" ack 2>"$dir/err"; }
    program=$P_PID
    exec 7>&"${P[1]}"
    read -r -t 20 qp _ <&"${P[0]}" || fail "ack: the program does not get there: $(cat "$dir/err")"
    hasnt "the link is up" "$("$pumice" why --socket "$dir/link.sock" "$qp" 2>&1)" "is down"
    ip -n $ns link set e0 down
    for _ in $(seq 50); do
        out=$("$pumice" why --socket "$dir/link.sock" "$qp" 2>&1)
        [[ $out == *"is down"* ]] && break
        sleep 0.1
    done
    has "the link is down" "$out" "The interface e0 of device pumice0 is down."
    end
else
    skip_part "an interface that is down: not root, or no network namespaces"
fi

[ $failures -eq 0 ] && echo "ok"
exit $((failures > 0))
