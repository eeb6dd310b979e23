#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Tests the Wireshark dissector. tshark reads scenes (scene_gen.c) with pcap/wireshark/pumice.lua, and must show what the files in
# tests/e2e/capture/golden say. Nothing may be malformed in the scenes and in a capture of all opcodes.
# Usage: dissector.sh [--update]   --update writes the golden files; read them before you commit them.
. "$(dirname "$0")/../lib/common.bash"
. "$lib/captures.bash"
golden=$here/golden
need tshark

# The fields of each packet that has them, by name, so that a golden file can be read.
fields="bth.name flow.peer_qp xrceth.srqn feth.plt feth.sel reth.va reth.r_key reth.dmalen atomiceth.va atomiceth.r_key atomiceth.swapdt
    atomiceth.cmpdt aeth.syndrome aeth.msn atomicacketh.origremdt cnp payload icrc.status analysis.repeats analysis.gap
    analysis.acks analysis.acked_in read.request_in read.first_in read.done_in read.time_us msg.fragment msg.packets
    msg.reassembled_in msg.length tmh.opcode tmh.reserved tmh.app_ctx tmh.tag rvh.va rvh.rkey rvh.len tm.data tm.request_in
    tm.read_in tm.data_in tm.fin_in tm.time_to_read_us tm.time_to_data_us tm.time_to_fin_us sack.requester sack.responder sack.expected sack.end
    sack.newest sack.twice sack.missing"
show()
{
    local f args=()
    for f in $fields; do
        args+=(-e "pumice.$f")
    done
    dissect "$1" -T fields -e frame.number -e _ws.col.Info -e _ws.expert.message "${args[@]}" | awk -F'\t' -v names="$fields" '
        BEGIN { split(names, name, /[ \n]+/) }
        {
            print $1 ": " $2
            if (index($3, ",")) print "      expert: " substr($3, index($3, ",") + 1) # without the comment of the packet
            for (i = 4; i <= NF; i++)
                if ($i != "") print "      " name[i - 3] " = " (length($i) > 100 ? substr($i, 1, 100) "..." : $i)
        }'
}

for scene in $("$BUILD/tests/e2e/capture/scene_gen" --list); do
    "$BUILD/tests/e2e/capture/scene_gen" "$scene" "$dir/$scene.pcapng" || fail "$scene: not generated"
    show "$dir/$scene.pcapng" >"$dir/$scene.txt"
    if [ "${1:-}" = --update ]; then
        mkdir -p "$golden"
        cp "$dir/$scene.txt" "$golden/"
    fi
    diff "$golden/$scene.txt" "$dir/$scene.txt" >"$dir/diff" || fail "$scene differs (< golden):
$(head -20 "$dir/diff")"
done

# Nothing that tshark complains about, but for what we say ourselves.
"$BUILD/tests/e2e/capture/wire_gen" "$dir/all.pcapng" >/dev/null || fail "no capture of all opcodes"
for file in "$dir"/*.pcapng; do
    wrong=$(dissect "$file" -Y '_ws.malformed || _ws.lua.error || _ws.short')
    [ -z "$wrong" ] || fail "$file: $wrong"
done
# Damaged packets may be malformed, but the dissector stands it and still says what it can.
dissect "$dir/all.pcapng" -Y ipv6 -w "$dir/ipv6.pcap"
for seed in 1 2 3 4 5 6 7 8; do # behind the UDP header
    editcap -E 0.05 -o 62 --seed $seed "$dir/ipv6.pcap" "$dir/damaged.pcap" 2>"$dir/err" || fail "editcap: $(cat "$dir/err")"
    wrong=$(dissect "$dir/damaged.pcap" -Y '_ws.lua.error || _ws.malformed && !pumice')
    [ -z "$wrong" ] || fail "damaged with seed $seed: $wrong"
done
packets=$(dissect "$dir/all.pcapng" -Y 'pumice.icrc.status == 1 && pumice.bth.name' | wc -l)
all=$(dissect "$dir/all.pcapng" | wc -l)
[ "$packets" -ge 100 ] && [ "$packets" -eq "$all" ] || fail "only $packets of $all packets with name and right ICRC"
unknown=$(dissect "$dir/all.pcapng" | grep -i unknown)
[ -z "$unknown" ] || fail "unknown to the dissector: $unknown"

# Fields filter, and expert information does.
frames() # WHAT FILE FILTER FRAMES
{
    local got
    got=$(dissect "$dir/$2.pcapng" -Y "$3" -T fields -e frame.number | paste -sd ' ')
    [ "$got" = "$4" ] || fail "$1: frames '$got', not '$4'"
}
frames "a tag" rendezvous 'pumice.tmh.tag == 0x1122334455667788' "1 7"
frames "FIN lost" lost_fin 'pumice.expert.no_fin' 1
frames "FIN there" rendezvous 'pumice.expert.no_fin' ""
frames "wrong ICRC" icrc 'pumice.expert.icrc' 3
frames "gap" retransmission 'pumice.expert.gap' 2
frames "retransmission" retransmission 'pumice.expert.retransmission' "5 9"
frames "NAK" retransmission 'pumice.expert.nak' 3
frames "RNR NAK" retransmission 'pumice.expert.rnr' 8
frames "newest PSN of a SACK" selective 'pumice.sack.newest == 260' 4
frames "message" eager 'pumice.msg.length == 522' "11 12 13"

# A SACK that does not describe all gaps: the newest packet is beyond its end, by 65535 or more PSNs in the second one.
for beyond in 0007 ffff; do
    B=$beyond perl -0777 -pe '$b = pack("H4", $ENV{B}); s/(PMCS\x02\x02)\0\0/$1$b/' "$dir/selective.pcapng" >"$dir/beyond$beyond.pcapng"
done
frames "a SACK without all gaps" beyond0007 'pumice.sack.newest == 267' 4
has "a SACK without all gaps" "$(dissect "$dir/beyond0007.pcapng")" "missing=257,259 newest=267"
has "a newest PSN far away" "$(dissect "$dir/beyondffff.pcapng")" "missing=257,259 newest=65795 or later"

# A rendezvous shows that a connection has tag matching headers. With two passes the dissector shows them from the beginning, with one
# pass from that packet on.
frames "headers before the rendezvous" early 'pumice.tmh.opcode' "1 5 6 8 14"
got=$(shark -X "lua_script:$lua" -r "$dir/early.pcapng" -Y 'pumice.tmh.opcode' -T fields -e frame.number | paste -sd ' ')
is "headers in one pass" "$got" "8 14"

# Where no rendezvous ever shows headers, what may be one is not kept, and yet it counts when one does, and is one when it is repeated.
cat >"$dir/plain.lua" <<'END'
local track = dofile(os.getenv("TRACK"))
local op, n = {kind = "send", place = "only", service = "RC"}, 20000
local function send(frame, psn, forced)
    local t = {opcode = 3, whole = true, message_len = 64, reserved = "\0\0\0", app_ctx = psn, tag = string.format("%016x", psn)}
    return track.packet({frame = frame, time = frame, src = "a", dst = "b"}, {op = op, qpn = 17, psn = psn, payload_len = 64}, nil, t, forced)
end
send(1, 1)
collectgarbage()
local before = collectgarbage("count")
for i = 2, n do
    send(i, i)
end
collectgarbage()
local each = (collectgarbage("count") - before) * 1024 / n
print(each < 500 and "little" or each .. " bytes for each SEND")
send(n + 1, n + 1, true)
print(send(n + 2, 5).tm)
print((track.report():match("eager +%d+")))
END
got=$(TRACK=${lua%/*}/pumice_track.lua shark -X "lua_script:$dir/plain.lua" -r "$dir/eager.pcapng" -Y 'frame.number == 0' | tr -s ' \n' ' ')
is "SENDs without headers" "$got" "little true eager 20001 "

# The connection of a packet: comments name it. PSNs alone are not enough where several connections have the same.
peers() # FILE OPTION...
{
    local file=$1
    shift
    shark -X "lua_script:$lua" -r "$file" "$@" -T fields -e pumice.flow.peer_qp -e pumice.analysis.acks -e pumice.analysis.repeats |
        tr -s '\t\n' ' '
}
known="0x00000011 0x00000012 0x00000022 1 0x00000011 0x00000023 2 0x00000012 0x00000022 4 0x00000022 0x00000022 0x00000023 6 0x00000023 "
is "twins, one pass" "$(peers "$dir/twins.pcapng")" "$known"
is "twins, two passes" "$(peers "$dir/twins.pcapng" -2 -R frame)" "$known"
frames "twins, nothing guessed" twins 'pumice.expert.guess' ""
got=$(shark -X "lua_script:$lua" -2 -r "$dir/twins.pcapng" -z expert,warn -q | grep -c "use tshark -2 -R frame")
[ "$got" -eq 1 ] || fail "nothing said of comments that were not seen"
shark -r "$dir/twins.pcapng" -F pcap -w "$dir/bare.pcap" # without comments
[ "$(peers "$dir/bare.pcap")" != "$known" ] || fail "twins are told apart by PSNs: they test nothing"
shark -r "$dir/reused.pcapng" -F pcap -w "$dir/bare.pcap"
has "a QP reused, without comments" "$(peers "$dir/bare.pcap" -2)" "0x00000011 1"
frames "a QP reused" reused 'pumice.expert.restart' 3

# Preferences.
got=$(dissect "$dir/eager.pcapng" -o pumice.tm:"Never" -Y pumice.tmh.opcode | wc -l)
[ "$got" -eq 0 ] || fail "tag matching switched off: $got packets"
got=$(dissect "$dir/eager.pcapng" -o pumice.tm:"Only of listed QPs" -o pumice.tm_qps:"3-4, 0x11" -Y 'pumice.tmh.opcode' -T fields -e frame.number |
    paste -sd ' ')
[ "$got" = "1 9 11" ] || fail "tag matching of one QP: '$got'"
got=$(dissect "$dir/icrc.pcapng" -o pumice.icrc:FALSE -Y 'pumice.icrc.status == 0' | wc -l)
[ "$got" -eq 0 ] || fail "ICRCs are checked though switched off"

# Statistics.
dissect "$dir/eager.pcapng" -q -o pumice.statistics:TRUE >"$dir/statistics"
grep -qE 'eager +2 messages +273 bytes' "$dir/statistics" && grep -qE 'rendezvous +1 messages +700 bytes' "$dir/statistics" &&
    grep -qE 'request to FIN +1 +60.0' "$dir/statistics" || fail "statistics: $(cat "$dir/statistics")"

# As a personal plugin, where Wireshark loads all files by itself.
plugins=$dir/plugged/.local/lib/wireshark/plugins
mkdir -p "$plugins"
cp "${lua%/*}"/pumice*.lua "$plugins"
got=$(HOME=$dir/plugged XDG_CONFIG_HOME=$dir/plugged/.config tshark -2 -r "$dir/rendezvous.pcapng" -Y pumice.tm.fin_in 2>"$dir/err" | wc -l)
[ "$got" -eq 2 ] || fail "as a personal plugin: $got packets; $(cat "$dir/err")"

[ $failures -eq 0 ] && echo "the dissector shows what it should, $all packets of all opcodes without complaint"
exit $((failures > 0))
