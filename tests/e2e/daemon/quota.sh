#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Quotas between users of one daemon: a user hits the limit of each kind and gets room again; a user who takes all it can get leaves room for
# another; at the daemon's own limits new requests fail and existing objects go on; silent connections end.
. "$(dirname "$0")/../lib/common.bash"
member=$BUILD/tests/e2e/daemon/member
library=$BUILD/lib/pumice/libibverbs.so.1
[ "$(id -u)" = 0 ] || skip "not root: it needs processes of several users"
need setpriv prlimit python3 getent
getent group nogroup >/dev/null || skip "no group nogroup"
gid=$(getent group nogroup | cut -d: -f3)
setpriv --reuid=65532 --regid="$gid" --clear-groups test -x "$member" || skip "other users can't read the build"
address=127.22.$(($$ / 250 % 250)).$(($$ % 250 + 1))
mkdir "$dir/s"
chown 65533:"$gid" "$dir/s"
chmod 755 "$dir" "$dir/s"
socket=$dir/s/sock

# start_daemon OPTIONS...: as a user of its own
start_daemon()
{
    rm -f "$dir/ready"
    mkfifo "$dir/ready"
    setpriv --reuid=65533 --regid="$gid" --clear-groups "$BUILD/bin/pumiced" --socket "$socket" --address "$address" --group nogroup --ready-fd 3 \
        "$@" 3>"$dir/ready" 2>"$dir/log" &
    daemon=$!
    pids=("$daemon")
    read -r -t 20 _ <"$dir/ready" || { cat "$dir/log"; fail "the daemon does not start"; exit 1; }
}
stop_daemon()
{
    kill "$daemon"
    wait "$daemon"
    is "the daemon ends in order" $? 0
    pids=()
}

# as UID COMMAND...
as()
{
    local uid=$1
    shift
    PUMICE_SOCKET=$socket exec setpriv --reuid="$uid" --regid="$gid" --clear-groups env LD_PRELOAD="$library" "$@"
}

# begin UID STEP...: a member, whose lines ask and hear
begin()
{
    coproc MEMBER { as "$1" "$member" "${@:2}" 2>&1; }
    member_pid=$MEMBER_PID
}
hear() # its next line, in $heard
{
    heard=
    read -r -t 60 heard <&"${MEMBER[0]}"
}
step() # LINE: the next step, and what it says
{
    echo "${1:-go}" >&"${MEMBER[1]}"
    hear
}
finish()
{
    eval "exec ${MEMBER[1]}>&-"
    wait "$member_pid" 2>/dev/null
}

# row UID KIND: "USED LIMIT REFUSED" of the status
row()
{
    "$pumice" status --json --socket "$socket" | python3 -c 'import json, sys
rows = json.load(sys.stdin)["hosts"][0]["status"]["quotas"]
print(*[" ".join(str(r[k]) for k in ("used", "limit", "refused")) for r in rows if r["uid"] == int(sys.argv[1]) and r["kind"] == sys.argv[2]])' "$@"
}

# configure LINE...: the daemon reads these lines
configure()
{
    local before
    before=$(grep -c 'configuration read again' "$dir/log")
    printf '%s\n' "$@" >"$dir/s/conf"
    kill -HUP "$daemon"
    for _ in $(seq 100); do
        [ "$(grep -c 'configuration read again' "$dir/log")" -gt "$before" ] && return
        sleep 0.05
    done
    fail "the configuration was not read again"
}

# --- each kind ---
echo 'log-level = info' >"$dir/s/conf"
chmod 644 "$dir/s/conf"
start_daemon --config "$dir/s/conf"
while read -r kind limit text; do
    configure "log-level = info" "quota = \"all=none,$kind=$limit\""
    begin 65532 fill "$kind"
    hear
    if [ "$kind" = cm-connections ]; then # librdmacm prints no more than "no device", so the library says why
        has "$kind: the explanation" "$heard" "quota of user 65532: $limit $text"
        hear
    fi
    has "$kind" "$heard" "full "
    has "$kind: the error" "$heard" EDQUOT
    read -r used most refused <<<"$(row 65532 "$kind")"
    is "$kind: the limit in the status" "$most" "$limit"
    [ "${used:-0}" -gt 0 ] && [ "$used" -le "$limit" ] || fail "$kind: '$used' in use of $limit"
    case $kind in mappings | descriptors | bytes) ;; *) is "$kind: in use" "$used" "$limit" ;; esac
    [ "${refused:-0}" -gt 0 ] || fail "$kind: the status counts no refusal"
    grep -q "warn: session: refused a request of uid 65532: quota of user 65532: $limit $text" "$dir/log" || fail "$kind: no line in the log"
    [ "$(grep -c "refused a request of uid 65532: quota of user 65532: $limit $text" "$dir/log")" -le 2 ] || fail "$kind: too many lines in the log"
    out=$(as 65531 "$member" exchange <<<"" 2>&1)
    has "$kind: another user" "$out" exchanged
    step
    while [[ $heard == "pumice: "* ]]; do # the daemon had not yet seen that the first one was released: the member tries again
        hear
    done
    is "$kind: released and taken again" "$heard" "again ok"
    step
    is "$kind: all released" "$heard" empty
    finish
    for _ in $(seq 100); do
        [ -z "$(row 65532 "$kind")" ] && break
        sleep 0.05
    done
    is "$kind: afterwards" "$(row 65532 "$kind")" ""
done <<END
sessions 3 sessions
connections 4 unopened connections
pds 5 protection domains
qps 5 queue pairs
cqs 5 completion queues
srqs 5 shared receive queues
mrs 5 memory regions
mws 5 memory windows
channels 5 completion channels
xrcds 5 XRC domains
groups 5 multicast groups
cm-connections 3 connections to connection management
cm-channels 4 event channels of connection management
cm-ids 5 IDs of connection management
mappings 9 memory mappings
descriptors 12 open files
bytes 1048576 bytes of queues
END

# --- text of the status, and the own view of a user ---
configure "log-level = info" "quota = \"all=none,qps=5\""
begin 65532 fill qps
hear
out=$("$pumice" status --only quotas --socket "$socket")
has "the status as text" "$out" "65532  qps"
out=$(as 65531 "$pumice" status --json --socket "$socket")
hasnt "what another user sees" "$out" '"uid": 65532,
        "kind"'
finish

# --- silent connections ---
configure "log-level = info" "handshake-timeout = 1"
out=$(as 65532 "$member" silent 2>&1)
is "silent connections" "$out" "closed 4 after a while"
has "silent connections" "$(cat "$dir/log")" "closed a connection of uid 65532"
stop_daemon

# --- a user who takes all it can get, in a daemon with 20,000 descriptors ---
if (ulimit -Sn 20000) 2>/dev/null; then
    ulimit -Sn 20000
    start_daemon
    begin 65532 attack
    hear
    has "the attack" "$heard" "holds "
    echo "$heard"
    for _ in 1 2 3; do
        out=$(as 65531 timeout 60 "$member" exchange <<<"" 2>&1)
        has "a bystander" "$out" exchanged
    done
    is "the attack goes on meanwhile" "$(kill -0 "$member_pid" && echo yes)" yes
    finish
    stop_daemon
else
    skip_part "taking all: the limit of descriptors is below 20,000"
fi

# --- the daemon's own limits ---
ticks() { awk '{ print $14 + $15 }' "/proc/$daemon/stat"; }
start_daemon
begin 65532 exchange
hear
is "before the limits" "$heard" exchanged
limit() { setpriv --reuid=65533 --regid="$gid" --clear-groups prlimit --pid "$daemon" "$1" || fail "prlimit $1"; }
limit --nofile=3: # the daemon has the first three all the time
step new
is "no descriptors" "$heard" "channel EMFILE cq EMFILE"
hear
is "traffic without descriptors" "$heard" exchanged
"$pumice" status --socket "$socket" >"$dir/status" 2>&1 &
waiting=$!
before=$(ticks)
sleep 2
[ $(($(ticks) - before)) -lt 100 ] || fail "the daemon spins while it can't accept connections"
has "the log" "$(cat "$dir/log")" "accepting no connections for 0.2 s"
limit --nofile=1024:
wait "$waiting"
is "a connection that had to wait" $? 0
limit --as=$(($(awk '/VmSize/ { print $2 }' "/proc/$daemon/status") * 1024 + 8000000)):
step new
is "no memory" "$heard" "channel ok cq ENOMEM"
hear
is "traffic without memory" "$heard" exchanged
limit --as=unlimited:
step new
is "memory again" "$heard" "channel ok cq ok"
hear
is "traffic after the limits" "$heard" exchanged
finish
stop_daemon

[ $failures -eq 0 ] && echo ok
exit $((failures > 0))
