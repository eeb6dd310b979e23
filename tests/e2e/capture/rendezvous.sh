#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Tests captures of rendezvous. The wire has the request, an RDMA READ of exactly the offered bytes, its responses, and a FIN that copies
# the request. All of it is legal RoCEv2: between two hosts and within one device, by the device and by software.
. "$(dirname "$0")/../lib/common.bash"
. "$lib/captures.bash"
block=127.34.$(($$ % 250)) # of loopback addresses, so that two runs at once don't meet

need tshark
[ -z "${SANITIZED:-}" ] || skip "pumice run preloads the library alone, not the sanitizer's"

# legal WHAT FILE CONNECTIONS OPTION...: the linter knows what belongs together, and has nothing to say
legal()
{
    local what=$1 file=$2 connections=$3
    shift 3
    pumice lint "$@" "$file" >"$dir/out" || fail "$what: $(tail -6 "$dir/out")"
    grep -q " $connections connections: 0 violations" "$dir/out" || fail "$what: not $connections connections: $(tail -1 "$dir/out")"
}

# One line for each packet; empty fields are "-".
fields="frame.number ip.src ip.dst infiniband.bth.destqp pumice.bth.name pumice.tmh.opcode pumice.tmh.app_ctx pumice.tmh.tag
    pumice.rvh.va pumice.rvh.rkey pumice.rvh.len infiniband.reth.va infiniband.reth.r_key infiniband.reth.dmalen pumice.tm.read_in
    pumice.tm.data_in pumice.tm.fin_in pumice.icrc.status pumice.analysis.repeats"
table() # FILE
{
    local f args=()
    for f in $fields; do
        args+=(-e "$f")
    done
    dissect "$1" -T fields "${args[@]}" | awk -F'\t' -v OFS='\t' '{ for (i = 1; i <= NF; i++) if ($i == "") $i = "-"; print }'
}

# Follows each request by the frames that the dissector names. Prints errors, and at the end how many requests each side answered.
cat >"$dir/follow.awk" <<'END'
function wrong(text) { print "FAIL frame " n ": " text }
{
    for (i = 1; i <= NF; i++) packet[$1, i] = $i
    last = $1
    if ($18 != 1) { n = $1; wrong("ICRC") }
}
END {
    for (n = 1; n <= last; n++) {
        if (packet[n, 6] != 1 || packet[n, 19] != "-") continue
        read = packet[n, 15]; data = packet[n, 16]; fin = packet[n, 17]
        if (packet[n, 5] != "RC SEND Only") wrong("request is " packet[n, 5])
        if (!(n < read && read + 0 < data + 0 && data + 0 < fin + 0)) { wrong("order: READ " read ", data " data ", FIN " fin); continue }
        if (packet[read, 5] != "RC RDMA READ Request") wrong("READ is " packet[read, 5])
        if (packet[data, 5] !~ /^RC RDMA READ response (Last|Only)$/) wrong("data is " packet[data, 5])
        if (packet[fin, 5] != "RC SEND Only" || packet[fin, 6] != 2) wrong("FIN is " packet[fin, 5] ", operation " packet[fin, 6])
        for (i = 9; i <= 11; i++) # what is offered is what is read
            if (packet[n, i] != packet[read, i + 3]) wrong("offers " packet[n, i] ", READ of " packet[read, i + 3])
        for (i = 7; i <= 11; i++)
            if (packet[n, i] != packet[fin, i]) wrong("request has " packet[n, i] ", its FIN " packet[fin, i])
        if (packet[read, 2] != packet[n, 3] || packet[fin, 2] != packet[n, 3] || packet[data, 2] != packet[n, 2]) wrong("addresses")
        if (packet[read, 4] != packet[fin, 4]) wrong("READ and FIN come by different QPs")
        to[n] = packet[n, 4]; by[n] = packet[fin, 4]
        # A device answers by the request's own connection; so all its FINs go to one QP, and software's to another one.
        count[to[n] " " by[n]]++
        all++
    }
    for (k in count) kinds++
    print all + 0, kinds + 0
}
END

# rendezvous WHAT ADDRESSES: two ranks exchange rows of 8800 bytes
rendezvous()
{
    local what=$1 file=$dir/$1.pcapng said device
    said=$(timeout 60 pumice run --addresses "$2" --capture "$file" -- "$BUILD/examples/tagmpi/halo" --ranks 2 --n 1100 --offload on 2>&1) ||
        fail "$what: $said"
    device=$(awk '/device, rendezvous/ { print $NF }' <<<"$said")
    [ "${device:-0}" -ge 5 ] || fail "$what: the device did only ${device:-0} rendezvous: $said"
    legal "$what" "$file" 2
    [ -z "$(dissect "$file" -Y '_ws.malformed || _ws.lua.error || pumice.expert.no_fin || pumice.expert.fin')" ] || fail "$what: malformed, or a FIN is wrong"
    table "$file" | awk -F'\t' -f "$dir/follow.awk" >"$dir/said"
    grep FAIL "$dir/said" && fail "$what"
    tail -1 "$dir/said" | { read -r all kinds; [ "${all:-0}" -ge 80 ] && [ "$kinds" -ge 2 ]; } ||
        fail "$what: of 80 rendezvous $(tail -1 "$dir/said")"
    echo "$what: $(tail -1 "$dir/said") rendezvous and ways, $device by the device"
}
rendezvous hosts "$block.1,$block.2"
rendezvous device "$block.1"

# Everything at once: both ways of matching, messages of all sizes, ranks that send to themselves; and on a bad network.
# stress WHAT FILE OPTION...: runs it again if the capture lacks packets because the machine is busy
stress()
{
    local what=$1 file=$2 try
    shift 2
    for try in 1 2 3; do
        timeout 60 pumice run --addresses "$block.1,$block.2" "$@" --capture "$file" -- \
            "$BUILD/tests/tagmpi/stress" --ranks 2 --messages 1500 --offload on >"$dir/out" 2>&1 || fail "$what: $(cat "$dir/out")"
        pumice lint --faulty --tm=off "$file" >"$dir/out"
        grep -q 'has lost' "$dir/out" || break
        echo "$what: the capture of try $try lacks packets"
    done
}
stress "stress" "$dir/all.pcapng"
legal "stress" "$dir/all.pcapng" 4
stress "stress with faults" "$dir/bad.pcapng" --fault loss=2%,dup=2%,reorder=2%
# (Buffers are reused. So a late or duplicate packet can't be assigned to one of the uses.)
legal "stress with faults" "$dir/bad.pcapng" 4 --faulty --tm=off

exit $((failures > 0))
