#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Wireshark reads what wire/ and pcap/ write. tshark reads a capture with every opcode over IPv4 and IPv6. Its fields must equal the
# fields that were written. No packet may be malformed, and no checksum wrong. Then icrc_check.py recomputes every ICRC independently.
# Usage: wire_tshark.sh [wire_gen program]. Exit code 77: tshark or python3 is missing.
set -eu

here=$(dirname "$0")
gen=${1:-${BUILD:-$here/../../../build}/tests/e2e/capture/wire_gen}
for tool in tshark python3; do
    command -v $tool >/dev/null || { echo "skip: no $tool"; exit 77; }
done
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
capture=$dir/wire.pcapng

fail()
{
    echo "wire_tshark: $*" >&2
    exit 1
}

# HOME: no personal preferences. Checksums are validated only when asked for.
read_capture()
{
    HOME=$dir tshark -o ip.check_checksum:TRUE -o udp.check_checksum:TRUE -r "$capture" "$@" 2>"$dir/stderr" ||
        fail "tshark: $(cat "$dir/stderr")"
}

"$gen" "$capture" >"$dir/lines"
packets=$(wc -l <"$dir/lines")
[ "$packets" -ge 100 ] || fail "only $packets packets"

# 1. Every field of every packet. The generator's first column is "comment|opcode name"; the name is for 2.
sed 's/|[^	]*//' "$dir/lines" >"$dir/expected"
i=infiniband
read_capture -T fields -E occurrence=l -e frame.comment -e frame.time_epoch \
    -e $i.bth.opcode -e $i.bth.se -e $i.bth.m -e $i.bth.padcnt -e $i.bth.tver -e $i.bth.p_key -e $i.bth.destqp \
    -e $i.bth.a -e $i.bth.psn -e $i.deth.q_key -e $i.deth.srcqp -e $i.reth.va -e $i.reth.r_key -e $i.reth.dmalen \
    -e $i.atomiceth.swapdt -e $i.atomiceth.cmpdt -e $i.aeth.syndrome -e $i.aeth.msn -e $i.atomicacketh.origremdt \
    -e $i.immdt -e $i.ieth -e $i.invariant.crc -e $i.vendor >"$dir/got"
diff "$dir/expected" "$dir/got" >"$dir/diff" || fail "fields differ (< expected, > tshark):
$(head -20 "$dir/diff")"

# 2. The names of all opcodes that tshark knows.
read_capture -V >"$dir/verbose"
sed -n 's/^ *Opcode: \(.* - \)\{0,1\}\(.*\) ([0-9]*)$/\2/p' "$dir/verbose" >"$dir/names"
sed 's/^[^|]*|\([^	]*\).*/\1/' "$dir/lines" | paste "$dir/names" - | awk -F'\t' '
    $1 == "Unknown" { next }
    $1 != $2 { print "opcode name: " $2 ", tshark: " $1; bad = 1 }
    { known++ }
    END { if (known < 80) print "only " known " opcode names compared"; exit bad || known < 80 }' >"$dir/diff" ||
    fail "$(cat "$dir/diff")"

# 3. Nothing that tshark complains about.
wrong=$(read_capture -Y '_ws.malformed || _ws.expert.severity >= "Warning" || _ws.short')
[ -z "$wrong" ] || fail "tshark complains about: $wrong"
right=$(read_capture -Y 'udp.checksum.status == "Good" && (ipv6 || ip.checksum.status == "Good")' | wc -l)
[ "$right" -eq "$packets" ] || fail "IP and UDP checksums right in $right of $packets packets"
named=$(read_capture -Y 'frame.interface_name == "lab0" && eth.src.lg == 1' | wc -l)
[ "$named" -eq "$packets" ] || fail "interface name right in $named of $packets packets"

# 4. The ICRCs.
python3 "$here/../lib/icrc_check.py" "$capture" "$packets" || fail "ICRCs"
echo "wire_tshark: $packets packets agree"
