#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Tests packets that other processes of a host send in the name of its daemon: they can use its address, but not its UDP port. Tests the
# list of peers (--peers), too.
. "$(dirname "$0")/../lib/common.bash"
. "$lib/scene.bash"
block=127.51.$(($$ % 256))

device() # SOCKET EXPRESSION of the device d
{
    "$pumice" status --json --socket "$dir/$1" | python3 -c 'import json, sys
d = json.load(sys.stdin)["hosts"][0]["status"]["devices"][0]
print(eval(sys.argv[1]))' "$2"
}
counter() # SOCKET NAME
{
    device "$1" "d['counters']['$2']"
}
comes_to() # SOCKET NAME VALUE: the counter gets there
{
    local got
    for _ in $(seq 100); do
        got=$(counter "$1" "$2")
        [ "$got" = "$3" ] && return
        sleep 0.05
    done
    fail "$1: $2 is $got, not $3"
}
identifies() # SOCKET ADDRESS: the daemon finds out that a Pumice daemon is there
{
    for _ in $(seq 100); do
        grep -q "$2 is a Pumice daemon" "$dir/$1.log" && return
        sleep 0.05
    done
    fail "$1: $2 was not identified: $(cat "$dir/$1.log")"
}
forge() { python3 "$lib/forge.py" "$@"; }

# --- the port of a Pumice daemon ---
start_daemon a $block.1 --log-level info
start_daemon b $block.2
b=$started
scene idle a b || fail "the program: $qp $rest"
expected=$(device a "[q['epsn'] for q in d['qps'] if q['qpn'] == $qp][0]")
[ -n "$expected" ] || fail "no queue pair $qp"
# The first packet from another port makes the daemon ask who is there. It is for no queue pair, so it does no harm itself.
forge $block.2 $block.1 0xabcdef 0
comes_to a rx_unknown_qp 1
identifies a $block.2
forge $block.2 $block.1 "$qp" $((expected + 1)) 200
comes_to a rx_bad_port 200
forge $block.1 $block.1 "$qp" $((expected + 1)) 10
comes_to a rx_bad_port 210
is "NAKs for forged packets" "$(counter a send_seq_err)" 0
is "forged packets that a queue pair took" "$(counter a out_of_seq_request)" 0
has "the log" "$(cat "$dir/a.log")" "does not come from UDP port 4791"
# A daemon without connections, as one whose queue pairs only receive datagrams, knows the senders, too.
start_daemon e $block.5 --log-level info
forge $block.2 $block.5 0xabcdef 0
comes_to e rx_unknown_qp 1
identifies e $block.2
forge $block.2 $block.5 0xabcdef 0 3
comes_to e rx_bad_port 3
is "packets that another process sent" "$(counter e rx_unknown_qp)" 1
# A peer that is no Pumice daemon: its packets come from any port.
forge $block.9 $block.1 "$qp" $((expected + 1)) 5
comes_to a rx_bad_source 5
is "packets of another stack that were dropped" "$(counter a rx_bad_port)" 210

# --- the IP ID that its ICRC covers ---
# The peer's daemon is gone, but was there a moment ago. A packet from its port is damaged if its ICRC is right for another ID only
# than the BTH says.
kill -9 "$b"
wait "$b" 2>/dev/null
forge --port 4791 --id 64 $block.2 $block.1 0xabcdef 0 5
comes_to a rx_icrc_errors 5
forge --port 4791 --id 1 $block.2 $block.1 0xabcdef 0 5
comes_to a rx_icrc_errors 10
forge --port 4791 --id 0 --told 1 $block.2 $block.1 0xabcdef 0 5
comes_to a rx_icrc_errors 15
forge --port 4791 --id 63 --told 63 $block.2 $block.1 0xabcdef 0 5
comes_to a rx_unknown_qp 6
is "ICRC errors" "$(counter a rx_icrc_errors)" 15
end
start_daemon b $block.2

# --- an empty datagram, and one that is too short ---
python3 - $block.1 <<'PY'
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for data in (b"", b"x", b"", bytes(15)):
    s.sendto(data, (sys.argv[1], 4791))
PY
comes_to a rx_malformed 2

# --- a list of peers ---
printf 'socket = "%s"\npeers = "192.0.2.0/24,%s.1,%s.8,fd00::/8"\ndevice pumice0 { address = %s.3 }\n' "$dir/c" "$block" "$block" "$block" >"$dir/c.conf"
rm -f "$dir/c.ready"
mkfifo "$dir/c.ready"
"$BUILD/bin/pumiced" --config "$dir/c.conf" --ready-fd 3 3>"$dir/c.ready" 2>"$dir/c.log" &
listed=$!
pids+=($listed)
read -r -t 20 _ <"$dir/c.ready" || { echo "the daemon does not start: $(cat "$dir/c.log")"; exit 1; }
is "the list in status" "$(device c "','.join(d['peers'])")" "192.0.2.0/24,$block.1/32,$block.8/32,fd00::/8"
is "no list in status" "$(device a "d['peers']")" "[]"
forge $block.7 $block.3 0xabcdef 0 7
comes_to c rx_not_listed 7
is "packets of others that were processed" "$(counter c rx_unknown_qp)" 0
forge $block.8 $block.3 0xabcdef 0 3
comes_to c rx_unknown_qp 3
scene idle c b && fail "connected to an address that is not listed"
end
scene idle c a || fail "not connected to an address that is listed: $qp $rest"
end
# Reload: the list changes at once.
sed -i "s/^peers = .*/peers = \"$block.0\/24\"/" "$dir/c.conf"
kill -HUP $listed
for _ in $(seq 100); do
    [ "$(device c "','.join(d['peers'])")" = "$block.0/24" ] && break
    sleep 0.05
done
is "the list after a reload" "$(device c "','.join(d['peers'])")" "$block.0/24"
forge $block.7 $block.3 0xabcdef 0 4
comes_to c rx_unknown_qp 7
scene idle c b || fail "not connected to an address that is listed now: $qp $rest"
end

[ $failures -eq 0 ] && echo "ok"
exit $((failures > 0))
