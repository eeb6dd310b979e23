#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# PUMICE_AUTOSTART=1: the first program starts a daemon for its user, others find it, and it ends when nobody uses it any more.
. "$(dirname "$0")/../lib/common.bash"
need ibv_devinfo ibv_rc_pingpong python3
block=127.54.$(($$ % 250))
library=$BUILD/lib/pumice/libibverbs.so.1
asan=$(ldd "$library" | awk '/libasan/ { print $3 }')
export PUMICE_SOCKET=$dir/a.sock PUMICED_ADDRESS=$block.1 PUMICED_IDLE_EXIT=1

with() { env LD_PRELOAD="${asan:+$asan:}$library" PUMICE_AUTOSTART=1 "$@"; }
daemons() { pgrep -f "pumiced.*$dir" | wc -l; }
gone() # the daemon ends, and its socket goes
{
    local i
    for ((i = 0; i < 100; i++)); do
        [ ! -e "$PUMICE_SOCKET" ] && [ "$(daemons)" = 0 ] && return
        sleep 0.1
    done
    return 1
}
also_clean() { local p; for p in $(pgrep -f "pumiced.*$dir"); do kill "$p"; done; }

# Without the variable, or with another value, there is a hint and no daemon.
out=$(env LD_PRELOAD="${asan:+$asan:}$library" ibv_devinfo 2>&1); has "no variable" "$out" "PUMICE_AUTOSTART=1 to have one started"
with env PUMICE_AUTOSTART=0 ibv_devinfo >/dev/null 2>&1 && fail "PUMICE_AUTOSTART=0 starts one"
[ "$(daemons)" = 0 ] || fail "a daemon without the variable"

# One program. What reads its output does not wait for the daemon, which has none of its descriptors.
begin=$EPOCHREALTIME
out=$(with ibv_devinfo 2>&1 | cat); has "one program" "$out" "pumice0"
is "daemons" "$(daemons)" 1
awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN { exit b - a > 0.9 }' || fail "the output ends with the daemon"
pid=$(pgrep -f "pumiced.*$dir")
is "its session" "$(ps -o tty= -p "$pid" | tr -d ' ')" "?"
tr '\0' '\n' <"/proc/$pid/environ" | grep -q '^LD_PRELOAD=' && fail "the daemon has the library preloaded"
gone || fail "it does not end"

# Several at once: one daemon for all.
for i in 1 2 3 4 5 6 7 8; do
    with ibv_devinfo >"$dir/out$i" 2>&1 &
done
wait
is "programs at once" "$(grep -l pumice0 "$dir"/out? | wc -l)" 8
is "daemons for them" "$(daemons)" 1

# A program that has a device open keeps it, beyond the time.
with timeout 20 ibv_rc_pingpong -g 0 -p 18533 -n 10 >"$dir/server" 2>&1 &
server=$!
sleep 2.5
is "daemons while a program waits" "$(daemons)" 1
with ibv_rc_pingpong -g 0 -p 18533 -n 10 127.0.0.1 >"$dir/client" 2>&1 || fail "traffic: $(cat "$dir/client" "$dir/server")"
wait $server
gone || fail "it does not end after the programs"

# A daemon that can't start says why.
out=$(PUMICED_MTU=77 with ibv_devinfo 2>&1); has "a wrong setting" "$out" 'no RDMA devices: '"$PUMICE_SOCKET"': '
has "a wrong setting" "$out" 'invalid value "77"'
is "no daemon" "$(daemons)" 0
exit $((failures > 0))
