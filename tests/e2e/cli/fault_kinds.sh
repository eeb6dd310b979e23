#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Each kind of fault, in a lab of two hosts: programs get over it or see what hardware would show them, and the counters say that
# it was there, as often as it was asked for.
. "$(dirname "$0")/../lib/common.bash"
. "$(dirname "$0")/../lib/fault_pair.bash"

pair() # FAULT ARGUMENT...: sets `out`
{
    run_pair --fault "$@"
}

# Each message of 8192 bytes is 8 packets.
sizes=(-n 200 -s 8192 -S 8192 -m 1024)

pair rnr=30% "${sizes[@]}" -o send,write_imm
passes "RNR storm"
[ "$(value host0.fault_refused)" -gt 0 ] || fail "no message was refused: $out"
is "RNR NAKs" "$(value host0.send_rnr_err)" "$(value host0.fault_refused)"

pair "rnr=100%,count=9" "${sizes[@]}" -o send
passes "short RNR storm"
is "refused messages" "$(value host0.fault_refused)" 9

pair truncate=2% "${sizes[@]}" -o send,write,read
passes truncation
[ "$(value host1.fault_truncated)" -gt 0 ] || fail "no packet was cut: $out"
is "cut packets, refused" "$(($(value host0.rx_icrc_errors) + $(value host0.rx_malformed)))" "$(value host1.fault_truncated)"

pair "message=5,loss=100%" "${sizes[@]}" -o write
passes "one message"
is "packets of one message" "$(value host1.fault_dropped)" 8

pair "only=write,after=100,count=3,loss=100%" "${sizes[@]}" -o write
passes "three packets"
is "three packets" "$(value host1.fault_dropped)" 3

pair "drop=any#50" "${sizes[@]}" -o write
passes "one packet"
is "one packet" "$(value host1.fault_dropped)" 1

pair "drop=read-response-first#1;drop=read-request#1" "${sizes[@]}" -o read
passes "opcodes"
is "READ response" "$(value host0.fault_dropped)" 1
is "READ request" "$(value host1.fault_dropped)" 1

# --- tag matching: a rendezvous loses its request, and then the message that ends it ---
out=$(timeout 60 "$pumice" run --hosts 2 --fault 'drop=tm-rndv#1;drop=tm-fin#1' -- sh -c '
    "$BUILD/examples/tag_matching" >/dev/null && echo all right
    pumice status --json | python3 -c "import json, sys
print(*[h[\"status\"][\"devices\"][0][\"counters\"][\"fault_dropped\"] for h in json.load(sys.stdin)[\"hosts\"]])"' 2>&1)
has "tag matching" "$out" "all right"
is "the FIN of host 0, the request of host 1" "$(tail -n 1 <<<"$out")" "1 1"

# --- the link ---
if have "link events" ibv_asyncwatch ibv_devinfo script; then
    out=$(timeout 60 "$pumice" run -- bash -c '
        script -qfec ibv_asyncwatch /dev/null >"$dir/events" 2>&1 </dev/null &
        until [ -s "$dir/events" ]; do sleep 0.05; done
        pumice fault link=down
        until grep -aq PORT_ERR "$dir/events"; do sleep 0.05; done
        ibv_devinfo
        pumice fault off
        until grep -aq PORT_ACTIVE "$dir/events"; do sleep 0.05; done
        ibv_devinfo
        pumice fault link=down,from=100ms,for=3s
        until [ $(grep -ac PORT_ERR "$dir/events") = 2 ] && [ $(grep -ac PORT_ACTIVE "$dir/events") = 2 ]; do sleep 0.05; done
        echo twice
        kill $!' 2>&1)
    is "states of the port" "$(sed -n 's/.*state:[[:space:]]*\([A-Z_]*\).*/\1/p' <<<"$out" | xargs)" "PORT_DOWN PORT_ACTIVE"
    has "a time window" "$out" twice
fi
pair "link=down,only=write,after=50,for=100ms" "${sizes[@]}" -o write
passes "the link goes down and up"
[ "$(value host1.fault_link_dropped)" -gt 0 ] || fail "the link did not go down: $out"

# --- the daemon ---
pair "daemon=killed,only=write#50" "${sizes[@]}" -o write -T 5
has "killed" "$out" "host 1: the daemon was killed"
hasnt "killed" "$out" client=ok

[ $failures -eq 0 ] && echo "ok"
exit $((failures > 0))
