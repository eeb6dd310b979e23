#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Tests pumice top, and the daemon's metrics for Prometheus.
. "$(dirname "$0")/../lib/common.bash"
stuck=$BUILD/tests/verbs/stuck
address=127.49.$(($$ % 256)).1
port=$((32100 + $$ % 500))
pid=
also_clean() { [ -z "$pid" ] || { kill "$pid" 2>/dev/null; wait "$pid"; }; }

get() # METHOD PATH
{
    python3 - "$port" "$1" "$2" <<'PY'
import http.client, sys
c = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=10)
c.request(sys.argv[2], sys.argv[3])
r = c.getresponse()
print(r.status, r.getheader("Content-Type"))
print(r.read().decode())
PY
}

"$BUILD/bin/pumiced" --metrics 0.0.0.0:9400 --socket "$dir/no" --address "$address" 2>"$dir/err"
[ $? -eq 2 ] || fail "an address for everybody is taken"
has "an address for everybody" "$(cat "$dir/err")" "loopback"
mkfifo "$dir/ready"
"$BUILD/bin/pumiced" --metrics $port --socket "$dir/s" --address "$address" --ready-fd 3 3>"$dir/ready" 2>"$dir/log" &
pid=$!
read -r -t 20 _ <"$dir/ready" || { echo "the daemon does not start: $(cat "$dir/log")"; exit 1; }

library=$BUILD/lib/pumice/libibverbs.so.1
asan=$(ldd "$library" | awk '/libasan/ { print $3 }')
coproc P { LD_PRELOAD=${asan:+$asan:}$library PUMICE_SOCKET=$dir/s exec "$stuck" unpolled 2>"$dir/err"; }
program=$P_PID
read -r -t 20 qp _ <&"${P[0]}" || fail "the program does not get there: $(cat "$dir/err")"
sleep 0.2

out=$(get GET /metrics)
has "status" "$out" "200 text/plain; version=0.0.4"
has "a device" "$out" 'pumice_sent_pkts_total{device="pumice0"} '
has "a queue pair" "$out" "pumice_qp_writes_total{device=\"pumice0\",qpn=\"$qp\",type=\"RC\",program=\"stuck\"} 5"
has "a gauge" "$out" 'pumice_qps{device="pumice0"} 2'
has "help" "$out" "# HELP pumice_duplicate_request_total requests with a PSN seen before"
# Each metric once, its lines together, and nothing that is no metric.
python3 - <<PY || fail "the text is not as Prometheus wants it"
import re, sys
text = """$(sed -n '2,$p' <<<"$out" | sed 's/\\/\\\\/g')"""
seen, current = set(), None
for line in text.strip().splitlines():
    if line.startswith("# TYPE "):
        current = line.split()[2]
        assert current not in seen, current
        seen.add(current)
        assert line.split()[3] in ("counter", "gauge")
    elif not line.startswith("# HELP "):
        m = re.fullmatch(r'([a-z_0-9]+)(\{([a-z]+="[^"]*",?)+\})? \d+', line)
        assert m and m.group(1) == current, line
assert len(seen) > 50
PY
has "connection management" "$out" "pumice_cm_req_sent_total 0"
has "another path" "$(get GET /)" "404"
has "another method" "$(get POST /metrics)" "405"
has "another time" "$(get GET /metrics)" "200"

out=$("$pumice" top --socket "$dir/s" -b -n 2 -d 0.2)
[ "$(grep -c "^pumice top" <<<"$out")" = 2 ] || fail "two tables: $out"
has "top: the device" "$out" "pumice0"
has "top: the queue pair" "$out" "$qp RC"
has "top: what it waits for" "$out" "idle"
has "top: no rate at first" "$(sed -n 3p <<<"$out")" " - "
[[ $out != *$'\033'* ]] || fail "codes for terminals in a batch"
has "status: a bad interval" "$("$pumice" status --interval 0 2>&1)" "expected a number of seconds"
out=$("$pumice" status --socket "$dir/s" --interval 0.1 -n 1)
[[ $out != *sent_pkts* ]] || fail "a counter that did not grow: $out"
has "top: a bad delay" "$("$pumice" top -d 0 2>&1)" "expected seconds from 0.05 to 3600"
eval "exec ${P[1]}>&-"
wait "$program"

# An XRC target is no program's, and its row has a column for that all the same.
coproc P { LD_PRELOAD=${asan:+$asan:}$library PUMICE_SOCKET=$dir/s exec "$stuck" xrc 2>"$dir/err"; }
program=$P_PID
read -r -t 20 _ qp _ <&"${P[0]}" || fail "the XRC program does not get there: $(cat "$dir/err")"
out=$("$pumice" top --socket "$dir/s" -n 1)
is "top: an XRC target" "$(awk -v qp="$qp" '$2 == qp { print NF, $3, $10 }' <<<"$out")" "11 XRC_RECV -"
eval "exec ${P[1]}>&-"
wait "$program"

# Connections by rdma_cm.
hasnt "top: no program connects" "$("$pumice" top --socket "$dir/s" -n 1)" "rdma_cm"
if command -v rping >/dev/null; then
    LD_PRELOAD=${asan:+$asan:}$library PUMICE_SOCKET=$dir/s rping -s -p $((port + 501)) >"$dir/rping" 2>&1 &
    listener=$!
    for _ in $(seq 100); do
        "$pumice" top --socket "$dir/s" -n 1 >"$dir/top"
        grep -q "listeners 1" "$dir/top" && break
        sleep 0.1
    done
    has "top: a listener" "$(grep rdma_cm "$dir/top")" "established 0, other IDs 0, listeners 1"
    LD_PRELOAD=${asan:+$asan:}$library PUMICE_SOCKET=$dir/s timeout 60 rping -c -a "$address" -p $((port + 501)) -C 1 >"$dir/rping2" 2>&1
    is "top: the connection" $? 0
    timeout 20 tail --pid=$listener -f /dev/null || kill "$listener"
    wait "$listener"
    is "top: the listener" $? 0
    out=$("$pumice" top --socket "$dir/s" -n 2 -d 0.2)
    is "top: rates of connections" "$(grep -c "rdma_cm .* 0 .*listeners 0" <<<"$out")" 1
else
    skip_part "connections in top: no rping"
fi

# Rates while something is sent.
bw() # [ADDRESS]
{
    LD_PRELOAD=${asan:+$asan:}$library PUMICE_SOCKET=$dir/s exec ib_write_bw -F -x 0 -s 4096 -D 60 -p $((port + 500)) "$@"
}
sends() # whether one of these programs sends
{
    "$pumice" status --json --socket "$dir/s" | python3 -c '
import json, sys
qps = json.load(sys.stdin)["hosts"][0]["status"]["devices"][0]["qps"]
sys.exit(not any(q["comm"] == "ib_write_bw" and q["counters"].get("sent_pkts", 0) > 1000 for q in qps))'
}
bw >"$dir/bw1" 2>&1 &
server=$!
await_listener $((port + 500))
bw 127.0.0.1 >"$dir/bw2" 2>&1 &
client=$!
for _ in $(seq 200); do
    sends && break
    sleep 0.1
done
sends || fail "nothing is sent: $(cat "$dir/bw1" "$dir/bw2")"
"$pumice" top --socket "$dir/s" -n 2 -d 0.5 >"$dir/top"
"$pumice" status --socket "$dir/s" --interval 0.3 --number 2 >"$dir/grown"
[ "$(grep -c '^---' "$dir/grown")" = 2 ] || fail "two intervals: $(cat "$dir/grown")"
"$pumice" status --socket "$dir/s" --interval 0.3 --number 3 --json >"$dir/grown.json"
python3 - "$dir/grown.json" <<'PY' || fail "intervals: $(head -c 2000 "$dir/grown.json")"
import json, sys
rows = [json.loads(l) for l in open(sys.argv[1])]
assert len(rows) == 3 and all(0.25 < r["seconds"] < 5 for r in rows), rows
for r in rows:
    d = r["hosts"][0]["devices"][0]
    busy = [q for q in d["qps"] if q.get("comm") == "ib_write_bw"]
    assert d["device"] == "pumice0" and busy and all(v > 0 for q in d["qps"] for v in q["counters"].values())
    # In an interval one queue pair sends no more than its device. This is not the total that the queue pair has sent.
    assert busy[0]["counters"]["sent_pkts"] <= d["counters"]["sent_pkts"]
PY
python3 - "$dir/top" <<'PY' || fail "top shows no rates: $(cat "$dir/top")"
import sys
rows = [l.split() for l in open(sys.argv[1]) if "ib_write_bw" in l]
assert rows and max(float(r[6]) for r in rows[2:] if r[6] != "-") > 1, rows  # tx MB/s
PY
kill "$server" "$client"
wait "$server" "$client" 2>/dev/null
kill "$pid"
wait "$pid"
[ $? -eq 0 ] || fail "the daemon's exit code"
pid=
"$pumice" top --socket "$dir/s" >/dev/null 2>&1 && fail "top without a daemon: exit code"
[ $failures -eq 0 ] && echo "ok"
exit $((failures > 0))
