#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Eight daemons, and one daemon with eight devices: sixteen hosts on this machine, with traffic between all pairs of them.
. "$(dirname "$0")/../lib/common.bash"
block=127.55.$(($$ % 250))

start() # NAME OPTION...: a daemon
{
    local name=$1
    shift
    mkfifo "$dir/ready$name"
    "$BUILD/bin/pumiced" --socket "$dir/$name.sock" "$@" --ready-fd 3 3>"$dir/ready$name" 2>"$dir/log$name" &
    pids+=($!)
    read -r -t 20 _ <"$dir/ready$name" || fail "daemon $name: $(cat "$dir/log$name")"
}
sockets=()
devices=()
for i in 1 2 3 4 5 6 7 8; do
    start "$i" --address "$block.$i"
    sockets+=("$dir/$i.sock")
    devices+=(--address "$block.$((10 + i))")
done
start many "${devices[@]}"
sockets+=("$dir/many.sock")
is "devices of one daemon" "$("$pumice" dev --socket "$dir/many.sock" | wc -l)" 8
library=$BUILD/lib/pumice/libibverbs.so.1
asan=$(ldd "$library" | awk '/libasan/ { print $3 }')
out=$(LD_PRELOAD="${asan:+$asan:}$library" timeout 120 "$BUILD/tests/e2e/daemon/mesh" "${sockets[@]}" 2>&1) || fail "exit code $?: $out"
is "all pairs" "$out" "16 devices: 240 sent, 240 received, 122880 bytes"
# Each device has carried its part. (A daemon counts what it has sent through its sockets.)
for s in "${sockets[@]}"; do
    "$pumice" status --json --socket "$s"
done | python3 -c '
import json, sys
text, decoder, n = sys.stdin.read(), json.JSONDecoder(), 0
while text.strip():
    document, end = decoder.raw_decode(text.lstrip())
    text = text.lstrip()[end:]
    for d in document["hosts"][0]["status"]["devices"]:
        n += d["counters"]["sends"] >= 15 and d["counters"]["recvs"] >= 15
sys.exit(n != 16)' || fail "a device has not carried its part"
exit $((failures > 0))
