#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What the command shows of connections by rdma_cm: pumice status, why --connections, and res show cm_id.
. "$(dirname "$0")/../lib/common.bash"
need rping python3
export block=127.54.$(($$ % 250))

cat >"$dir/check.py" <<'PY'
# In a lab with two hosts.
import json, os, subprocess, time

block = os.environ["block"]

def pumice(*words):
    p = subprocess.run(["pumice", *words], capture_output=True, text=True)
    assert p.returncode == 0, (words, p.returncode, p.stderr)
    return p.stdout

def cm(host, *words):
    return json.loads(pumice("status", "--json", "--host", str(host), *words))["hosts"][0]["status"].get("cm")

def why():
    return json.loads(pumice("why", "--connections", "--json"))["connections"]

def start(host, *words):
    return subprocess.Popen(["pumice", "on", str(host), "--", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

def until(what, get):
    end = time.monotonic() + 30
    while time.monotonic() < end:
        found = get()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"{what} does not come: {pumice('status', '--only', 'cm')}")

# Nobody has used it: the text does not show it, and the JSON has empty lists.
assert cm(0)["answers"] and cm(0)["ids"] == 0 and cm(0)["listeners"] == [], cm(0)
assert "listeners" not in pumice("status")
assert why() == []

# Nobody listens.
refused = start(0, "rping", "-c", "-a", block + ".2", "-p", "7999", "-C", "1")
refused.wait(30)
failure = until("the failure", lambda: cm(0)["failures"])[0]
assert failure["event"] == "REJECTED" and failure["reject"] == 8 and failure["remote"] == block + ".2:7999", failure
assert not failure["sent_reject"] and failure["space"] == "TCP" and failure["pid"] > 0, failure
answer = [a for a in why() if a["kind"] == "failure"][0]
assert answer["code"] == "rejected" and "host" in answer, answer
assert f"nobody listens on port 7999 of {block}.2" in answer["text"], answer
assert "nobody listens on port 7999" in pumice("why", "--connections")
assert cm(0)["counters"]["req_sent"] >= 1 and cm(0)["counters"]["rej_received"] == 1, cm(0)["counters"]
assert cm(1)["counters"]["rej_sent"] == 1 and cm(1)["failures"] == []

# A server and a client that is connected for a while.
server = start(1, "rping", "-s", "-P", "-a", block + ".2", "-p", "7471")
listener = until("the listener", lambda: cm(1)["listeners"])[0]
assert (listener["address"], listener["port"], listener["space"]) == (block + ".2", 7471, "TCP"), listener
assert listener["device"] and listener["comm"] == "rping" and listener["backlog"] > 0, listener
client = start(0, "rping", "-c", "-a", block + ".2", "-p", "7471", "-C", "100000000")
def connected(host):
    return [c for c in cm(host)["connections"] if c["state"] == "ESTABLISHED"]
one, two = until("the connection", lambda: connected(0))[0], until("the connection", lambda: connected(1))[0]
assert one["remote"] == two["local"] == block + ".2:7471" and two["remote"] == one["local"], (one, two)
assert one["qpn"] == two["dest_qpn"] and two["qpn"] == one["dest_qpn"] and one["type"] == "RC", (one, two)
assert cm(0)["states"]["ESTABLISHED"] == 1 and cm(1)["states"] == {"LISTEN": 1, "ESTABLISHED": 1}, cm(1)["states"]
text = pumice("status", "--host", "1")
assert "listeners" in text and block + ".2:7471" in text, text
only = cm(1, "--only", "listeners")
assert list(only) == ["listeners"] and len(only["listeners"]) == 1, only
assert cm(1, "--only", "qps") is None
assert cm(1, "--pid", "1")["connections"] == []
rows = json.loads(pumice("res", "show", "cm_id", "--host", "1", "--json"))
assert [(r["state"], r["ps"], r["src-addr"]) for r in rows] == [("LISTEN", "TCP", block + ".2:7471"), ("CONNECT", "TCP", block + ".2:7471")], rows
assert rows[1]["dst-addr"] == one["local"] and rows[1]["lqpn"] == two["qpn"], rows
kinds = {(a["host"], a["kind"], a["code"]) for a in why() if a["kind"] != "failure"}
assert kinds == {(0, "connection", "connected"), (1, "listener", "ready"), (1, "connection", "connected")}, kinds

# Nobody listens at this port, but there are others.
start(0, "rping", "-c", "-a", block + ".2", "-p", "7472", "-C", "1").wait(30)
until("another failure", lambda: len(cm(0)["failures"]) == 2)
assert "Listeners there: port 7471 (TCP, rping" in pumice("why", "--connections"), pumice("why", "--connections")

# There is no host.
lost = start(0, "rping", "-c", "-a", block + ".99", "-p", "7471", "-C", "1")
waiting = until("a retry", lambda: [c for c in cm(0)["connections"] if c["state"] == "REQ_SENT" and c["retries"] >= 1])[0]
answer = [a for a in why() if a.get("id") == waiting["id"] and a["kind"] == "connection" and a["host"] == 0][0]
assert answer["code"] == "req" and f"Is there a daemon or a RoCE NIC at {block}.99" in answer["text"], answer
qps = [q for q in json.loads(pumice("why", "--all", "--json"))["qps"] if any(r["code"] == "cm" for r in q["why"])]
assert len(qps) == (1 if waiting["qpn"] else 0), qps

# The end of the programs.
for p in (lost, client, server):
    p.terminate()
    p.wait(30)
until("the end", lambda: cm(0)["ids"] == cm(1)["ids"] == 0)
print("all right")
PY
out=$(timeout 120 "$pumice" run --addresses "$block.1,$block.2" -- python3 "$dir/check.py" 2>&1)
is "two hosts" "$out" "all right"

# The counters for Prometheus.
have "counters" curl || exit $((failures > 0))
port=$((20000 + $$ % 10000))
mkfifo "$dir/ready"
"$BUILD/bin/pumiced" --metrics $port --socket "$dir/s" --address "$block.3" --ready-fd 3 3>"$dir/ready" 2>"$dir/log" &
pids+=($!)
read -r -t 20 _ <"$dir/ready" || fail "the daemon does not start: $(cat "$dir/log")"
out=$(curl -s "http://127.0.0.1:$port/metrics" 2>&1)
has "counters" "$out" "pumice_cm_req_sent_total 0"
has "counters of QP 1" "$out" 'pumice_gsi_mads_sent_total{device="pumice0"} 0'
exit $((failures > 0))
