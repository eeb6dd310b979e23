#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Tests the path checks that daemons start when an address is first used: verdicts in log, status and map, and their effect on QPs.
# As root it also tests a router with a small MTU, in network namespaces.
. "$(dirname "$0")/../lib/common.bash"
. "$lib/scene.bash"
block=127.50.$(($$ % 256))
ns=pconn$$
also_clean() { no_router; }

verdict() # SOCKET GID [NAME]: what the daemon thinks of it
{
    "$pumice" status --json --socket "$dir/$1" | python3 -c 'import json, sys
found = [c for c in json.load(sys.stdin)["hosts"][0]["status"]["devices"][0]["connectivity"] if c["gid"] == "::ffff:" + sys.argv[1]]
print(found[0].get(sys.argv[2]) if found else "none")' "$2" "${3:-verdict}"
}
wait_for() # SOCKET GID VERDICT
{
    local got
    for _ in $(seq 150); do
        got=$(verdict "$1" "$2")
        [ "$got" = "$3" ] && return
        sleep 0.1
    done
    fail "$1: $2 is '$got', not '$3'"
}
map() # EXPRESSION of a line d: how many lines of the map
{
    python3 -c 'import json, sys
print(sum(1 for d in map(json.loads, open(sys.argv[1])) if eval(sys.argv[2])))' "$dir/map" "$1"
}

"$BUILD/bin/pumiced" --connectivity often --socket "$dir/no" --address $block.9 2>"$dir/err"
is "exit code of a wrong policy" $? 2
has "a wrong policy" "$(cat "$dir/err")" "off, warn or enforce"

start_daemon off $block.1 --log-level info
start_daemon peer $block.2
scene idle off peer || fail "the program: $qp $rest"
sleep 0.5
is "nobody asked for it" "$(verdict off $block.2)" none
end

start_daemon warn $block.3 --connectivity-map "$dir/map" --connectivity-tries 3 --log-level info
scene idle warn peer || fail "the program: $qp $rest"
wait_for warn $block.2 ok
end
has "log" "$(cat "$dir/warn.log")" "::ffff:$block.2 receives packets of path MTU 1024"
is "the map" "$(map "d['verdict'] == 'ok' and d['address'] == '$block.3' and d['peer'] == '$block.2' and d['size'] == 1024 and d['program'] == 'stuck' and d['pid'] > 0")" 1
"$pumice" status --socket "$dir/warn" | grep -q "connectivity" || fail "status does not show it"
scene idle warn peer && end
is "once is enough" "$(map 'True')" 1
is "not for itself" "$(verdict warn $block.3)" none
# Nothing comes back. The daemon reports this, and does nothing else.
"$pumice" fault --socket "$dir/warn" loss=100%
start_daemon alone $block.4
scene idle warn alone || fail "the program: $qp $rest"
wait_for warn $block.4 both_lost
has "log" "$(cat "$dir/warn.log")" "connectivity of ::ffff:$block.4, path MTU 1024, after 3 tries: neither small nor large packets are answered; is pumiced running there"
has "warned only" "$("$pumice" why --socket "$dir/warn" "$qp")" "is in RTS"
end
is "the map" "$(map "d['verdict'] == 'both_lost' and d['peer'] == '$block.4' and d['tries'] == 3")" 1
# It is better now, and asked again when it is used again.
"$pumice" fault --socket "$dir/warn" off
scene idle warn alone && wait_for warn $block.4 ok
end

# A policy that is enforced: the queue pair is given up, and the next one is not even connected; but then there is another check.
start_daemon strict $block.5 --connectivity enforce --connectivity-tries 2 --fault loss=100%
scene idle strict peer || fail "the program: $qp $rest"
wait_for strict $block.2 both_lost
sleep 0.3
out=$("$pumice" why --socket "$dir/strict" "$qp")
has "enforced" "$out" "is in ERR"
has "enforced" "$out" "The connectivity check of its peer ::ffff:$block.2 failed, so the daemon moved it to ERR"
end
"$pumice" fault --socket "$dir/strict" off
scene idle strict peer && fail "connected to an address that is not reached"
has "not connected" "$qp $rest" "not ok"
end
wait_for strict $block.2 ok
scene idle strict peer || fail "not connected, though it is reached now: $qp $rest"
end

# A router that forwards 900 bytes.
if router 10.78 900; then
    before=(ip netns exec ${ns}a)
    start_daemon a 10.78.1.1 --connectivity warn --connectivity-tries 3
    before=(ip netns exec ${ns}b)
    start_daemon b 10.78.2.1
    before=()
    scene idle a b || fail "the program: $qp $rest"
    wait_for a 10.78.2.1 large_lost
    has "a small MTU" "$(cat "$dir/a.log")" "packets as long as the path MTU makes them are not"
    is "what the router says" "$(verdict a 10.78.2.1 mtu)" 900
    end
else
    skip_part "a router with a small MTU: not root, or no network namespaces"
fi

[ $failures -eq 0 ] && echo "ok"
exit $((failures > 0))
