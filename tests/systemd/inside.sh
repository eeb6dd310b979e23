#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# run.sh starts this script in a container that systemd has booted. The user alice is in the group pumice, bob is not.
set -u
. "$(dirname "$0")/checks.bash" # of tests/e2e/lib
socket=/run/pumice/pumiced.sock

as() # USER COMMAND: as if that user had logged in
{
    runuser -u "$1" -- env -i PATH=/usr/bin:/bin HOME="/home/$1" XDG_RUNTIME_DIR="/run/user/$(id -u "$1")" bash -c "$2" 2>&1
}
state() # UNIT...
{
    systemctl is-active "$@" | paste -sd ' '
}
until_true() # COMMAND...: for ten seconds at most
{
    for _ in $(seq 100); do
        "$@" && return
        sleep 0.1
    done
    return 1
}
# Two programs that check each other's data; says how the daemon reached their memory meanwhile.
cat >/opt/traffic.sh <<'END'
eval "$(pumice env)" && [ -n "$PUMICE_SOCKET" ] || exit 1
ibv_rc_pingpong -c -g 0 -n ${1:-1000} >/dev/null &
server=$!
for i in 1 2 3 4 5 6 7 8 9 10; do
    sleep 0.5
    ibv_rc_pingpong -c -g 0 -n ${1:-1000} 127.0.0.1 >/dev/null && wait $server && exit
done
kill $server
exit 1
END
traffic() # USER
{
    as "$1" "sh /opt/traffic.sh" || fail "$1's programs fail: $(journalctl --no-pager -n 12 -o cat | cut -c-300)"
}
memory() # USER SOCKET: by which ways the daemon reaches a program's memory
{
    as "$1" "export PUMICE_SOCKET=$2 LD_PRELOAD=/usr/lib/pumice/libibverbs.so.1; ibv_rc_pingpong -g 0 >/dev/null & sleep 1; unset LD_PRELOAD
        pumice status --json | python3 -c 'import json, sys
print(*{s[\"memory\"] for s in json.load(sys.stdin)[\"hosts\"][0][\"status\"][\"devices\"][0][\"sessions\"]})'; kill %1"
}

echo "# the package is installed"
dpkg -i /mnt/pumice_*.deb >/tmp/log 2>&1 || { cat /tmp/log; exit 1; }
useradd -m -G pumice alice || fail "no group pumice"
useradd -m bob
is "after the installation" "$(state pumiced.socket pumiced.service)" "active inactive"
is "the socket" "$(stat -c '%U:%G %a' $socket)" "root:pumice 660"
for kind in system user; do
    out=$(XDG_RUNTIME_DIR=/run systemd-analyze --$kind verify --man=no pumiced.socket pumiced.service 2>&1) || fail "verify $kind: $out"
    hasnt "verify $kind" "$out" pumice
done
systemd-analyze security --no-pager --threshold=20 pumiced.service >/tmp/log || fail "the service may do too much: $(tail -n 1 /tmp/log)"

echo "# the system's daemon starts for the first program of somebody in the group, and reaches its memory"
has "somebody who is not in the group" "$(as bob 'pumice env')" "the members of the group pumice"
is "for that it does not start" "$(state pumiced.service)" inactive
traffic alice
is "the service" "$(state pumiced.service) $(systemctl show -p User --value pumiced)" "active pumice"
has "its status" "$(systemctl show -p StatusText --value pumiced)" "Serving pumice0 on 127.0.0.1"
is "memory" "$(memory alice $socket)" proc_mem
# Another user's packets are not for everybody in the group.
has "a capture" "$(as alice 'timeout 5 pumice capture /tmp/a.pcapng')" "only the daemon's user and root may capture"
[ ! -e /tmp/a.pcapng ] || fail "a capture that is not allowed makes a file"
timeout -s INT 3 pumice capture --socket $socket /tmp/r.pcapng >/dev/null 2>&1 &
sleep 1
traffic alice
wait $!
[ "$(stat -c %s /tmp/r.pcapng)" -gt 100000 ] || fail "root's capture has $(stat -c %s /tmp/r.pcapng) bytes"

echo "# it is killed, reconfigured, stopped"
before=$(systemctl show -p MainPID --value pumiced)
kill -9 "$before"
started_again()
{
    [ "$(systemctl show -p NRestarts --value pumiced)" = 1 ] && systemctl -q is-active pumiced
}
until_true started_again || fail "it is not started again: $(systemctl show -p NRestarts,ActiveState pumiced | paste -sd ' ')"
traffic alice
printf 'log-level = warn\n' >/etc/pumiced.conf
echo 'PUMICED_OPTIONS="--config /etc/pumiced.conf --address 127.0.0.1 --address 127.0.0.2 --cpus 0 --connectivity-map /var/lib/pumice/map"' >/etc/default/pumiced
systemctl restart pumiced || fail "restart"
printf 'log-level = info\nfault = "loss=7%%"\n' >/etc/pumiced.conf
systemctl reload pumiced || fail "reload"
loses()
{
    as alice 'pumice status' | grep -q 'loss=7%'
}
until_true loses || fail "the new configuration is not in force: $(as alice 'pumice status' | head -n 4)"
printf 'fault = "los=7%%"\n' >/etc/pumiced.conf
systemctl reload pumiced
complains()
{
    journalctl -q -u pumiced | grep -q "unknown fault 'los'"
}
until_true complains || fail "nothing is said of a wrong configuration"
loses || fail "a wrong configuration takes the old one away"
printf 'log-level = info\n' >/etc/pumiced.conf
systemctl reload pumiced
as alice 'eval "$(pumice env)"; ibv_rc_pingpong -d pumice0 -g 0 >/dev/null & sleep 1; ibv_rc_pingpong -d pumice1 -g 0 127.0.0.1 >/dev/null && wait' || fail "two devices"
until_true test -s /var/lib/pumice/map || fail "it can't write to /var/lib/pumice: $(journalctl -q -u pumiced | tail -n 2)"
systemctl stop pumiced.service 2>/dev/null
is "after stop" "$(state pumiced.socket pumiced.service)" "active inactive"
is "what is left" "$(ls /run/pumice)" pumiced.sock
traffic alice

echo "# it can't start"
systemctl stop pumiced.service 2>/dev/null
printf 'mtu = 77\n' >/etc/pumiced.conf
for _ in 1 2 3 4 5 6; do # more often than systemd lets a service fail, unless told
    out=$(as alice 'pumice env')
    has "a wrong configuration" "$out" "the daemon can't start: /etc/pumiced.conf:1: mtu"
    sleep 0.2
done
is "after a wrong configuration" "$(state pumiced.socket pumiced.service)" "active failed"
rm /etc/pumiced.conf /etc/default/pumiced
# An administrator's second socket is one too many: no client of either may stay there, or systemd would start it as fast as it can.
mkdir /etc/systemd/system/pumiced.socket.d
printf '[Socket]\nListenSequentialPacket=/run/pumice/second.sock\n' >/etc/systemd/system/pumiced.socket.d/second.conf
systemctl daemon-reload
systemctl restart pumiced.socket || fail "a second socket"
for s in pumiced second; do
    has "two sockets" "$(as alice "pumice env --socket /run/pumice/$s.sock")" "is not one listening SOCK_SEQPACKET socket"
done
sleep 1
is "with two sockets" "$(state pumiced.socket pumiced.service)" "active failed"
is "starts with two sockets" "$(journalctl -q -u pumiced | grep -c 'is not one listening')" 2
rm -r /etc/systemd/system/pumiced.socket.d
systemctl daemon-reload
systemctl restart pumiced.socket || fail "the socket alone again"
traffic alice

echo "# a user's own daemon"
loginctl enable-linger bob
until_true as bob 'systemctl --user -q is-active default.target' >/dev/null || fail "there is no service manager for users"
as bob 'systemctl --user -q enable --now pumiced.socket' || fail "the user's socket"
has "its address is the system's daemon's" "$(as bob 'pumice env')" "UDP port 4791 of 127.0.0.1 is in use"
as bob 'mkdir -p ~/.config/pumice; echo PUMICED_OPTIONS=\"--address 127.0.0.9\" >~/.config/pumice/pumiced'
traffic bob
is "a user's own memory" "$(memory bob "/run/user/$(id -u bob)/pumice/pumiced.sock")" process_vm
is "a user's own socket" "$(stat -c '%U %a' "/run/user/$(id -u bob)/pumice/pumiced.sock")" "bob 600"
as bob 'systemctl --user reload pumiced && systemctl --user stop pumiced.socket 2>/dev/null; ! ls $XDG_RUNTIME_DIR/pumice/* 2>/dev/null' || fail "the user's daemon does not end"

echo "# the package is installed once more, and removed"
dpkg -i /mnt/pumice_*.deb >/tmp/log 2>&1 || fail "$(cat /tmp/log)"
is "after the new installation" "$(systemctl is-active pumiced.socket)" active
traffic alice
dpkg -P pumice >/tmp/log 2>&1 || fail "$(cat /tmp/log)"
is "after the removal" "$(state pumiced.socket pumiced.service)" "inactive inactive"
pgrep -x pumiced && fail "it still runs"
left=$(find /etc /usr /run/pumice -name '*pumice*' ! -path '/etc/group*' 2>/dev/null)
is "files that are left" "$left" /run/pumice

[ $failures -eq 0 ] && echo "works under systemd $(systemctl --version | sed -n '1s/.*(\(.*\))/\1/p')"
exit $((failures > 0))
