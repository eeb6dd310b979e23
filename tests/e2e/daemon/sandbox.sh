#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A running daemon is in its sandbox, with all threads and without privileges, and everything goes on in it: traffic by
# both ways to memory, metrics, captures, the configuration that it reads again, the end. (connectivity.sh tests the map.)
# tests/unit/daemon/test_sandbox.c tries what is forbidden.
. "$(dirname "$0")/../lib/common.bash"
address=127.53.$(($$ % 256)).1
port=$((23000 + $$ % 20000))
library=$BUILD/lib/pumice/libibverbs.so.1
asan=$(ldd "$library" | awk '/libasan/ { print $3 }')
[ "$(awk '/^Seccomp:/ { print $2 }' /proc/self/status)" ] || skip "this kernel has no seccomp"
chmod 755 "$dir"

# With this library, each thread of the daemon tries files when it is told to.
try_files=$BUILD/tests/e2e/daemon/libthread_files.so
start() # LAUNCHER... -- OPTION...
{
    local before=()
    while [ "$1" != -- ]; do
        before+=("$1")
        shift
    done
    shift
    rm -rf "$dir/ready" "$dir/run"
    mkfifo "$dir/ready"
    mkdir -m 777 "$dir/run"
    LD_PRELOAD=$preload THREAD_FILES=$dir/files THREAD_FILES_NEW=$dir/new \
        "${before[@]}" "$BUILD/bin/pumiced" --socket "$dir/run/s" --address "$address" --ready-fd 3 "$@" 3>"$dir/ready" 2>"$dir/log" &
    pid=$!
    pids=("$pid")
    read -r -t 20 _ <"$dir/ready" || { echo "the daemon does not start: $(cat "$dir/log")"; exit 1; }
    sleep 0.2 # the last thread enters the sandbox
}
stop() # the daemon ends in order, and takes its files with it
{
    kill "$pid"
    wait "$pid"
    is "exit code" $? 0
    pids=()
    is "files beside the socket" "$(ls "$dir/run")" ""
}
threads() # FIELD: its values in all threads
{
    awk -v field="$1:" '$1 == field { print $2 }' /proc/"$pid"/task/*/status | sort -u | xargs
}
lines() # of all threads that have tried
{
    tr -d '\0' <"$dir/files"
}
files() # the errors of the threads that read and create a file outside of the sandbox: "NAME READ CREATE" for each
{
    local n before
    before=$(lines | wc -l)
    for ((i = 0; i < 100; i++)); do # a thread that gives memory back lives for a second
        grep -qsx memory-trim "/proc/$pid"/task/*/comm || break
        sleep 0.1
    done
    python3 -c '
import ctypes, os, sys
pid = int(sys.argv[1])
for tid in os.listdir(f"/proc/{pid}/task"):
    ctypes.CDLL(None).tgkill(pid, int(tid), 40)' "$pid"
    n=$(find "/proc/$pid/task" -mindepth 1 -maxdepth 1 | wc -l)
    for ((i = 0; i < 100; i++)); do
        [ "$(lines | wc -l)" = $((before + n)) ] && break
        sleep 0.1
    done
    [ "$(lines | wc -l)" = $((before + n)) ] || echo "not all of the $n threads answer"
    [ ! -e "$dir/new" ] || echo "there is a new file"
    # Landlock refuses it (EACCES), or the filter of a device does (EPERM). Threads that close descriptors come and go.
    lines | tail -n +$((before + 1)) | cut -d' ' -f2- | sed 's/ E[A-Z]*$/ refused/; s/^MHD[^ ]*/metrics/; /^fd-closer EACCES refused$/d' | LC_ALL=C sort
}
state() # MEMBER of the status
{
    "$pumice" status --json --socket "$dir/run/s" | sed -n "s/^ *\"$1\": \"\(.*\)\",*\$/\1/p" | head -n 1
}
traffic()
{
    LD_PRELOAD=${asan:+$asan:}$library PUMICE_SOCKET=$dir/run/s sh -c 'ibv_rc_pingpong -c -p '$port' -g 0 -n 100 >/dev/null & s=$!
        for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.3; ibv_rc_pingpong -c -p '$port' -g 0 -n 100 127.0.0.1 && wait $s && exit; done; kill $s; exit 1' 2>&1
}
need ibv_rc_pingpong

preload=
if [ -n "$asan" ]; then
    skip_part "the files of each thread: in a build with a sanitizer, its run-time library may do more"
else
    preload=$try_files
fi
expected_files() # RESULT: of reading in the threads of the device; the others may not. Two threads have a spare one (takeover).
{
    local name
    for name in cm log metrics pumice-files "pumice0 $1" pumiced socket-reaper status takeover "takeover $1" watchdog; do
        [[ $name == *\ * ]] || name="$name EACCES"
        echo "$name refused"
    done
}
start -- --log-level info --metrics $((port + 1))
is "no new privileges" "$(threads NoNewPrivs)" 1
is "filters" "$(threads Seccomp)" 2
is "status" "$(state sandbox) $(state seccomp)" "on on"
landlock=$(state landlock)
case $landlock in
on*) has "the devices' threads use process_vm_readv" "$landlock" "not for the threads of the devices" ;;
*) has "why there is no Landlock" "$landlock" "Linux 5.19"; skip_part "Landlock: this kernel has none" ;;
esac
if [[ $landlock == on* && $preload ]]; then
    is "only threads of the device read files" "$(files)" "$(expected_files done)"
fi
has "status for people" "$("$pumice" status --socket "$dir/run/s")" "seccomp on"
out=$(traffic) || fail "traffic: $out"
stop
hasnt "nothing was refused" "$(cat "$dir/log")" "permitted"

# All the memory by descriptors: then no thread opens other files.
mkdir "$dir/etc"
printf 'memory = proc_mem\nfault = "dup=1%%"\n' >"$dir/etc/conf"
start -- --config "$dir/etc/conf" --metrics $((port + 1))
rules_for_all() # no thread reads or creates a file
{
    [[ $landlock == on* ]] || return
    is "Landlock for all" "$(state landlock)" "on"
    [ -z "$preload" ] || is "no thread reads files" "$(files)" "$(expected_files EACCES)"
}
rules_for_all
out=$(traffic) || fail "traffic: $out"
has "metrics" "$(python3 -c "import urllib.request; print(urllib.request.urlopen('http://127.0.0.1:$((port + 1))/metrics', timeout=10).read().decode())")" pumice_sent_pkts_total
# As editors do it: another file takes the place of the old one.
printf 'memory = proc_mem\nfault = "dup=2%%"\n' >"$dir/etc/new" && mv "$dir/etc/new" "$dir/etc/conf"
kill -HUP "$pid"
for ((i = 0; i < 100; i++)); do
    [ "$(state fault)" = dup=2% ] && break
    sleep 0.1
done
is "the configuration is read again" "$(state fault)" dup=2%
"$pumice" capture --socket "$dir/run/s" -q -c 20 "$dir/c.pcapng" 2>"$dir/capture" &
capture=$!
sleep 0.5
out=$(traffic) || fail "traffic while captured: $out"
wait $capture || fail "a capture: $(cat "$dir/capture")"
stop

# With a group, strangers are among the clients: Landlock for all threads.
group=$(id -gn)
start -- --group "$group" --metrics $((port + 1)) --log-level info
rules_for_all
out=$(traffic) || fail "traffic with a group: $out"
[[ $landlock != on* ]] || has "memory with a group" "$(cat "$dir/log")" "memory by proc_mem"
stop
start -- --group "$group" --memory process_vm
[[ $landlock != on* ]] || has "a group, but process_vm is asked for" "$(state landlock)" "not for the threads of the devices"
stop

start -- --sandbox off
is "off: status" "$(state sandbox) $(state seccomp) $(state landlock)" "off off off"
is "off: no filter" "$(threads Seccomp)" "$(awk '/^Seccomp:/ { print $2 }' /proc/self/status)"
stop

if [ "$(id -u)" = 0 ] && have "a daemon without privileges" setpriv; then
    start setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all --bounding-set=-all -- --log-level info
    is "without privileges: filters" "$(threads Seccomp) $(threads NoNewPrivs)" "2 1"
    is "without privileges: Landlock" "$(state landlock)" "$landlock"
    stop
else
    skip_part "a daemon without privileges: it needs root"
fi

out=$("$pumice" run --sandbox off -- "$pumice" status --json) || fail "pumice run --sandbox off: $out"
has "pumice run --sandbox off" "$out" '"sandbox": "off"'
has "pumice run" "$("$pumice" run -- "$pumice" status --json)" '"seccomp": "on"'
[ $failures -eq 0 ] && echo "ok"
exit $((failures > 0))
