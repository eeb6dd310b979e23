#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Users of one daemon: each sees its own objects only, and only the daemon's user and root may do what concerns all users.
. "$(dirname "$0")/../lib/common.bash"
need setpriv python3
[ "$(id -u)" = 0 ] || skip "other users: this is not root"
gid=$(getent group nogroup | cut -d: -f3)
[ -n "$gid" ] || skip "other users: no group nogroup"
stuck=$BUILD/tests/verbs/stuck
library=$BUILD/lib/pumice/libibverbs.so.1
alice=65531 bob=65532
address=127.76.$(($$ % 256)).1
port=$((32700 + $$ % 500))
as() # UID COMMAND...
{
    local uid=$1
    shift
    setpriv --reuid="$uid" --regid="$gid" --clear-groups --bounding-set=-all --inh-caps=-all "$@"
}
python=python3
as $alice $python -c "" 2>/dev/null || python=/usr/bin/python3 # one that others can run
as $alice $python -c "" && as $alice test -r "$library" && as $alice test -x "$stuck" || skip "other users: they can't read the build"
chmod 755 "$dir"

mkfifo "$dir/ready"
"$BUILD/bin/pumiced" --group nogroup --metrics $port --socket "$dir/s" --address "$address" --ready-fd 3 3>"$dir/ready" 2>"$dir/log" &
pids=($!)
read -r -t 20 _ <"$dir/ready" || { echo "the daemon does not start: $(cat "$dir/log")"; exit 1; }

asan=$(ldd "$library" | awk '/libasan/ { print $3 }')
coproc P { as $alice env LD_PRELOAD="${asan:+$asan:}$library" PUMICE_SOCKET="$dir/s" "$stuck" unpolled 2>"$dir/err"; }
read -r -t 20 qp _ <&"${P[0]}" || { echo "the program does not get there: $(cat "$dir/err" "$dir/log")"; exit 1; }
sleep 0.2

# --- what each user sees ---
lists() # UID: the lengths of the lists of objects, and whose objects the status shows
{
    as "$1" "$pumice" status --json --socket "$dir/s" | python3 -c '
import json, sys
status = json.load(sys.stdin)["hosts"][0]["status"]
device = status["devices"][0]
print([len(device[n]) for n in ("sessions", "qps", "cqs", "mrs")], "seed" in status, status["shows"])'
}
is "alice" "$(lists $alice)" "[1, 2, 4, 2] False only the objects of uid $alice"
is "bob" "$(lists $bob)" "[0, 0, 0, 0] False only the objects of uid $bob"
is "root" "$(lists 0)" "[1, 2, 4, 2] True the objects of all users"
out=$(as $bob "$pumice" status --all --socket "$dir/s")
hasnt "bob sees no number" "$out" "${qp#0x}"
hasnt "bob sees no program" "$out" " stuck"
has "alice's own" "$(as $alice "$pumice" why "$qp" --socket "$dir/s")" "of stuck"
out=$(as $bob "$pumice" why "$qp" --socket "$dir/s" 2>&1) && fail "bob gets an explanation: $out"
has "why" "$out" "only root and the daemon's user see those of others"
has "tm" "$(as $bob "$pumice" tm list --socket "$dir/s" 2>&1)" "no program has"
has "layout" "$(as $bob "$pumice" layout list --socket "$dir/s" 2>&1)" "no program has"

# Connections by rdma_cm: those of alice, who listens at a port and fails to reach another one.
rdma_cm() # UID: how many IDs listen, and how many failures there are
{
    as "$1" "$pumice" status --json --socket "$dir/s" | python3 -c '
import json, sys
cm = json.load(sys.stdin)["hosts"][0]["status"]["cm"]
print(cm["answers"], cm["ids"], cm["channels"], len(cm["listeners"]), len(cm["failures"]), cm["counters"]["rej_sent"])'
}
if have "connections by rdma_cm" rping; then
    as_client() { as "$1" env LD_PRELOAD="${asan:+$asan:}$library" PUMICE_SOCKET="$dir/s" "${@:2}"; }
    as_client $alice rping -s -P -a "$address" -p 7000 >/dev/null 2>&1 &
    pids+=($!)
    for ((i = 0; i < 100; i++)); do
        [[ $(rdma_cm $alice) == *" 1 1 1 0 "* ]] && break
        sleep 0.1
    done
    as_client $alice timeout 20 rping -c -a "$address" -p 7001 -C 1 >/dev/null 2>&1 && fail "rping connects to a port at which nobody listens"
    is "rdma_cm: alice" "$(rdma_cm $alice)" "True 1 1 1 1 1"
    is "rdma_cm: bob" "$(rdma_cm $bob)" "True 0 0 0 0 1"
    is "rdma_cm: root" "$(rdma_cm 0)" "True 1 1 1 1 1"
    has "why: alice" "$(as $alice "$pumice" why --connections --socket "$dir/s")" "nobody listens on port 7001"
    out=$(as $bob "$pumice" why --connections --socket "$dir/s" 2>&1)
    hasnt "why: bob" "$out" "port 700"
    has "why: bob" "$out" "only root and the daemon's user see those of others"
    has "res: alice" "$(as $alice "$pumice" res show cm_id --socket "$dir/s")" ":7000"
    is "res: bob" "$(as $bob "$pumice" res show cm_id --socket "$dir/s")" ""
    kill "${pids[-1]}"
    wait "${pids[-1]}" 2>/dev/null
    unset 'pids[-1]'
fi

metrics() # UID
{
    as "$1" $python -c '
import http.client, sys
c = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=10)
c.request("GET", "/metrics")
print(c.getresponse().read().decode())' "$port"
}
has "metrics: alice" "$(metrics $alice)" 'program="stuck"'
has "metrics: root" "$(metrics 0)" 'program="stuck"'
out=$(metrics $bob)
hasnt "metrics: bob" "$out" 'program='
has "metrics: the device is for everybody" "$out" 'pumice_sent_pkts_total{device="pumice0"} '

# --- what concerns all users ---
refused() # WHAT COMMAND...: for bob and for alice, with a text that says who may
{
    local what=$1 user
    shift
    for user in $alice $bob; do
        out=$(as $user timeout 10 "$@" 2>&1) && fail "$what: $user may: $out"
        has "$what" "$out" "only the daemon's user (uid 0) and root may"
        has "$what" "$out" "you are uid $user"
    done
}
refused "faults" "$pumice" fault loss=100% --socket "$dir/s"
refused "the end of faults" "$pumice" fault off --socket "$dir/s"
refused "capture" "$pumice" capture --socket "$dir/s" /dev/null
cat >"$dir/shutdown" <<'PY'
# Sends PM_OP_SHUTDOWN, and prints the explanation of the reply.
import re, socket, struct, sys
operations = re.findall(r"^    (PM_OP_\w+)", open(sys.argv[2]).read(), re.M)
op = 1 + operations.index("PM_OP_SHUTDOWN")
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.settimeout(10)
s.connect(sys.argv[1])
s.send(struct.pack("=II", op, 0))
reply = s.recv(4096)
print(reply[8:].rstrip(b"\0").decode())
sys.exit(struct.unpack("=i", reply[:4])[0] != 0)
PY
refused "the end of the daemon" $python "$dir/shutdown" "$dir/s" "$root/include/pumice/abi.h"
is "no faults" "$("$pumice" status --json --socket "$dir/s" | python3 -c 'import json, sys; print(json.load(sys.stdin)["hosts"][0]["status"]["fault"])')" ""
"$pumice" fault loss=1% --socket "$dir/s" || fail "root may not inject faults"
"$pumice" fault off --socket "$dir/s" || fail "root may not end faults"

exec {P[1]}>&-
exit $((failures > 0))
