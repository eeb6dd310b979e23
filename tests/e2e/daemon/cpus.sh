#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Tests the choice of processors. The daemon stays on the processors of --cpus. A lab of several hosts can spread its daemons where
# processors are few. A program that shares its daemon's processor yields it, instead of polling until the scheduler preempts the program.
. "$(dirname "$0")/../lib/common.bash"
need taskset ps ibv_rc_pingpong
address=127.49.$(($$ % 256))
cpus() # PID: of the device's thread, once that has its name
{
    local t n
    for n in {1..100}; do
        for t in /proc/"$1"/task/*; do
            grep -q "^pumice0$" "$t/comm" && awk '/^Cpus_allowed_list/ { print $2 }' "$t/status" && return
        done
        sleep 0.1
    done
}
mapfile -t allowed < <(python3 -c 'import os; print(*sorted(os.sched_getaffinity(0)), sep="\n")')
first=${allowed[0]} last=${allowed[-1]}

for bad in "" x 0, 0-1 65536; do
    out=$("$BUILD/bin/pumiced" --cpus "$bad" --socket "$dir/no" --address "$address.9" 2>&1)
    is "--cpus '$bad'" $? 2
    has "--cpus '$bad'" "$out" "any, or numbers of processors"
done
out=$(timeout 10 "$BUILD/bin/pumiced" --cpus 1023 --socket "$dir/no" --address "$address.9" 2>&1)
is "a processor that is not there" $? 2
has "a processor that is not there" "$out" "may not use processor 1023"

mkfifo "$dir/ready"
"$BUILD/bin/pumiced" --cpus "$last" --socket "$dir/s" --address "$address.1" --ready-fd 3 3>"$dir/ready" 2>"$dir/log" &
pids+=($!)
read -r -t 20 _ <"$dir/ready" || { echo "the daemon does not start: $(cat "$dir/log")"; exit 1; }
is "the daemon keeps to it" "$(cpus "${pids[0]}")" "$last"

export PUMICE_SOCKET=$dir/s
preload=$("$pumice" env | sed -n "s/^export LD_PRELOAD=//p" | tr -d "'\"")
port=$((20000 + $$ % 10000))
pingpong() { LD_PRELOAD=$preload taskset -c "$last" ibv_rc_pingpong -g 0 -p $port -s 4000000 -n 200 "$@" >"$dir/out$#" 2>&1; }
pingpong &
await_listener $port
pingpong 127.0.0.1 || fail "ping-pong on the daemon's processor: $(cat "$dir/out1")"
wait $! || fail "its server: $(cat "$dir/out0")"
wakes=$("$pumice" status --json | python3 -c 'import json, sys
def walk(n):
    return sum(v if k == "wakes" else walk(v) for k, v in n.items()) if isinstance(n, dict) else sum(map(walk, n)) if isinstance(n, list) else 0
print(walk(json.load(sys.stdin)))')
[ "$wakes" -ge 20 ] || fail "programs on the daemon's processor were woken $wakes times"
unset PUMICE_SOCKET

places() { for p in $(pgrep -f "pumiced.*=$address"); do cpus "$p"; done | sort -u | wc -l; }
export -f cpus places
export address
hosts=$((${#allowed[@]} / 2 + 1)) # one more than there are two processors for
if [ "$hosts" -gt 1 ] && [ "$hosts" -le 16 ]; then
    list=$(seq -s, -f "$address.%g" 11 $((10 + hosts)))
    is "every daemon of a lab on its own" "$("$pumice" run --cpus spread --addresses "$list" -- bash -c places)" "$hosts"
    is "or on any" "$("$pumice" run --addresses "$list" -- bash -c places)" 1
else
    skip_part "a lab that is spread over processors: ${#allowed[@]} processors, needed are 2 to 31"
fi
is "a lab of one host is not spread" "$("$pumice" run --cpus spread --addresses "$address.11" -- bash -c 'for p in $(pgrep -f "pumiced.*=$address.11"); do cpus $p; done')" \
    "$(awk '/^Cpus_allowed_list/ { print $2 }' /proc/self/status)"
out=$("$pumice" run --cpus "$first" true 2>&1)
is "a lab's --cpus takes no numbers" $? 125
has "a lab's --cpus takes no numbers" "$out" "expected any or spread"

# Yields work within a session only (autogroup); what a terminal sends is for process groups.
out=$("$pumice" run --addresses "$address.11" -- bash -c 'for p in $(pgrep -f "pumiced.*=$address.11"); do ps -o sid=,pgid= $p; done; ps -o sid=,pgid= $$')
read -r sid pgid own_sid own_pgid <<<"$(echo $out)"
is "the daemons of a lab are in its session" "$sid" "$own_sid"
[ "$pgid" != "$own_pgid" ] || fail "they are in its process group, too"
exit $((failures > 0))
