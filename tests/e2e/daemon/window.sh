#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Tests windows from one packet to 4096, without and with losses. The data is right. No sender has more unacknowledged packets than its
# window allows. A small window limits the sender.
. "$(dirname "$0")/../lib/common.bash"
endurance=$BUILD/tests/verbs/rdma_endurance
block=127.52.$(($$ % 256))
port=$((22000 + $$ % 20000))
library=$BUILD/lib/pumice/libibverbs.so.1
asan=$(ldd "$library" | awk '/libasan/ { print $3 }')

counter() # HOST NAME
{
    "$pumice" status --json --socket "$dir/h$1" | python3 -c 'import json, sys
print(json.load(sys.stdin)["hosts"][0]["status"]["devices"][0]["counters"][sys.argv[1]])' "$2"
}
# try WINDOW FAULTS
try()
{
    local window=$1 what="window $1, faults ${2:-none}" most
    for h in 1 2; do
        rm -f "$dir/ready"
        mkfifo "$dir/ready"
        "$BUILD/bin/pumiced" --socket "$dir/h$h" --address "$block.$h" --window "$window" ${2:+--fault "$2"} --ready-fd 3 3>"$dir/ready" 2>"$dir/log$h" &
        pids+=($!)
        read -r -t 20 _ <"$dir/ready" || { echo "the daemon does not start: $(cat "$dir/log$h")"; exit 1; }
    done
    port=$((port + 1))
    LD_PRELOAD=${asan:+$asan:}$library PUMICE_SOCKET=$dir/h1 timeout 120 "$endurance" -p $port >"$dir/server" 2>&1 &
    pids+=($!)
    sleep 0.3
    LD_PRELOAD=${asan:+$asan:}$library PUMICE_SOCKET=$dir/h2 timeout 120 "$endurance" -p $port -n 300 -s 0 -S 65536 -r "$window" 127.0.0.1 \
        >"$dir/client" 2>&1 || fail "$what: client: $(tail -n 3 "$dir/client")"
    wait "${pids[2]}" || fail "$what: server: $(tail -n 3 "$dir/server")"
    most=$(counter 2 max_sent_window)
    [ "$most" -ge 1 ] && [ "$most" -le "$window" ] || fail "$what: $most packets were unacknowledged"
    most=$(counter 1 max_rcvd_window)
    [ "$most" -le "$window" ] || fail "$what: the receiver saw a request $most packets ahead"
    [ "$window" -gt 16 ] || [ "$(counter 2 window_full)" -gt 0 ] || fail "$what: nothing ever waited for it"
    kill "${pids[0]}" "${pids[1]}"
    wait "${pids[0]}" "${pids[1]}" 2>/dev/null
    pids=()
}

for window in 1 2 7 16 128 4096; do
    try $window ""
done
for window in 1 16 4096; do
    try $window "loss=1%"
done
for wrong in 0 4194305 many; do
    "$BUILD/bin/pumiced" --window $wrong --socket "$dir/no" --address $block.9 2>"$dir/err"
    is "exit code of --window $wrong" $? 2
done

[ $failures -eq 0 ] && echo "ok"
exit $((failures > 0))
