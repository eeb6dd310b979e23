#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Tests the pumice command: environment, exit codes, signals, addresses, clean-up, faults and status at run time.
. "$(dirname "$0")/../lib/common.bash"
block=127.41.$(($$ % 256)) # of loopback addresses, so that two runs at once don't meet
in_proc=$(printf '%02X297F:12B7' $(($$ % 256))) # the end of these in /proc/net/udp
TMPDIR=$dir/tmp
mkdir "$TMPDIR"

run() # in a lab of two hosts on addresses of our own
{
    "$pumice" run --addresses $block.1,$block.2 "$@"
}

# Nothing may be left: no directory, no daemon on our addresses.
clean()
{
    local i left
    for ((i = 0; i < 100; i++)); do
        left=$(ls "$TMPDIR")$(grep "$in_proc" /proc/net/udp)
        [ -z "$left" ] && return
        sleep 0.05
    done
    fail "$1: left behind: $left"
    rm -rf "${TMPDIR:?}"/*
}

# --- exit codes ---
run true; is "exit code of true" $? 0
run sh -c 'exit 7'; is "exit code 7" $? 7
run sh -c 'kill -9 $$'; is "killed by signal 9" $? 137
out=$(run no-such-command 2>&1); is "no such command" $? 127
has "no such command" "$out" "no such command"
run /etc/passwd 2>/dev/null; is "not executable" $? 126
run 2>/dev/null; is "no command" $? 125
out=$("$pumice" statsu 2>&1); is "unknown subcommand" $? 125
has "unknown subcommand" "$out" "did you mean 'status'"
for c in run on env status fault; do
    out=$("$pumice" $c --help); is "$c --help" $? 0
    has "$c --help" "$out" Example
    [ "$out" = "$("$pumice" help $c)" ] || fail "pumice help $c differs from --help"
done
clean "exit codes"

# --- the environment and the hosts ---
out=$(run -- sh -c 'echo "$PUMICE_HOSTS $PUMICE_SOCKET $LD_PRELOAD ${PUMICE_HOST-none}"; stat -c %a "$PUMICE_LAB"
    pumice on 1 -- sh -c "echo \$PUMICE_HOST \$PUMICE_SOCKET"')
has environment "$out" "2 $TMPDIR/pumice-lab-"
has environment "$out" "/host0.sock $BUILD/lib/pumice/libibverbs.so.1 none"
has environment "$out" $'\n700\n1 '
has environment "$out" "/host1.sock"
out=$(run -- pumice on 2 true 2>&1); is "no such host" $? 125
has "no such host" "$out" "the hosts of this lab are 0 to 1"
run -- pumice on 1 sh -c 'exit 5'; is "exit code of pumice on" $? 5
run -- pumice on 1 no-such-command 2>/dev/null; is "pumice on: no such command" $? 127
mkdir -m 0 "$dir/closed"
limited() # without root's right to search every folder
{
    if [ "$(id -u)" = 0 ]; then setpriv --bounding-set=-dac_override,-dac_read_search "$@"; else "$@"; fi
}
if limited ls "$dir/closed" 2>/dev/null; then
    fail "everybody may search every folder"
fi
out=$(limited env PATH="$dir/closed:$PATH" "$pumice" run --addresses $block.1,$block.2 -- pumice on 1 no-such-command 2>&1)
is "pumice on: no such command, and a folder that may not be searched" $? 127
has "a folder that may not be searched" "$out" "no such command"
limited env PATH="$dir/closed:$PATH" "$pumice" run --addresses $block.1,$block.2 no-such-command 2>/dev/null
is "pumice run: no such command, and a folder that may not be searched" $? 127
run -- pumice on 1 /etc/passwd 2>/dev/null; is "pumice on: not executable" $? 126
cp /bin/true "$dir/closed-too" && chmod 644 "$dir/closed-too"
run -- env PATH="$dir:$PATH" pumice on 1 closed-too 2>/dev/null; is "pumice on: not executable, by PATH" $? 126
limited "$pumice" run --addresses $block.1,$block.2 "$dir/closed/true" 2>/dev/null; is "in a folder that may not be searched" $? 126
out=$("$pumice" on 0 true 2>&1); is "pumice on without a lab" $? 125
has "pumice on without a lab" "$out" "inside of pumice run"
out=$(run -- sh -c 'pumice on 0 -- ibv_devices; pumice on 1 -- ibv_devinfo -v')
has "devices of host 0" "$out" pumice0
has "GID of host 1" "$out" "::ffff:$block.2"
if [ -n "${SANITIZED:-}" ]; then
    skip_part "another LD_PRELOAD: the run time of a sanitizer must come first"
else
    out=$(LD_PRELOAD=libm.so.6 run -- sh -c 'echo $LD_PRELOAD')
    is "an LD_PRELOAD that is there" "$out" "libm.so.6:$BUILD/lib/pumice/libibverbs.so.1"
fi
clean "environment"

# --- addresses ---
out=$(run sh -c "$pumice run --addresses $block.2 true" 2>&1); is "address in use" $? 125
has "address in use" "$out" "UDP port 4791 is in use on $block.2"
out=$("$pumice" run -a 192.0.2.1 true 2>&1); is "foreign address" $? 125
has "foreign address" "$out" "not an address of this machine"
out=$("$pumice" run -a nonsense true 2>&1); has "nonsense address" "$out" "not an IPv4 or IPv6 address"
out=$("$pumice" run -n 3 -a $block.1 true 2>&1); has "too few addresses" "$out" "one address for each of the 3 hosts"
# Two labs at once, without addresses: the second finds others.
out=$("$pumice" run -n 2 -- "$pumice" run -n 2 -- sh -c 'pumice status' 2>&1); is "two labs" $? 0
has "two labs" "$out" "the hosts are 127.0."
clean "addresses"

# --- signals ---
"$pumice" run -a $block.1,$block.2 sh -c 'trap "exit 33" TERM; touch "$TMPDIR/../up"; while :; do sleep 0.05; done' & pid=$!
while [ ! -e "$dir/up" ]; do sleep 0.05; done
kill -TERM $pid
wait $pid; is "SIGTERM is passed on" $? 33
rm "$dir/up"
clean "signals"
"$pumice" run -a $block.1,$block.2 sh -c 'touch "$TMPDIR/../up"; exec sleep 60' & pid=$!
while [ ! -e "$dir/up" ]; do sleep 0.05; done
kill -KILL $pid
wait $pid 2>/dev/null; is "pumice killed" $? 137
clean "pumice killed"
# (A sanitizer would make an orderly end of it.)
out=$(ASAN_OPTIONS=${ASAN_OPTIONS:-}:handle_segv=0 TSAN_OPTIONS=${TSAN_OPTIONS:-}:handle_segv=0 \
    run sh -c 'kill -SEGV $(ps -e -o pid=,args= | awk "/[p]umiced.*'$block.2'/ { print \$1 }"); sleep 0.5' 2>&1)
is "a daemon crashed" $? 125
has "a daemon crashed" "$out" "host 1: the daemon crashed"
clean "a daemon crashed"

# --- logs ---
out=$(run --keep-logs --log-level debug true 2>&1)
has "kept logs" "$out" "the logs are in $TMPDIR"
[ -n "$(cat "$TMPDIR"/*/host0.log)" ] || fail "nothing in a debug log"
[ -z "$(find "$TMPDIR" -type s)" ] || fail "sockets are left with the logs"
rm -rf "${TMPDIR:?}"/*
out=$(run --loopback sideways true 2>&1); is "bad option for the daemon" $? 125
has "bad option for the daemon" "$out" "engine or wire"

# --- programs that can't be given the library ---
if printf 'int main(void) { return 0; }' | cc -static -x c - -o "$dir/static" 2>/dev/null; then
    out=$(run "$dir/static" 2>&1); is "static program" $? 0
    has "static program" "$out" "statically linked"
fi

# --- faults ---
out=$(run --fault lost=1% true 2>&1); is "bad faults" $? 125
has "bad faults" "$out" "unknown fault 'lost'"
out=$(run --fault loss=1% --seed 9 false 2>&1); is "false" $? 1
has "how to repeat" "$out" "--fault 'loss=1%' --seed 9"
out=$(run -- sh -c 'pumice fault dup=3% && pumice status --json && pumice fault off && pumice fault lost=1%' 2>&1)
is "pumice fault with nonsense" $? 1
has "faults in status" "$out" "dup=3%"
has "nonsense" "$out" "unknown fault 'lost'"

# --- status and env ---
out=$(run -- pumice status --json | python3 -c '
import json, sys
hosts = json.load(sys.stdin)["hosts"]
print(len(hosts), [h["host"] for h in hosts], all("sent_pkts" in json.dumps(h["status"]) for h in hosts))')
is "status --json" "$out" "2 [0, 1] True"
out=$(run -- pumice status --host 1)
has "status --host" "$out" "=== host 1"
has "status --host" "$out" "$block.2"
[[ $out == *"$block.1"* ]] && fail "status --host 1 shows host 0, too"
out=$("$pumice" status --socket "$dir/none" 2>&1); is "status without a daemon" $? 1
has "status without a daemon" "$out" "is a daemon running?"
mkdir "$dir/o'dd dir"
"$BUILD/bin/pumiced" --socket "$dir/o'dd dir/s" --device pumice7=$block.7 --ready-fd 3 3>"$dir/ready" & pid=$!
while [ ! -s "$dir/ready" ]; do sleep 0.05; done
out=$(eval "$("$pumice" env --socket "$dir/o'dd dir/s")" && ibv_devices)
has "pumice env" "$out" pumice7
kill $pid
wait $pid; is "orderly end of pumiced" $? 0
out=$("$pumice" env --socket "$dir/o'dd dir/s" 2>/dev/null); is "env without a daemon" "$? $out" "1 "
clean "end"

[ $failures -eq 0 ] && echo "the pumice command does what it says"
exit $((failures > 0))
