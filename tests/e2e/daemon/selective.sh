#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Tests selective retransmission between daemons that lose packets: two that both have it on, and pairs in which one or both have it off. The
# data are right in all of them. Only the first pair sends SACKs, and sends less again. Its packets break no rule of the linter. Daemons without
# the option have it on, but ask nothing of each other while nothing is lost.
. "$(dirname "$0")/../lib/common.bash"
endurance=$BUILD/tests/verbs/rdma_endurance
block=127.57.$(($$ % 256))
port=$((21000 + $$ % 20000))
library=$BUILD/lib/pumice/libibverbs.so.1
asan=$(ldd "$library" | awk '/libasan/ { print $3 }')

counter() # HOST NAME
{
    "$pumice" status --json --socket "$dir/h$1" | python3 -c 'import json, sys
print(json.load(sys.stdin)["hosts"][0]["status"]["devices"][0]["counters"][sys.argv[1]])' "$2"
}

# run RECEIVER SENDER OPTION...: with the option --selective of each (default: without it), and others of both
run()
{
    local what="receiver $1, sender $2" h option=("" "--selective=$1" "--selective=$2") client=0 pair=$1$2
    shift 2
    for h in 1 2; do
        rm -f "$dir/ready"
        mkfifo "$dir/ready"
        "$BUILD/bin/pumiced" --socket "$dir/h$h" --address "$block.$h" ${option[$h]%--selective=default} "$@" --ready-fd 3 3>"$dir/ready" 2>"$dir/log$h" &
        pids+=($!)
        read -r -t 20 _ <"$dir/ready" || { echo "the daemon does not start: $(cat "$dir/log$h")"; exit 1; }
    done
    on=${option[1]#--selective=}
    "$pumice" status --json --socket "$dir/h1" | grep -q "\"selective\": \"${on/default/on}\"" || fail "$what: status does not show the option"
    if [ $pair = onon ]; then
        timeout 120 "$pumice" capture --socket "$dir/h2" "$dir/trace.pcapng" >/dev/null 2>"$dir/capture" &
        capture=$!
        sleep 0.3
    fi
    port=$((port + 1))
    LD_PRELOAD=${asan:+$asan:}$library PUMICE_SOCKET=$dir/h1 timeout 120 "$endurance" -p $port >"$dir/server" 2>&1 &
    pids+=($!)
    sleep 0.3
    LD_PRELOAD=${asan:+$asan:}$library PUMICE_SOCKET=$dir/h2 timeout 120 "$endurance" -p $port -n 400 -s 0 -S 65536 -r 5 127.0.0.1 \
        >"$dir/client" 2>&1 || client=$?
    [ $client -eq 0 ] || fail "$what: client: $(tail -n 3 "$dir/client")"
    wait "${pids[2]}" || fail "$what: server: $(tail -n 3 "$dir/server")"
    for h in 1 2; do
        kept[h]=$(counter $h reordered_requests) reports[h]=$(counter $h sacks_sent) naks[h]=$(counter $h send_seq_err)
        alone[h]=$(counter $h selective_retrans) missing[h]=$(counter $h out_of_seq_request) responses[h]=$(counter $h reordered_responses) answers[h]=$(counter $h flow_answers_sent)
    done
    if [ $pair = onon ]; then
        kill -INT $capture
        wait $capture
    fi
    kill "${pids[0]}" "${pids[1]}"
    wait "${pids[0]}" "${pids[1]}" 2>/dev/null
    pids=()
}

faults=(--fault loss=3%,reorder=2% --seed 3)
run on on "${faults[@]}"
total=$((kept[1] + kept[2])) kept_responses=$((responses[1] + responses[2]))
[ $total -gt 100 ] || fail "on, on: only $total requests were kept"
[ $((responses[1] + responses[2])) -gt 50 ] || fail "on, on: only $((responses[1] + responses[2])) responses were kept"
[ $((reports[1] + reports[2])) -gt 20 ] || fail "on, on: only $((reports[1] + reports[2])) SACKs"
[ $((alone[1] + alone[2])) -gt 20 ] || fail "on, on: only $((alone[1] + alone[2])) packets were sent again alone"
[ $((naks[1] + naks[2])) -lt $(((reports[1] + reports[2]) / 4)) ] || fail "on, on: $((naks[1] + naks[2])) NAKs beside $((reports[1] + reports[2])) SACKs"
"$pumice" lint --faulty --incomplete "$dir/trace.pcapng" >"$dir/out" 2>&1 || fail "on, on: lint: $(head -n 3 "$dir/out")"
"$pumice" lint --notes --faulty --incomplete "$dir/trace.pcapng" | grep -q '\[read-part' || fail "on, on: no READ asks for a part again"
grep -aqE 'SACK for QP 0x[0-9a-f]{6}: PSNs? .* missing before [0-9]+, newest [0-9]+' "$dir/trace.pcapng" ||
    fail "on, on: the capture has no comment on a SACK"
for pair in "on off" "off on" "off off"; do
    run $pair "${faults[@]}"
    [ $((kept[1] + kept[2] + reports[1] + reports[2] + alone[1] + alone[2] + responses[1] + responses[2])) -eq 0 ] || fail "$pair: SACKs, but one daemon does not know them"
    [ $((naks[1] + naks[2])) -gt 20 ] || fail "$pair: only $((naks[1] + naks[2])) NAKs"
done
run default default
[ $((missing[1] + missing[2])) -eq 0 ] || skip_part "nobody asks while nothing is lost: this machine lost packets"
[ $((missing[1] + missing[2])) -gt 0 ] || [ $((answers[1] + answers[2] + reports[1] + reports[2] + kept[1] + kept[2])) -eq 0 ] ||
    fail "nothing is lost: ${answers[*]} probes, ${reports[*]} SACKs, ${kept[*]} kept"

[ $failures -eq 0 ] && echo "$total requests and $kept_responses responses kept"
exit $((failures > 0))
