#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# pumice plot: three charts for each queue pair that sends requests. Bytes, losses, retransmissions and round trips are those of the
# capture, also without the comments of Pumice. The files are well-formed and need nothing else.
. "$(dirname "$0")/../lib/common.bash"
need python3
gen=$BUILD/tests/e2e/capture/scene_gen
cd "$dir" || exit 1

plot() # OPTION... FILE
{
    "$pumice" plot "$@" >"$dir/out" 2>"$dir/err"
}

# shown FILE: its texts
shown()
{
    python3 "$lib/picture.py" "$1" >/dev/null || echo "$1 is not well-formed or needs something else"
    python3 "$lib/picture.py" --text "$1"
}

# dots FILE CLASS: number of points of a series, without its key in the legend
dots()
{
    sed -n "s/^<path class=\"$2\" d=\"M0 0\(.*\)\"\/>/\1/p" "$1" | grep -o 'h0' | wc -l
}

# 1. All scenes. A frame is 10 us after the one before it.
for scene in $("$gen" --list); do
    "$gen" "$scene" "$scene.pcapng"
    plot "$scene.pcapng" || fail "$scene: $(cat err)" # writes $scene.svg
    hasnt "$scene" "$(shown "$scene.svg")" "not well-formed"
done
text=$(shown rendezvous.svg)
has "title" "$text" "2 queue pairs in 70.0 µs."
has "queue pairs" "$text" "192.0.2.1 QP 0x000011 → 192.0.2.2 QP 0x000022"
has "bytes of a rendezvous request" "$text" "192.0.2.2 QP 0x000022 → 192.0.2.1 QP 0x000011 32 bytes"
has "bytes of a READ and of a FIN" "$text" "192.0.2.1 QP 0x000011 → 192.0.2.2 QP 0x000022 732 bytes"
has "round trips" "$text" "median 10.0 µs, largest 10.0 µs"
has "addresses" "$(shown ipv6.svg)" "2001:db8::1 QP 0x"
text=$(shown retransmission.svg)
has "retransmissions" "$text" "556 bytes, 3 retransmissions"
is "points" "$(dots retransmission.svg "dot sent") $(dots retransmission.svg "dot again") $(dots retransmission.svg "dot nak")" "3 3 2"

# 2. A faulty run: the bytes are those that the program sent. Without comments, NAKs and repeated PSNs say what was lost.
if have "a faulty run" ib_write_bw editcap tshark; then
    block=127.40.$(($$ % 250))
    # shellcheck disable=SC2016
    timeout 120 "$pumice" run --addresses "$block.1,$block.2" --fault loss=5% --seed 5 --capture lossy.pcapng --capture-lost -- sh -c '
        pumice on 0 -- ib_write_bw -s 20000 -n 100 </dev/null >"$0/server" 2>&1 &
        for i in 1 2 3 4 5 6 7 8; do # until the server listens
            sleep 0.3
            pumice on 1 -- ib_write_bw -s 20000 -n 100 "$1" </dev/null >"$0/client" 2>&1 && break
        done
        wait' "$dir" "$block.1" >out 2>&1 || fail "no faulty run: $(tail -3 client out)"
    shark() { HOME=$dir XDG_CONFIG_HOME=$dir tshark -r lossy.pcapng -Y "$1" 2>/dev/null | wc -l; }
    # Probes between the daemons belong to no queue pair. Their reports of what is missing belong to that of the requests.
    lost=$(shark 'frame.comment contains "fault: lost" && (!(infiniband.bth.destqp == 2) || frame.comment contains "SACK")') again=$(shark 'frame.comment contains "retransmission"')
    plot -o lossy.svg lossy.pcapng || fail "$(cat err)"
    has "a faulty run" "$(shown lossy.svg)" "ib_write_bw, 2,000,000 bytes, $lost lost, $again retransmissions"
    editcap -F pcap lossy.pcapng plain.pcap 2>/dev/null
    plot -o plain.svg plain.pcap || fail "$(cat err)"
    has "a faulty run" "$(shown lossy.svg)" "1 queue pair in"
    grep -qE "2,000,000 bytes, [1-9][0-9]* lost, $again retransmissions" <(shown plain.svg) || fail "without comments: $(shown plain.svg | grep bytes)"
fi

# 3. A part of the capture, and errors.
plot --count 1 -o part.svg rendezvous.pcapng || fail "$(cat err)"
is "one queue pair" "$(cat err)" "pumice: rendezvous.pcapng: the plot has 1 of 2 queue pairs, those that sent the most requests; choose others \
by --qp or --host, or more by --count"
has "one queue pair" "$(shown part.svg)" "These sent the most requests of 2."
plot --from 3 --to 6 -o part.svg rendezvous.pcapng && has "frames" "$(shown part.svg)" "1 queue pair in 30.0 µs."
plot --qp 99 -o none.svg rendezvous.pcapng && fail "another queue pair"
has "another queue pair" "$(cat err)" "none of its 8 RoCEv2 packets is chosen"
plot -o none.html rendezvous.pcapng && fail "a plot as HTML"
is "a plot as HTML" "$(cat err)" "pumice: --output: the name 'none.html' ends with .html, but the picture is .svg"
plot --count 65 rendezvous.pcapng && fail "--count 65"
plot -o none.svg "$here/plot.sh" && fail "no capture"
[ ! -e none.svg ] || fail "a plot of nothing"
head -c 1100 rendezvous.pcapng >half.pcapng
plot half.pcapng && fail "half a file: exit code 0"
has "half a file" "$(shown half.svg)" "The end of the file can't be read."
exit $((failures > 0))
