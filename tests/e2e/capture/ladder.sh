#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# pumice ladder: each packet of a capture is an arrow; lost packets are broken arrows; retransmissions are marked; exchanges are folded. The
# files are well-formed, need no network and no script, and open in a browser. All of it also without the comments of Pumice, as in
# captures of NICs.
. "$(dirname "$0")/../lib/common.bash"
need python3
gen=$BUILD/tests/e2e/capture/scene_gen

ladder() # OPTION... FILE
{
    "$pumice" ladder "$@" >"$dir/out" 2>"$dir/err"
}

# drawn FILE: what is in the picture
drawn()
{
    python3 "$lib/picture.py" "$@" 2>&1
}

text() # FILE
{
    python3 "$lib/picture.py" --text "$1"
}

# 1. All scenes: IPv4 and IPv6, RC, XRC and UD. A row for each packet; in HTML twice, because all packets are also there in the order of time.
cd "$dir" || exit 1
for scene in $("$gen" --list); do
    "$gen" "$scene" "$scene.pcapng"
    packets=$("$pumice" lint --json --faulty "$scene.pcapng" | sed -n 's/.*"packets": \([0-9]*\).*/\1/p')
    ladder "$scene.pcapng" || fail "$scene: $(cat err)" # writes $scene.html
    ladder -o "$scene.svg" "$scene.pcapng" || fail "$scene: $(cat err)"
    got=$(drawn "$scene.svg") || fail "$scene.svg: $got"
    [[ $got == "rows $packets "* ]] || fail "$scene.svg: $got, not $packets packets"
    got=$(drawn "$scene.html") || fail "$scene.html: $got"
    [[ $got == "rows $((2 * packets)) "* ]] || fail "$scene.html: $got, not twice $packets packets"
done
has "rendezvous" "$(text rendezvous.html)" "rendezvous of 700 bytes, tag 0x1122334455667788"
is "a rendezvous is one band" "$(drawn rendezvous.html)" "rows 16 lost 0 again 0 bands 1"
has "addresses" "$(text ipv6.svg)" "2001:db8::1"
has "XRC" "$(text xrc.svg)" "XRC SEND Only"
is "retransmissions" "$(drawn retransmission.svg)" "rows 10 lost 0 again 3 bands 0"
has "reason" "$(text retransmission.svg)" "retransmission of 2, after NAK 3"
has "reason" "$(text retransmission.svg)" "retransmission of 7, after RNR NAK 8"
has "NAK" "$(text retransmission.svg)" "NAK: PSN sequence error"
has "details" "$(text rendezvous.svg)" "rkey 0x1234abcd"

# 2. A faulty run. The same without comments and directions: NAKs and repeated PSNs say what was lost.
if have "a faulty run" ib_write_bw editcap tshark; then
    block=127.39.$(($$ % 250))
    # shellcheck disable=SC2016
    timeout 120 "$pumice" run --addresses "$block.1,$block.2" --fault loss=5% --seed 3 --capture lossy.pcapng --capture-lost -- sh -c '
        pumice on 0 -- ib_write_bw -s 20000 -n 100 </dev/null >"$0/server" 2>&1 &
        for i in 1 2 3 4 5 6 7 8; do # until the server listens
            sleep 0.3
            pumice on 1 -- ib_write_bw -s 20000 -n 100 "$1" </dev/null >"$0/client" 2>&1 && break
        done
        wait' "$dir" "$block.1" >out 2>&1 || fail "no faulty run: $(tail -3 client out)"
    shark() { HOME=$dir XDG_CONFIG_HOME=$dir tshark -r lossy.pcapng -Y "$1" 2>/dev/null | wc -l; }
    packets=$(shark infiniband) lost=$(shark 'frame.comment contains "fault: lost"') again=$(shark 'frame.comment contains "retransmission"')
    [ "$lost" -gt 2 ] && [ "$again" -gt 2 ] || fail "only $lost lost packets and $again retransmissions"
    ladder -o lossy.svg lossy.pcapng || fail "$(cat err)"
    is "a faulty run" "$(drawn lossy.svg)" "rows $packets lost $lost again $again bands 0"
    has "the program" "$(text lossy.svg)" "ib_write_bw (pid "
    editcap -F pcap lossy.pcapng plain.pcap 2>/dev/null
    ladder -o plain.svg plain.pcap || fail "$(cat err)"
    read -r _ rows _ plain_lost _ plain_again _ <<<"$(drawn plain.svg)"
    is "a row for each packet of classic pcap" "$rows" "$packets"
    is "retransmissions without comments" "$plain_again" "$again"
    [ "$plain_lost" -ge 1 ] && [ "$plain_lost" -le "$lost" ] || fail "without comments, $plain_lost lost packets; there are $lost"
fi

# 3. A part of the capture.
is "the first packets" "$(ladder --count 3 -o part.svg rendezvous.pcapng; cat err; drawn part.svg)" \
    "pumice: rendezvous.pcapng: the picture has the first 3 of 8 packets; choose others by --from, --to, --qp or --host, or more by --count
rows 3 lost 0 again 0 bands 0"
is "frames" "$(ladder --from 3 --to 4 -o part.svg rendezvous.pcapng; drawn part.svg)" "rows 2 lost 0 again 0 bands 0"
is "a time" "$(ladder --from 60us -o part.svg rendezvous.pcapng; drawn part.svg)" "rows 2 lost 0 again 0 bands 0"
is "a queue pair" "$(ladder --qp 0x11 -o part.svg rendezvous.pcapng; drawn part.svg)" "rows 8 lost 0 again 0 bands 0"
is "another queue pair" "$(ladder --qp 99 -o none.svg rendezvous.pcapng; cat err)" \
    "pumice: rendezvous.pcapng: none of its 8 RoCEv2 packets is chosen; look at --from, --to, --qp and --host"
is "two addresses" "$(ladder --host 2001:db8::1 --host 2001:db8::2 -o part.svg ipv6.pcapng; drawn part.svg)" "rows 8 lost 0 again 0 bands 0"
ladder --host 10.0.0.9 -o none.svg ipv6.pcapng && fail "an address that is not there"
for wrong in --from=5x --from=0 --to=-1 --qp=0x1000000 --qp=, --host=10.1 --count=0; do
    ladder "$wrong" -o none.svg rendezvous.pcapng && fail "$wrong is accepted"
    grep -q "^pumice ladder: ${wrong%%=*}: " err || fail "$wrong: $(head -1 err)"
done
[ ! -e none.svg ] || fail "a picture of nothing"

# 4. Files that are no captures, or end early. Names with markup. Standard input and output.
ladder -o none.svg "$here/ladder.sh" && fail "no capture"
ladder -o none.svg missing.pcapng && fail "no file"
ladder -o /none/x.svg rendezvous.pcapng && fail "no folder"
has "no folder" "$(cat err)" "/none/x.svg: No such file"
head -c 1100 rendezvous.pcapng >half.pcapng
ladder half.pcapng && fail "half a file: exit code 0"
has "half a file" "$(drawn half.html; text half.html; cat half.html)" "The end of the file can't be read."
cp rendezvous.pcapng '<b>"&.pcapng'
ladder -o markup.html '<b>"&.pcapng' || fail "$(cat err)"
drawn markup.html >out || fail "markup: $(cat out)"
has "standard input" "$("$pumice" ladder -o - - <rendezvous.pcapng)" "<text class=\"title\" x=\"20\" y=\"26\">standard input</text>"

# 5. Too many addresses for one picture.
python3 - >many.pcap <<'END'
import struct, sys
out = struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1)
for i in range(20):
    bth = struct.pack(">BBHII", 4, 0x40, 0xffff, 17, i) + bytes(4)
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 28 + len(bth), 0, 0, 64, 17, 0, bytes([10, 0, 0, i]), bytes([10, 0, 0, i + 1]))
    frame = bytes(12) + b"\x08\x00" + ip + struct.pack(">HHHH", 1, 4791, 8 + len(bth), 0) + bth
    out += struct.pack("<IIII", 1, i, len(frame), len(frame)) + frame
sys.stdout.buffer.write(out)
END
ladder -o none.svg many.pcap && fail "too many addresses"
has "too many addresses" "$(cat err)" "a picture has room for 16 addresses, and the packets have more; choose some by --host or --qp"
ladder -o part.png many.pcap && fail "a ladder as PNG"
is "a ladder as PNG" "$(cat err)" "pumice: --output: the name 'part.png' ends with .png, but the picture is .svg or .html"
ladder --from 1 --to 9 -o part.svg many.pcap || fail "$(cat err)"
has "ICRCs" "$(text part.svg)" "Most ICRCs are wrong"
is "three hosts or more" "$(drawn part.svg)" "rows 9 lost 0 again 0 bands 0"

# 6. Selective acknowledgements between Pumice devices: four SENDs, a SACK that the second one is missing, and that one again.
python3 - >sack.pcap <<'END'
import struct, sys
A, B = bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])
out = struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1)

def put(i, src, dst, opcode, pad, qpn, psn, rest):
    global out
    bth = struct.pack(">BBHII", opcode, 0x40 | pad << 4, 0xffff, qpn, psn) + rest + bytes(pad + 4)
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 28 + len(bth), 0, 0, 64, 17, 0, src, dst)
    frame = bytes(12) + b"\x08\x00" + ip + struct.pack(">HHHH", 1, 4791, 8 + len(bth), 0) + bth
    out += struct.pack("<IIII", 1, i, len(frame), len(frame)) + frame

for i, psn in enumerate((5, 6, 7, 8)):
    put(i, A, B, 4, 0, 0x22, psn, bytes(8))
gap = struct.pack(">IIIIIHBHB", 0x11, 0x22, 6, 9, 0, 0, 0, 0, 1)
put(4, B, A, 0x64, 2, 2, 0, struct.pack(">II", 0x80504d43, 2) + b"PMCS" + bytes([2, 1, 0, 0]) + gap)
put(5, A, B, 4, 0, 0x22, 6, bytes(8))
sys.stdout.buffer.write(out)
END
ladder -o sack.svg sack.pcap || fail "$(cat err)"
is "a SACK" "$(drawn sack.svg)" "rows 6 lost 1 again 1 bands 0"
has "a SACK" "$(text sack.svg)" "SACK · PSN 6"
has "a SACK" "$(text sack.svg)" "1 missing in 1 gap"
has "after a SACK" "$(text sack.svg)" "retransmission of 2, after SACK 5"

# 7. In a browser: a click opens a band, and the switch shows the other view. The copy has no rule against scripts, and a script that clicks.
browser=$(command -v chromium || command -v google-chrome || command -v chromium-browser)
if [ -z "$browser" ]; then
    skip_part "a browser: no chromium"
else
    sed -e '/Content-Security-Policy/d' -e 's|</body>|<script>\n\
        const seen = q => document.querySelector(q).checkVisibility();\n\
        const said = [seen("details .row")];\n\
        document.querySelector("summary").click();\n\
        said.push(seen("details .row"), seen(".time-order"));\n\
        document.querySelector("label[for=all]").click();\n\
        said.push(seen(".time-order"), seen(".by-exchange"));\n\
        document.title = "seen " + said.join(" ");\n\
        </script></body>|' rendezvous.html >clicked.html
    HOME=$dir timeout 60 "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$dir/browser" --dump-dom "file://$dir/clicked.html" \
        2>err | grep -o '<title>seen[^<]*' >out
    is "clicks" "$(cat out)" "<title>seen false true false true false"
fi
exit $((failures > 0))
