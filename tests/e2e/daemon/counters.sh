#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Programs read a port's counters in /sys/class/infiniband, perftest -W for example. The counters equal what was sent, and what
# `pumice status` reports.
. "$(dirname "$0")/../lib/common.bash"
need ib_write_bw ib_send_bw python3
ib_write_bw --help 2>&1 | grep -q -- --report-counters || skip "this ib_write_bw has no -W"
block=127.52.$(($$ % 256))
port=$((33100 + $$ % 500))
run() { "$pumice" run --addresses $block.1,$block.2 "$@"; }
messages=200 size=65536
sent=$(((size + size / 4096 * 16 + 16) * messages / 4)) # words of payload, a BTH and an ICRC in each packet, a RETH in each message
counters=/sys/class/infiniband/pumice0/ports/1/counters
hw_counters=/sys/class/infiniband/pumice0/ports/1/hw_counters

# between COMMAND CLIENT-COUNTERS SERVER-COUNTERS: runs it between the two hosts; output in $dir/client and $dir/server
between()
{
    export command=$1 client=$2 server=$3 port messages size
    run sh -c '
        pumice on 1 -- $command -d pumice0 -p $port -n $messages -s $size -W $server >"$dir/server" 2>&1 &
        for try in $(seq 100); do
            pumice on 0 -- $command -d pumice0 -p $port -n $messages -s $size -W $client 127.0.0.1 >"$dir/client" 2>&1 && break
            grep -q "connect" "$dir/client" || exit 1 # it is only that the server does not listen yet
            sleep 0.1
        done
        wait' || fail "$command: $(cat "$dir/client" "$dir/server")"
}
told() # WHO NAME: what perftest says that this counter has grown by
{
    sed -n "s,^[[:space:]]*$2=,,p" "$dir/$1"
}

mine=counters/port_xmit_data,counters/port_xmit_packets,counters/port_rcv_errors,hw_counters/completer_retry_err,hw_counters/rdma_sends
theirs=counters/port_rcv_data,counters/unicast_rcv_packets,hw_counters/duplicate_request,hw_counters/out_of_buffer
between ib_write_bw $mine $theirs
again=$(told client hw_counters/completer_retry_err) # packets sent twice: then there may be more of everything
if [ "$again" = 0 ]; then
    is "words sent" "$(told client counters/port_xmit_data)" $sent
    is "words received" "$(told server counters/port_rcv_data)" $sent
    is "packets received" "$(told server counters/unicast_rcv_packets)" $((size / 4096 * messages))
else
    [ "$(told client counters/port_xmit_data)" -gt $sent ] || fail "words sent: $(told client counters/port_xmit_data)"
fi
is "packets sent" "$(told client counters/port_xmit_packets)" $((size / 4096 * messages + again))
is "errors" "$(told client counters/port_rcv_errors)$(told server hw_counters/out_of_buffer)" 00
is "no SENDs" "$(told client hw_counters/rdma_sends)" 0
between ib_send_bw hw_counters/rdma_sends,counters/port_xmit_packets hw_counters/rdma_recvs,counters/port_rcv_packets
is "SENDs" "$(told client hw_counters/rdma_sends)" $messages
is "messages received" "$(told server hw_counters/rdma_recvs)" $messages
[ "$(told client counters/port_xmit_packets)" -ge $((size / 4096 * messages)) ] || fail "packets of SENDs: $(cat "$dir/client")"
out=$(run -- pumice on 0 -- ib_write_bw -d pumice0 -W counters/no_such 2>&1)
has "a counter that is not there" "$out" "performance counters"

# --- what others read ---
cat >"$dir/compare" <<'PY'
# Each file of a port's counters, against what the daemon's status says; nothing is sent meanwhile.
import json, re, subprocess
status = json.loads(subprocess.check_output(["pumice", "status", "--json", "--host", "0"]))
device = status["hosts"][0]["status"]["devices"][0]
for folder, kinds in ("counters", ["port_counters"]), ("hw_counters", ["hw_counters", "mlx5_counters", "usnic_counters"]):
    root = f"/sys/class/infiniband/{device['name']}/ports/1/{folder}"
    names = sorted(n for k in kinds for n in device[k])
    found = subprocess.check_output(["ls", root], text=True).split()
    assert sorted(found) == names, (found, names)
    for kind in kinds:
        for name, value in device[kind].items():
            with open(f"{root}/{name}") as f:
                text = f.read()
            assert text == f"{value}\n", (folder, name, text, value)
assert device["port_counters"]["port_xmit_packets"] > 0
# usnic's names that are only other names: --help says of which counter, and the text shows that counter only.
pairs = re.findall(r"(\w+)=(\w+)", subprocess.check_output(["pumice", "status", "--help"], text=True).split("other names of")[1])
assert len(pairs) == 13, pairs
own = device["counters"]
values = {k: v for part in (own, device.get("io_counters", {}), device["hw_counters"]) for k, v in part.items()}
for alias, name in pairs:
    assert device["usnic_counters"][alias] == values[name], (alias, name)
text = subprocess.check_output(["pumice", "status", "--all", "--host", "0"], text=True)
for alias, name in pairs:
    assert alias == name or not re.search(rf"\b{alias}\b", text), alias
assert re.search(r"\bresends\b", text)
print("same")
PY
out=$(run -- pumice on 0 -- sh -c 'ib_write_lat -d pumice0 -n 100 -p $port >"$dir/server" 2>&1 &
    for try in $(seq 100); do
        pumice on 1 -- ib_write_lat -d pumice0 -n 100 -p $port 127.0.0.1 >"$dir/client" 2>&1 && break
        sleep 0.1
    done
    wait; python3 "$dir/compare"' 2>&1)
is "status and files" "$out" same
out=$(run -- pumice on 0 -- cat $counters/port_xmit_data $hw_counters/sent_pkts); is "cat" "$out" $'0\n0'
out=$(run -- pumice on 0 -- grep . $counters/symbol_error $counters/link_downed)
is "grep" "$out" "$counters/symbol_error:0"$'\n'"$counters/link_downed:0"
out=$(run -- pumice on 0 -- sh -c "cat <$counters/port_rcv_data; head -n 1 $hw_counters/rcvd_pkts"); is "a shell's redirection" "$out" $'0\n0'
[ $failures -eq 0 ] && echo ok
exit $((failures > 0))
