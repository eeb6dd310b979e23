#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Faults for messages of connection management. Each message of a connection is lost once: the two ends repeat it, and
# pumice status counts the fault.
. "$(dirname "$0")/../lib/common.bash"
need rping python3
block=127.58.$(($$ % 250))

cat >"$dir/check.py" <<'PY'
# In a lab with two hosts, whose rule drops the first message of this name.
import json, subprocess, sys, time

message, server_address = sys.argv[1:]
SERVER, CLIENT = 0, 1
SENDER = {"REQ": CLIENT, "REP": SERVER, "RTU": CLIENT, "DREQ": CLIENT, "DREP": SERVER}[message]

def status(host):
    p = subprocess.run(["pumice", "status", "--json", "--host", str(host)], capture_output=True, text=True, check=True)
    return json.loads(p.stdout)["hosts"][0]["status"]

def count(host, what):
    s = status(host)
    return s["cm"]["counters"][what] if what in s["cm"]["counters"] else s["devices"][0]["counters"][what]

def until(what, get):
    end = time.monotonic() + 60
    while not get():
        assert time.monotonic() < end, f"{what} does not come: {[status(h)['cm']['counters'] for h in (SERVER, CLIENT)]}"
        time.sleep(0.05)

def rping(host, *words):
    return subprocess.Popen(["pumice", "on", str(host), "--", "rping", *words, "-a", server_address, "-C", "3"],
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

server = rping(SERVER, "-s")
until("the listener", lambda: status(SERVER)["cm"]["listeners"])
client = rping(CLIENT, "-c")
for name, p in (("client", client), ("server", server)): # the server ends when it is disconnected
    said = p.communicate(timeout=60)[0]
    assert p.returncode == 0, f"the {name} ends with {p.returncode}: {said}"
until("the DREP", lambda: count(CLIENT, "drep_received") >= 1)
dropped = [count(h, "fault_dropped") for h in (SERVER, CLIENT)]
assert dropped[SENDER] == 1 and sum(dropped) == 1, dropped
name = message.lower()
sent, received = count(SENDER, name + "_sent"), count(1 - SENDER, name + "_received")
assert sent >= 2 and received >= 1, (sent, received)
assert count(SERVER, "established") == count(CLIENT, "established") == 1
print("all right")
PY

for message in REQ REP RTU DREQ DREP; do
    timeout 180 "$pumice" run --addresses "$block.1,$block.2" --fault "drop=$message#1" -- python3 "$dir/check.py" $message "$block.1" \
        >"$dir/$message" 2>&1
    is "$message lost" "$(cat "$dir/$message")" "all right"
done

# At run time, and what is not accepted.
out=$(timeout 60 "$pumice" run -- sh -c 'pumice fault "only=REQ#2,dup=100%;drop=cm" && pumice status --json' 2>&1)
has "set at run time" "$out" '"fault": "only=REQ#2,dup=100%;drop=cm"'
out=$(timeout 60 "$pumice" run -- pumice fault drop=REPLY 2>&1)
has "not a message" "$out" 'drop: invalid value "REPLY": expected a class of packets, such as request'
exit $((failures > 0))
