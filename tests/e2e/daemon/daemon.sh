#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Tests pumiced as a process: its messages when it can't start, its exit codes, what it leaves behind, and that it uses no CPU when idle.
# alone: it counts the CPU time of an idle daemon
set -u
BUILD=${BUILD:-build}
daemon=$BUILD/bin/pumiced
dir=$(mktemp -d)
pids=()
failed=0
block=127.31.$(($$ % 250)) # of loopback addresses, so that two runs at once do not meet
finish()
{
    [ ${#pids[@]} -gt 0 ] && kill "${pids[@]}" 2>/dev/null
    rm -rf "$dir"
}
trap finish EXIT

# check WHAT CONDITION...
check()
{
    local what=$1
    shift
    if "$@"; then
        echo "ok      $what"
    else
        echo "FAILED  $what"
        [ -s "$dir/err" ] && sed 's/^/        /' "$dir/err"
        failed=1
    fi
}

# says CODE TEXT OPTIONS...: the daemon must not start, but exit with CODE and say TEXT
says()
{
    local code=$1 text=$2 status
    shift 2
    timeout 10 "$daemon" "$@" >"$dir/out" 2>"$dir/err"
    status=$?
    [ $status -eq "$code" ] || { echo "        exit code $status"; return 1; }
    grep -qF -- "$text" "$dir/err"
}

# start SOCKET ADDRESS OPTIONS...: the daemon's number in $pid, when it is ready
start()
{
    local socket=$1 address=$2
    shift 2
    mkfifo "$dir/ready"
    "$daemon" --socket "$socket" --address "$address" --ready-fd 3 "$@" 3>"$dir/ready" 2>"$dir/err" &
    pid=$!
    pids+=($pid)
    read -r -t 10 line <"$dir/ready"
    rm "$dir/ready"
    [ "$line" = ready ]
}

is_gone() { [ ! -e "$1" ]; }
exits() { wait "$1"; [ $? -eq "$2" ]; }
mode_is() { [ "$(stat -c %a "$1")" = "$2" ]; }
# Nanoseconds that all threads of a process have run, and how often one of them got a processor. (The ticks of /proc/PID/stat are
# samples, and one may meet a short wakeup.)
cpu_use() { awk '{ ns += $1; turns += $3 } END { printf "%d %d\n", ns, turns }' "/proc/$1"/task/*/schedstat; }
wakes_rarely() # PID LIMIT: its wakeups in 2 s
{
    local ns turns now_ns now_turns
    read -r ns turns < <(cpu_use "$1")
    sleep 2
    read -r now_ns now_turns < <(cpu_use "$1")
    echo "        $(((now_ns - ns) / 1000)) us of CPU time and $((now_turns - turns)) wakeups in 2 s"
    [ $((now_ns - ns)) -lt 10000000 ] && [ $((now_turns - turns)) -le "$2" ]
}
sleeps()
{
    sleep 1.3 # the thread that watches calls looks around for a second after the last one
    wakes_rarely "$1" 8 || return
    # The watchdog looks once a second, and rests when nothing has happened between two looks. On a busy machine it may be late.
    wakes_rarely "$1" 0 || wakes_rarely "$1" 0 || wakes_rarely "$1" 0 || return
    wakes_rarely "$1" 0 # once it rests, it stays at rest
}

check "wrong option" says 2 "unrecognized option" --nonsense
check "wrong value names what is right" says 2 "auto, on or off" --gso maybe
check "wrong fault" says 2 "loss" --fault loss=nonsense
check "an argument that is none" says 2 "options only" something
printf 'gso = on\n\nmtu = 77\n' >"$dir/bad.conf"
check "wrong line of the configuration" says 2 "bad.conf:3: mtu" --config "$dir/bad.conf"
check "no configuration" says 2 "none.conf" --config "$dir/none.conf"
check "an address that is not ours" says 3 "not an address of this host" --socket "$dir/s" --address 203.0.113.7
check "no directory for the socket" says 4 "--socket" --socket "$dir/none/s" --address $block.1
touch "$dir/file"
check "a file in the socket's place" says 4 "not a socket" --socket "$dir/file" --address $block.1
check "the file is still there" test -f "$dir/file"
check "no such group" says 4 "unknown group" --socket "$dir/s" --address $block.1 --group nosuchgroup
check "--version" grep -q "^pumiced [0-9]" <("$daemon" --version)

check "start" start "$dir/s" $block.1
first=$pid
check "the socket is ours alone" mode_is "$dir/s" 600
check "a second one on the same address" says 3 "UDP port 4791 of $block.1 is in use" --socket "$dir/t" --address $block.1
check "a second one at the same socket" says 4 "another pumiced listens there" --socket "$dir/s" --address $block.2
check "no processor time while idle" sleeps "$first"
kill -KILL "$first"
wait "$first" 2>/dev/null
check "a killed one leaves its socket" test -S "$dir/s"
check "which the next one replaces" start "$dir/s" $block.1
kill -TERM "$pid"
check "SIGTERM: exit code 0" exits "$pid" 0
check "and no socket" is_gone "$dir/s"

six="device lo6 { address = \"::1\" }"
grep -q lo /proc/net/if_inet6 2>/dev/null || six="device lo6 { address = $block.6 }" # no IPv6 here
printf 'socket = "%s"\ndevice eth { address = %s.1 }\n%s\nlog-level = info\n' "$dir/c" "$block" "$six" >"$dir/good.conf"
mkfifo "$dir/ready"
"$daemon" --config "$dir/good.conf" --ready-fd 3 3>"$dir/ready" 2>"$dir/err" &
pid=$!
pids+=($pid)
read -r -t 10 line <"$dir/ready"
check "two devices by configuration" test "$line" = ready
check "the log names them" grep -qE "device lo6: (::1|$block.6) on lo" "$dir/err"
"$daemon" --socket "$dir/hup" --address $block.9 2>/dev/null &
hup=$!
pids+=($hup)
for ((i = 0; i < 100; i++)); do
    [ -S "$dir/hup" ] && break
    sleep 0.05
done
kill -HUP $hup
wait $hup 2>/dev/null
check "SIGHUP without a configuration ends it" test $? = 129
rm -f "$dir/hup"
# Reload: settings that can change do, the log names those that can't, and a wrong file changes nothing.
logs() # TEXT: it comes
{
    local i
    for ((i = 0; i < 100; i++)); do
        grep -q "$1" "$dir/err" && return
        sleep 0.05
    done
    return 1
}
status() { "$BUILD/bin/pumice" status --json --socket "$dir/c"; }
printf 'fault = "dup=3%%"\nack-delay-us = 7\nmin-timeout-us = 2000\n' >>"$dir/good.conf"
kill -HUP "$pid"
check "SIGHUP: it reads the configuration again" logs "configuration read again"
check "faults have changed" grep -q '"fault": "dup=3%"' <(status)
check "the delay of ACKs has changed" grep -q '"ack_delay_us": 7,' <(status)
check "the shortest timeout has changed" grep -q '"min_timeout_us": 2000,' <(status)
check "nothing waits for a restart" test "$(grep -c 'before a restart' "$dir/err")" = 0
"$BUILD/bin/pumice" fault --socket "$dir/c" dup=4%
printf 'mtu = 1024\nlog-format = json\n' >>"$dir/good.conf"
kill -HUP "$pid"
check "SIGHUP: what waits for a restart" logs "can't change before a restart"
check "the log is JSON now" grep -q '^{.*read again; some of it waits' "$dir/err"
check "faults that were set meanwhile stay" grep -q '"fault": "dup=4%"' <(status)
printf 'mtu = many\nlog-level = error\n' >>"$dir/good.conf"
kill -HUP "$pid"
check "SIGHUP: nonsense" logs "good.conf:[0-9]*: mtu"
check "nonsense changes nothing" grep -q '"fault": "dup=4%"' <(status)
kill -INT "$pid"
check "SIGINT: exit code 0" exits "$pid" 0

# The environment: it overrides the file, and the command line overrides both.
in_environment() # NAME=VALUE... -- OPTION...: a daemon with these
{
    local names=()
    while [ "$1" != -- ]; do
        names+=("$1")
        shift
    done
    shift
    rm -f "$dir/ready"
    mkfifo "$dir/ready"
    env "${names[@]}" "$daemon" "$@" --ready-fd 3 3>"$dir/ready" 2>"$dir/err" &
    pid=$!
    pids+=($pid)
    read -r -t 10 line <"$dir/ready"
}
printf 'socket = "%s"\ndevice eth { address = %s.1 }\nseed = 1\nwindow = 9\n' "$dir/c" "$block" >"$dir/good.conf"
in_environment "PUMICED_CONFIG=$dir/good.conf" "PUMICED_ADDRESS=$block.2 $block.3" PUMICED_WINDOW=77 PUMICED_SEED=2 PUMICED_OPTIONS=ignored -- --seed 3
check "a daemon by its environment" test "$line" = ready
check "the environment's window" grep -q '"window_pkts": 77,' <(status)
check "the command line's seed" grep -q '"seed": "\{0,1\}3' <(status)
addresses() { status | python3 -c 'import json, sys; print(*[d["address"] for d in json.load(sys.stdin)["hosts"][0]["status"]["devices"]])'; }
check "the environment's devices, not the file's" test "$(addresses)" = "$block.2 $block.3"
kill -INT "$pid"
check "it ends in order" exits "$pid" 0
PUMICED_WINDOWS=77 check "a variable without an option" says 2 "PUMICED_WINDOWS, but pumiced has no such option" --socket "$dir/c" --address $block.2
PUMICED_WINDOW=0 check "a wrong value" says 2 'PUMICED_WINDOW: window: invalid value "0"' --socket "$dir/c" --address $block.2
exit $failed
