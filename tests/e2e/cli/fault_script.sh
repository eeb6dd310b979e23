#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Scripts of faults, by pumice run and by pumice fault: each kind of line in a lab of two hosts, errors with the place in the file,
# and the examples.
. "$(dirname "$0")/../lib/common.bash"
. "$(dirname "$0")/../lib/fault_pair.bash"

script() # LINES ARGUMENT...: sets `out`
{
    printf '%s\n' "$1" >"$dir/script"
    run_pair --script "$dir/script" "${@:2}" -n 200 -s 8192 -S 8192 -m 1024
}

# A WRITE of 8192 bytes is 8 packets, so host 1 sends 1600.
script "after 1000 packets of write host 1: drop 3" -o write
passes "after packets"
is "packets after 1000" "$(value host1.fault_dropped)" 3
is "the other host" "$(value host0.fault_packets)" 0
script "message 3 of write host 1: corrupt" -o write
passes "a message"
is "packets of a message" "$(value host1.fault_corrupted)" 8
script "at 0s host 0: refuse 5" -o send
passes refuse
is "refused messages" "$(value host0.fault_refused)" 5
script $'at 0s: drop\nat 100ms: nothing' -o write -t 14
passes "the latest line decides"
script $'after 100 packets of write host 1: link down for 200ms\nat 0s host 1: truncate 2 of write\nat 0s host 1: delay 3 of write by 1ms\nafter 50 packets of write host 1: duplicate 4' \
    -o write
passes "several lines"
is "doubled packets" "$(value host1.fault_duplicated)" 4
is "late packets" "$(value host1.fault_delayed)" 3
[ "$(value host1.fault_link_dropped)" -gt 0 ] || fail "the link did not go down: $out"
script "after 20 packets of write host 1: kill" -o write -T 5
has "kill" "$out" "host 1: the daemon was killed"
hasnt "kill" "$out" "host 0: the daemon was killed"

# The times begin with the command, also those of --fault, and a script goes before --fault.
out=$(echo 'at 0s: nothing' | timeout 60 "$pumice" run --hosts 2 --fault loss=100%,from=30s --script - -- sh -c 'pumice status --json' 2>&1)
has "both" "$out" '"fault": "loss=100%,from=30s"'
has "both" "$out" '"fault_script": "at 0s: nothing'

# --- at run time ---
out=$(timeout 60 "$pumice" run -- bash -c '
    echo "at 0s: link down for 3s" >"$dir/script"
    pumice fault --script "$dir/script"
    until pumice status --json | grep -q "\"link_fault\": true"; do sleep 0.02; done
    until pumice status --json | grep -q "\"port\": \"active\""; do sleep 0.02; done
    pumice fault off
    pumice status --json | grep fault_script' 2>&1)
has "off" "$out" '"fault_script": ""'

# --- errors ---
wrong() # LINES MESSAGE
{
    printf '%b\n' "$1" >"$dir/script"
    out=$("$pumice" run --script "$dir/script" true 2>&1)
    is "exit code of $1" $? 125
    is "$1" "$out" "pumice: $dir/script: $2"
}
wrong '# comment\n\n  at 2s: lnk down' "line 3, column 10: 'lnk': expected drop, duplicate, corrupt, truncate, mark, delay, refuse, link, kill, nothing, or a rule such as loss=5%"
wrong 'at 2s: loss=5' "line 1, column 13: loss: invalid value \"5\": expected a percentage from 0% to 100%, such as 1% or 0.05%"
wrong 'at 1s: drop\nat 2s host 1: kill' "line 2, column 12: there is no host 1: the lab has 1, and the first one is host 0"
out=$("$pumice" run --script "$dir/none" true 2>&1)
is "no such file" "$? $out" "125 pumice: $dir/none: No such file or directory"
printf 'at 1s: drop\0' >"$dir/script"
out=$("$pumice" run --script "$dir/script" true 2>&1)
has "not a text" "$out" "it has a byte that is 0"
{ printf '#%5000s\n' x; echo "at 1s: drop"; } >"$dir/script"
"$pumice" run --script "$dir/script" true || fail "a long comment is refused"
for _ in $(seq 300); do echo "at 1s: drop"; done >"$dir/script"
out=$("$pumice" run --script "$dir/script" true 2>&1)
has "too long" "$out" "the script is longer than 2943 characters, without comments"

for example in "$root"/examples/faults/*.faults; do
    "$pumice" run --hosts 2 --script "$example" true || fail "$example"
done

[ $failures -eq 0 ] && echo "ok"
exit $((failures > 0))
