#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Connections by rdma_cm with IPv6 addresses, and between the devices of a daemon that has several.
. "$(dirname "$0")/../lib/common.bash"
need rping ucmatose udaddy mckey python3
export block=127.55.$(($$ % 250)) pumice

cat >"$dir/pairs.py" <<'PY'
# usage: pairs.py: in a lab with two hosts of IPv6. A server, a client when the server listens, and both end with 0.
import json, subprocess, time

def listens(host, port):
    out = subprocess.run(["pumice", "status", "--json", "--host", str(host)], capture_output=True, text=True, check=True).stdout
    return any(l["port"] == port for l in json.loads(out)["hosts"][0]["status"]["cm"]["listeners"])

def on(host, *words):
    return subprocess.Popen(["pumice", "on", str(host), "--", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

def pair(port, server, client):
    s = on(0, *server)
    end = time.monotonic() + 20
    while port and not listens(0, port):
        assert time.monotonic() < end and s.poll() is None, (server, "does not listen")
        time.sleep(0.02)
    c = on(1, *client)
    for p, what in ((c, client), (s, server)):
        out, _ = p.communicate(timeout=40)
        assert p.returncode == 0, (what, p.returncode, out[-2000:])

ONE, TWO = "fd00::1", "fd00::2"
pair(7174, ["rping", "-s", "-a", ONE, "-C", "5", "-V"], ["rping", "-c", "-a", ONE, "-C", "5", "-V"])
pair(7471, ["ucmatose", "-b", ONE], ["ucmatose", "-s", ONE])
pair(7174, ["udaddy", "-b", ONE], ["udaddy", "-s", ONE])
pair(0, ["mckey", "-m", "ff0e::101", "-b", ONE], ["mckey", "-m", "ff0e::101", "-b", TWO, "-s"])
print("all right")
PY
if timeout 60 "$pumice" run --hosts 2 --ipv6 -- true 2>"$dir/out"; then
    out=$(timeout 120 "$pumice" run --hosts 2 --ipv6 --capture "$dir/six.pcapng" -- python3 "$dir/pairs.py" 2>&1)
    is "IPv6" "$out" "all right"
    "$pumice" lint "$dir/six.pcapng" >"$dir/out" || fail "the capture of IPv6: $(cat "$dir/out")"
else
    skip_part "IPv6: $(head -1 "$dir/out")"
fi

# Three devices in one daemon. An ID is on the device that has its address, and its peer sees that address.
mkfifo "$dir/ready"
"$BUILD/bin/pumiced" --socket "$dir/s" --device "a=$block.1" --device "b=$block.2" --device "c=$block.3" --ready-fd 3 3>"$dir/ready" 2>"$dir/log" &
pids+=($!)
read -r -t 20 _ <"$dir/ready" || fail "the daemon does not start: $(cat "$dir/log")"
export PUMICE_SOCKET=$dir/s
cm() # LIST FIELD...: of the status, a line for each member
{
    "$pumice" status --json --socket "$dir/s" | python3 -c 'import json, sys
for row in json.load(sys.stdin)["hosts"][0]["status"]["cm"][sys.argv[1]]: print(*(row[k] for k in sys.argv[2:]))' "$@"
}
with() # PROGRAM...
{
    LD_PRELOAD=$BUILD/lib/pumice/libibverbs.so.1 exec "$@"
}
until_row() # WHAT PATTERN LIST FIELD...
{
    local what=$1 pattern=$2
    shift 2
    for _ in $(seq 200); do
        grep -qE "$pattern" <<<"$(cm "$@")" && return
        sleep 0.05
    done
    fail "$what: no row '$pattern' in '$(cm "$@")'"
}
with rping -s -P -a "$block.2" -p 7471 >/dev/null 2>&1 &
pids+=($!)
until_row "a listener at one device" "^b $block.2 7471\$" listeners device address port
with rping -c -a "$block.2" -I "$block.3" -p 7471 -C 100000000 >/dev/null 2>&1 &
pids+=($!)
until_row "the client is at the device of its address" "^c ESTABLISHED $block.3:[0-9]+ $block.2:7471\$" connections device state local remote
until_row "the server is at the listener's device" "^b ESTABLISHED $block.2:7471 $block.3:" connections device state local remote
out=$(with rping -c -a "$block.1" -p 7471 -C 1 2>&1)
has "nobody listens at the other devices" "$out" "RDMA_CM_EVENT_REJECTED, error 8"
# A listener at all addresses takes requests of each device.
with rping -s -P -p 7472 >/dev/null 2>&1 &
pids+=($!)
until_row "a listener at all devices" " 7472\$" listeners address port
for n in 1 2 3; do
    out=$(with rping -c -a "$block.$n" -p 7472 -C 2 -V 2>&1) || fail "device $n of a listener at all devices: $out"
done
exit $((failures > 0))
