#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A thread of a device is stuck. The log and `pumice status` say so, the other devices go on, and the daemon ends within seconds. The test
# stops the thread by ptrace.
. "$(dirname "$0")/../lib/common.bash"
need python3 ibv_rc_pingpong
block=127.52.$(($$ % 256))
port=$((20000 + $$ % 10000))
library=$BUILD/lib/pumice/libibverbs.so.1
asan=$(ldd "$library" | awk '/libasan/ { print $3 }')

check() # WHAT COMMAND...
{
    local what=$1
    shift
    "$@" || fail "$what"
}

start() # OPTION...: the daemon's number in $daemon, when it is ready
{
    rm -f "$dir/ready"
    mkfifo "$dir/ready"
    metrics=$((30000 + $$ % 10000))
    "$BUILD/bin/pumiced" --metrics "$metrics" --socket "$dir/s" --device "one=$block.1" --device "two=$block.2" "$@" --ready-fd 3 3>"$dir/ready" 2>"$dir/log" &
    daemon=$!
    pids+=("$daemon")
    read -r -t 20 line <"$dir/ready"
    [ "$line" = ready ]
}

freeze() # NAME: stops the thread of device one. The number of the helper is in $helper
{
    mkfifo "$dir/thaw.$1"
    "$lib/freeze.py" "$daemon" one <"$dir/thaw.$1" >"$dir/frozen.$1" 2>&1 &
    helper=$!
    exec 4>"$dir/thaw.$1"
    local i
    for ((i = 0; i < 100; i++)); do
        grep -qs frozen "$dir/frozen.$1" && return 0
        kill -0 $helper 2>/dev/null || break
        sleep 0.05
    done
    wait $helper
    [ $? = 77 ] && skip "this user may not trace processes"
    cat "$dir/frozen.$1"
    return 1
}
thaw()
{
    exec 4>&-
    wait "$helper"
}
pingpong() # DEVICE NUMBER PORT: messages through one device
{
    local preload=${asan:+$asan:}$library
    env LD_PRELOAD="$preload" PUMICE_SOCKET="$dir/s" sh -c "ibv_rc_pingpong -d $1 -p $3 -g 0 -n $2 >/dev/null & s=\$!
        for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.2; ibv_rc_pingpong -d $1 -p $3 -g 0 -n $2 127.0.0.1 && wait \$s && exit; done
        kill \$s; exit 1" >/dev/null 2>&1
}
traffic() # messages through device one without an end; the number of their process group is in $group
{
    set -m
    pingpong one 20000000 $((port + $1)) &
    set +m
    group=$!
    sleep 1
}
end_traffic()
{
    kill -- "-$group" 2>/dev/null
    wait "$group" 2>/dev/null
}
logs() # TEXT: it comes within 6 seconds
{
    local i
    for ((i = 0; i < 120; i++)); do
        grep -q "$1" "$dir/log" && return
        sleep 0.05
    done
    cat "$dir/log"
    return 1
}
ends() # STATUS: the daemon ends with it within 20 seconds
{
    local i
    for ((i = 0; i < 200; i++)); do
        kill -0 "$daemon" 2>/dev/null || break
        sleep 0.1
    done
    kill -0 "$daemon" 2>/dev/null && return 1
    wait "$daemon"
    [ $? = "$1" ]
}

start || { fail "start"; exit 1; }
# While messages travel, the thread does not sleep for long. So the stop most likely comes in the middle of its work. In the middle of a
# copy it does not count: another thread goes on, and the session ends.
for try in 1 2 3 4 5; do
    traffic "$try"
    freeze "$try" || { fail "no thread was stopped"; break; }
    logs "thread one has been stuck" >/dev/null && break
    thaw
    end_traffic
done
check "the log names the thread, and the time" logs "thread one has been stuck for [0-9.]* s, in its loop"
# Every part of the status that does not need the thread is there, at once.
status=$(timeout 20 "$pumice" status --json --socket "$dir/s")
check "pumice status answers" test -n "$status"
is "it says which thread is stuck" "$(python3 -c 'import json, sys
s = json.loads(sys.argv[1])["hosts"][0]["status"]
print(*[t["name"] for t in s["threads"] if t["hangs"]], *[f"""{d["name"]}={d["answers"]}""" for d in s["devices"]])' "$status")" \
    "one one=False two=True"
has "so does its text" "$(timeout 20 "$pumice" status --socket "$dir/s")" "threads"
check "pumice why answers" timeout 20 "$pumice" why --all --socket "$dir/s" >/dev/null 2>&1
if have "metrics of a stuck device" curl; then
    has "metrics of the other device" "$(curl -sm 20 "http://127.0.0.1:$metrics/metrics")" 'pumice_port_up{device="two"} 1'
fi
check "another device goes on" pingpong two 100 $((port + 10))
thaw
check "the log says when it goes on" logs "thread one goes on"

# Without traffic the thread sleeps in its loop.
end_traffic
freeze end || fail "no thread was stopped before the end"
kill -TERM "$daemon"
check "the end of a daemon with a stuck thread: exit code 1" ends 1
check "the log says why" grep -q "could not end in an orderly way" "$dir/log"
thaw
check "the control socket is gone" test ! -e "$dir/s"
exit $((failures > 0))
