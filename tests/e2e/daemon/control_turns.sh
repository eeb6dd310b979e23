#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A user floods the daemon with control requests, over a hundred sessions and fifty other connections. Another user's requests are served in
# turn with them: the daemon counts how many requests of others it serves while one of a user waits. Without turns there would be as many as
# the flood has connections.
. "$(dirname "$0")/../lib/common.bash"
member=$BUILD/tests/e2e/daemon/member
library=$BUILD/lib/pumice/libibverbs.so.1
[ "$(id -u)" = 0 ] || skip "not root: it needs processes of several users"
need setpriv python3 getent
getent group nogroup >/dev/null || skip "no group nogroup"
gid=$(getent group nogroup | cut -d: -f3)
setpriv --reuid=65532 --regid="$gid" --clear-groups test -x "$member" || skip "other users can't read the build"
asan=$(ldd "$library" | awk '/libasan/ { print $3 }')
address=127.23.$(($$ / 250 % 250)).$(($$ % 250 + 1))
chmod 755 "$dir"
requests=300
as() # UID COMMAND...
{
    local uid=$1
    shift
    PUMICE_SOCKET=$dir/s exec setpriv --reuid="$uid" --regid="$gid" --clear-groups env LD_PRELOAD="${asan:+$asan:}$library" "$@"
}

mkfifo "$dir/ready"
"$BUILD/bin/pumiced" --socket "$dir/s" --address "$address" --group nogroup --control-share 20 --ready-fd 3 3>"$dir/ready" 2>"$dir/log" &
pids=($!)
read -r -t 20 _ <"$dir/ready" || { echo "the daemon does not start: $(cat "$dir/log")"; exit 1; }

coproc FLOOD { as 65532 "$member" flood 100 2>&1; }
flood=${FLOOD[0]}
read -r -t 120 heard <&"$flood" || fail "the flood does not begin"
is "the flood" "$heard" floods
exec {flood_in}>&"${FLOOD[1]}"
mkfifo "$dir/in"
as 65531 "$member" requests $requests <"$dir/in" >"$dir/out" 2>&1 &
quiet=$!
exec {quiet_in}>"$dir/in"
for ((i = 0; i < 1200; i++)); do
    [ -s "$dir/out" ] && break
    sleep 0.1
done
is "the other user's requests are served" "$(cat "$dir/out")" done

# rows PLACE: its counts, "UID REQUESTS WAITED LONGEST_WAIT RESTS" for each user but root
"$pumice" status --json --only control --socket "$dir/s" >"$dir/status"
rows()
{
    python3 -c '
import json, sys
status = json.load(open(sys.argv[1]))["hosts"][0]["status"]
place = status if sys.argv[2] == "main" else status["devices"][0]
print("\n".join(" ".join(str(r[k]) for k in ("uid", "requests", "waited", "longest_wait", "rests")) for r in place["control"] if r["uid"]))' "$dir/status" "$1"
}
# The fewest requests of the quiet user in this thread: to make a CQ and to destroy it, or to ask for the devices.
while read -r place least; do
    found=
    while read -r uid served waited longest rests; do
        case $uid in
        65531)
            found=yes
            [ "$served" -ge "$least" ] || fail "$place: $served requests of the quiet user"
            # One request for each user that was before it, and one that was being served.
            [ "$longest" -le 4 ] || fail "$place: the daemon served $longest requests of others while one waited"
            ;;
        65532)
            [ "$waited" -gt "$least" ] || fail "$place: no flood: only $waited of its $served requests waited"
            [ "$rests" -gt 0 ] || fail "$place: the flood was never over its share of the time"
            ;;
        esac
    done < <(rows "$place")
    [ "$found" ] || fail "$place: no counts of the quiet user: $(cat "$dir/status")"
done <<<"device $((2 * requests))
main $requests"
has "the log" "$(cat "$dir/log")" "uid 65532 sends more control requests than the daemon serves"
has "a user sees its own counts" "$(as 65532 "$pumice" status --json --only control --socket "$dir/s")" '"uid": 65532'
hasnt "a user sees its own counts only" "$(as 65532 "$pumice" status --json --only control --socket "$dir/s")" '"uid": 65531'

exec {flood_in}>&- {quiet_in}>&-
kill "$FLOOD_PID" 2>/dev/null
wait "$quiet"
is "the quiet user" $? 0
kill "${pids[@]}"
wait "${pids[@]}"
is "the daemon ends in order" $? 0
pids=()
[ $failures -eq 0 ] && echo "ok"
exit $((failures > 0))
