#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Tests pumice ping: the four verdicts, and what it reports about the path. As root it also tests small MTUs and firewalls on the path, in
# network namespaces.
. "$(dirname "$0")/../lib/common.bash"
block=127.47.$(($$ % 256))
ns=pping$$
also_clean() { no_router; }
start() # NAME ADDRESS [COMMAND...]: a daemon with socket $dir/NAME
{
    local name=$1 address=$2
    shift 2
    mkfifo "$dir/$name.ready"
    "$@" "$BUILD/bin/pumiced" --socket "$dir/$name" --address "$address" --ready-fd 3 3>"$dir/$name.ready" 2>"$dir/$name.log" &
    pids+=($!)
    read -r -t 20 _ <"$dir/$name.ready" || { echo "the daemon does not start: $(cat "$dir/$name.log")"; exit 1; }
}
verdict() # TEXT of JSON
{
    python3 -c 'import json, sys; d = json.load(sys.stdin); print(d["verdict"])' <<<"$1"
}

counter() # SOCKET NAME: of its device
{
    "$pumice" status --json --socket "$dir/$1" | python3 -c 'import json, sys
print(json.load(sys.stdin)["hosts"][0]["status"]["devices"][0]["counters"][sys.argv[1]])' "$2"
}

# --- two hosts of a lab ---
mkdir "$dir/lab"
start lab/host0.sock $block.1
start lab/host1.sock $block.2
in_lab() { PUMICE_LAB=$dir/lab PUMICE_HOSTS=2 "$@"; }
ping() { in_lab "$pumice" ping "$@" 2>&1; }

out=$(ping $block.2); is "exit code, both arrive" $? 0
has "both arrive" "$out" "OK: small and large packets are answered"
has "large ones are large" "$out" "large (4148 bytes on the wire): answered"
out=$(ping --json --size 1000 $block.2)
is "JSON" "$(verdict "$out")" ok
has "JSON: size" "$out" '"size": 1000'
is "its own address" "$(verdict "$(ping --json $block.1)")" ok
out=$(ping -c 2 -i 50 $block.3); is "exit code, nobody there" $? 4
has "nobody there" "$out" "No program listens on UDP port 4791 of $block.3"
[ "$(counter lab/host0.sock icmp_unreachable)" -ge 2 ] || fail "ICMP: port unreachable is not counted"
[ "$(counter lab/host1.sock icmp_unreachable)" = 0 ] || fail "ICMP is counted by a host that got none"
out=$(ping ::1); is "exit code, another family" $? 1
has "another family" "$out" "no device of the daemon has an IPv6 address"
out=$(ping no.such.host.invalid); is "exit code, no such host" $? 1
out=$(ping); has "no host" "$out" "no host given"

in_lab "$pumice" fault --host 1 loss=100%
out=$(ping -c 2 -i 50 $block.2); is "exit code, answers are lost" $? 4
has "answers are lost" "$out" "ONE-WAY: 4 of the probes arrived at $block.2"
out=$(ping -c 2 -i 50 --host 1 $block.1); is "exit code, probes are lost" $? 4
has "probes are lost" "$out" "None of the probes arrived at $block.1"
# Without a lab, the other's own probes tell.
"$pumice" ping --socket "$dir/lab/host0.sock" -c 12 -i 300 $block.2 >"$dir/one" &
in_lab "$pumice" fault --host 0 loss=100%
in_lab "$pumice" fault --host 1 off
sleep 0.2
ping -c 1 -i 100 --host 1 $block.1 >"$dir/two"
wait $!
has "one way, by the other's probes" "$(cat "$dir/one")" "probes of $block.2 arrived here"
in_lab "$pumice" fault off
# Losses are no verdict: it tries again.
in_lab "$pumice" fault loss=50%
is "half of them lost" "$(verdict "$(ping --json -c 80 -i 30 $block.2)")" ok
in_lab "$pumice" fault off

# --- smaller MTUs on the way ---
if router 10.77 1400; then
    start a 10.77.1.1 ip netns exec ${ns}a
    start b 10.77.2.1 ip netns exec ${ns}b
    out=$("$pumice" ping --socket "$dir/a" -c 3 -i 150 10.77.2.1); is "exit code, a router with a small MTU" $? 2
    has "a router with a small MTU" "$out" "MTU: small packets are answered"
    has "a router with a small MTU" "$out" "The router 10.77.1.2 reports (ICMP, fragmentation needed) that it forwards at most 1400 bytes. These packets have 4148"
    has "what to do" "$out" "--mtu 1024"
    [ "$(counter a icmp_too_big)" -ge 1 ] || fail "ICMP: fragmentation needed is not counted"
    has "ICMP in the log" "$(cat "$dir/a.log")" "a router towards 10.77.2.1"
    has "ICMP in the log" "$(cat "$dir/a.log")" "accepts packets of at most 1400 bytes: use a smaller path MTU"
    is "what fits" "$(verdict "$("$pumice" ping --json --socket "$dir/a" --size 1024 10.77.2.1)")" ok
    # The other way, the packets get as far as the router's interface, whose MTU they exceed: it drops them without a word.
    out=$("$pumice" ping --socket "$dir/b" -c 3 -i 150 10.77.1.1); is "exit code, a black hole" $? 2
    has "a black hole" "$out" "are lost without an error message"
    # Longer than the own interface takes.
    ip -n ${ns}a link set e0 mtu 1400
    out=$("$pumice" ping --socket "$dir/a" -c 2 -i 100 --size 4096 10.77.2.1); is "exit code, the own interface" $? 2
    has "the own interface" "$out" "This host does not send packets of 4148 bytes"
    [ "$(counter a tx_too_long)" -ge 1 ] || fail "packets longer than the interface takes are not counted"
    has "the own interface, log" "$(cat "$dir/a.log")" "is longer than the interface's MTU and was dropped"
    # No route there.
    ip -n ${ns}a route del default
    out=$("$pumice" ping --socket "$dir/a" -c 2 -i 100 10.77.2.1); is "exit code, no route" $? 4
    has "no route" "$out" "This host can't send to it"
    [ "$(counter a tx_unreachable)" -ge 1 ] || fail "packets without a route are not counted"
    has "no route, log" "$(cat "$dir/a.log")" "can't send to 10.77.2.1"
    # Firewalls of the router: small packets alone are dropped, packets go one way only, and answers get another source
    # address (which their ICRC covers).
    ip -n ${ns}a route add default via 10.77.1.2
    ip -n ${ns}a link set e0 mtu 9000
    ip -n ${ns}r link set e2 mtu 9000
    nft() { ip netns exec ${ns}r nft "$@"; }
    ask() { "$pumice" ping --socket "$dir/a" -c 2 -i 150 "$@" 10.77.2.1 2>&1; }
    if command -v nft >/dev/null && nft add table ip p 2>/dev/null; then
        nft add chain ip p way '{ type filter hook forward priority 0; }'
        nft add rule ip p way ip daddr 10.77.2.1 udp dport 4791 meta length lt 1000 drop
        out=$(ask); is "exit code, small ones are lost" $? 3
        has "small ones are lost" "$out" "ODD: large packets are answered, small packets are not."
        has "small ones are lost" "$out" "The MTU is not the reason"
        is "small ones are lost, JSON" "$(verdict "$(ask --json)")" small_lost
        nft flush chain ip p way
        nft add rule ip p way ip daddr 10.77.1.1 drop
        "$pumice" ping --socket "$dir/b" -c 6 -i 200 10.77.1.1 >"$dir/there" 2>&1 &
        out=$(ask); is "exit code, one way" $? 4
        wait $!
        has "one way, seen from there" "$(cat "$dir/there")" "ONE-WAY: "
        has "one way, seen from there" "$(cat "$dir/there")" "probes of 10.77.1.1 arrived here during the check, so the path from there works"
        [[ $out != *ONE-WAY* ]] || fail "one way, seen from here: nothing came in from there: $out"
        nft flush chain ip p way
        is "the firewall is open again" "$(verdict "$(ask --json)")" ok
        nft add table ip q
        nft add chain ip q turn '{ type filter hook forward priority 0; }'
        nft add rule ip q turn ip saddr 10.77.2.1 notrack 2>/dev/null
        nft add rule ip q turn ip saddr 10.77.2.1 ip saddr set 10.77.2.99
        out=$(ask)
        has "addresses that are rewritten" "$out" "arrived here with a wrong ICRC during the check. The ICRC covers the addresses"
        nft delete table ip q
    else
        skip_part "firewalls on the way: no nft"
    fi
else
    skip_part "small MTUs and firewalls on the way: not root, or no network namespaces"
fi

[ $failures -eq 0 ] && echo "ok"
exit $((failures > 0))
