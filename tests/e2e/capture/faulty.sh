#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Captures of faulty runs: the linter accepts them without an option, since their comments say what the faults did. Lost packets are
# captured on demand, at interfaces of their own. Without the comments, the linter finds violations.
. "$(dirname "$0")/../lib/common.bash"
block=127.38.$(($$ % 250)) # of loopback addresses, so that two runs at once don't meet
need tshark editcap ib_write_bw ib_read_bw

# run FAULTS NAME OPTION...: some programs between two hosts, captured
run()
{
    local faults=$1 file=$dir/$2.pcapng
    shift 2
    # shellcheck disable=SC2016
    timeout 120 "$pumice" run --addresses "$block.1,$block.2" --fault "$faults" --capture "$file" "$@" -- sh -c '
        for program in "ib_write_bw -s 10000 -n 200" "ib_read_bw -s 10000 -n 120"; do
            pumice on 0 -- $program </dev/null >"$0/server" 2>&1 &
            for i in 1 2 3 4 5 6 7 8; do # until the server listens
                sleep 0.3
                pumice on 1 -- $program "$1" </dev/null >"$0/client" 2>&1 && break
            done || echo "no success: $program: $(tail -n 2 "$0/client")"
            wait
        done' "$dir" "$block.1" >"$dir/out" 2>&1
    [ ! -s "$dir/out" ] || fail "$faults: $(head -5 "$dir/out")"
    "$pumice" lint --notes "$file" >"$dir/lint" || fail "$faults: $(grep ': error' "$dir/lint" | head -3; tail -2 "$dir/lint")"
}

count() # FILTER NAME
{
    tshark -r "$dir/$2.pcapng" -Y "$1" 2>/dev/null | wc -l
}

# without_comments NAME: prints the number of violations of the capture without its comments
without_comments()
{
    editcap -F pcap "$dir/$1.pcapng" "$dir/plain.pcap" 2>"$dir/editcap" || return
    "$pumice" lint "$dir/plain.pcap" | sed -n 's/.* \([0-9]*\) violations.*/\1/p' | head -1
}

run loss=3% loss
grep -q 'injected faults have lost [1-9]' "$dir/lint" || fail "no count of the lost packets: $(tail -2 "$dir/lint")"
[ "$(count 'frame.comment contains "fault: lost"' loss)" = 0 ] || fail "lost packets, which nobody asked for"

run loss=3% lost --capture-lost
lost=$(count 'frame.comment contains "fault: lost"' lost)
said=$(sed -n 's/.*faults have lost \([0-9]*\) packets.*/\1/p' "$dir/lint")
[ "$lost" -gt 5 ] && [ "$lost" = "$said" ] || fail "$lost lost packets in the capture, and its statistics say ${said:-nothing}"
[ "$(count 'frame.comment contains "fault: lost" && frame.interface_id >= 2' lost)" = "$lost" ] || fail "not at an interface of their own"
[ "$(count 'frame.interface_id >= 2' lost)" = "$lost" ] || fail "other packets at the interface of the lost ones"

out=$("$pumice" run --capture-lost true 2>&1)
is "--capture-lost without --capture" "$? $(head -n 1 <<<"$out")" "125 pumice run: --capture-lost needs --capture FILE"

run dup=4%,reorder=4%,corrupt=4%,ce=4% mixed
for what in "sent twice" late damaged "marked with CE"; do
    [ "$(count "frame.comment matches \"struck by a fault: .*$what\"" mixed)" -gt 0 ] || fail "no packet is '$what'"
done
[ "$(without_comments mixed)" -gt 0 ] || fail "damage without a comment is no violation: $(cat "$dir/editcap")"
exit $((failures > 0))
