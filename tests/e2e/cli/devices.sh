#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Hosts with several devices: their addresses, which of them a process sees (--spread), and traffic between devices of both hosts.
. "$(dirname "$0")/../lib/common.bash"
need ibv_rc_pingpong ibv_devices python3 timeout

seen() { tail -n +3 | awk '{ print $1 }' | xargs; } # the names in the output of ibv_devices
addresses() { python3 -c 'import json, sys
for host in json.load(sys.stdin)["hosts"]:
    print(*("+".join(g["gid"].removeprefix("::ffff:") for g in d["gids"]) for d in host["status"]["devices"]))'; }

# --- addresses -------------------------------------------------------------------------------------------------------
out=$("$pumice" run --hosts 2 --devices 3 -- pumice status --json | addresses)
is "lines of addresses" "$(wc -l <<<"$out")" 2
[[ $(head -n 1 <<<"$out") =~ ^127\.0\.([0-9]+)\.1\+127\.128\.([0-9]+)\.1\ 127\.1\.([0-9]+)\.1\+127\.129\.([0-9]+)\.1\ 127\.2\.([0-9]+)\.1\+127\.130\.([0-9]+)\.1$ ]] ||
    fail "addresses of host 0: $out"
block=127.94.$(($$ % 256))
is "given addresses" "$("$pumice" run --devices 2 --addresses "$block.1,$block.2+$block.3,$block.4,$block.5" -- pumice status --json | addresses)" \
    "$block.1 $block.2+$block.3
$block.4 $block.5"
out=$("$pumice" run --hosts 2 --devices 2 --addresses "$block.1,$block.2,$block.3" true 2>&1); is "too few addresses" $? 125
has "too few addresses" "$out" "one address for each of the 4 devices of all hosts"
out=$("$pumice" run --devices 17 true 2>&1); is "too many devices" $? 125; has "too many devices" "$out" "a number from 1 to 16"
out=$("$pumice" run --spread some true 2>&1); is "no such spread" $? 125; has "no such spread" "$out" "expected on or off"
if timeout 60 "$pumice" run --ipv6 -- true 2>/dev/null; then
    is "IPv6 addresses" "$("$pumice" run --hosts 2 --devices 2 --ipv6 -- pumice status --json | addresses)" "fd00::1+fd00::1:1 fd00::2:1+fd00::3:1
fd00::2+fd00::1:2 fd00::2:2+fd00::3:2"
else
    skip_part "IPv6 addresses: no IPv6 lab"
fi

# --- which device a process sees -------------------------------------------------------------------------------------
# Each in its turn, and the same one if it asks again.
cat >"$dir/again.py" <<'EOF'
import ctypes
verbs = ctypes.CDLL("libibverbs.so.1")
verbs.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p)
verbs.ibv_get_device_name.restype = ctypes.c_char_p
verbs.ibv_get_device_name.argtypes = [ctypes.c_void_p]
names = []
for _ in range(3):
    number = ctypes.c_int()
    devices = verbs.ibv_get_device_list(ctypes.byref(number))
    names.append([verbs.ibv_get_device_name(d).decode() for d in devices[:number.value]])
print("+".join(names[0]) if names == names[:1] * 3 else f"not the same each time: {names}")
EOF
# shellcheck disable=SC2016
out=$("$pumice" run --devices 3 -- sh -c 'for i in 1 2 3 4; do python3 "$TMPDIR/again.py"; done' | xargs)
is "devices in turn" "$out" "pumice0 pumice1 pumice2 pumice0"
is "--spread off" "$("$pumice" run --devices 3 --spread off -- ibv_devices | seen)" "pumice0 pumice1 pumice2"
is "one device" "$("$pumice" run -- ibv_devices | seen)" "pumice0"
# The ranks of a job by their number: 0, 2 and 4 are on host 0, the others on host 1.
# shellcheck disable=SC2016
out=$("$pumice" run --hosts 2 --devices 2 -- bash -c 'for rank in 5 0 1 2 3 4; do
    echo $rank $(OMPI_COMM_WORLD_LOCAL_RANK=$rank ibv_devices | awk "/pumice/ { print \$1 }"); done' | sort | xargs)
is "devices of ranks" "$out" "0 pumice0 1 pumice0 2 pumice1 3 pumice1 4 pumice0 5 pumice0"

# --- traffic ---------------------------------------------------------------------------------------------------------
cat >"$dir/pairs" <<'EOF'
for i in 1 2; do # each time on another device of both hosts
    pumice on 0 -- ibv_rc_pingpong -g 0 -n 200 </dev/null >"$TMPDIR/server" 2>&1 &
    for j in $(seq 100); do # until the server listens on its port, 18515
        grep -q ":4853 .* 0A " /proc/net/tcp /proc/net/tcp6 && break
        sleep 0.1
    done
    pumice on 1 -- ibv_rc_pingpong -g 0 -n 200 127.0.0.1 </dev/null >"$TMPDIR/client" 2>&1 || cat "$TMPDIR/client" "$TMPDIR/server" >&2
    wait
done
pumice status --json
EOF
cat >"$dir/sent.py" <<'EOF'
import json, sys
hosts = json.load(sys.stdin)["hosts"]
print(*(f"{i}:{d['name']}" for i, h in enumerate(hosts) for d in h["status"]["devices"] if d["counters"]["sent_pkts"] >= 200))
EOF
is "devices that sent" "$(timeout 60 "$pumice" run --hosts 2 --devices 2 --fault loss=1% -- sh "$dir/pairs" | python3 "$dir/sent.py")" \
    "0:pumice0 0:pumice1 1:pumice0 1:pumice1"
# librdmacm sees all devices, because it takes the one that has the address.
if command -v rping >/dev/null; then
    # shellcheck disable=SC2016
    out=$(timeout 60 "$pumice" run --devices 2 --addresses "$block.1,$block.2,$block.3,$block.4" -- bash -c "
        pumice on 0 -- rping -s -a $block.2 &
        for i in {1..50}; do # until the server listens
            pumice on 1 -- rping -c -a $block.2 -C 10 -v 2>/dev/null && break
            sleep 0.1
        done
        wait" 2>&1)
    is "lines of rping at the second device" "$(grep -c 'ping data' <<<"$out")" 10
fi

# Each device has a thread, and with --cpus=spread a processor.
# shellcheck disable=SC2016
out=$("$pumice" run --hosts 2 --devices 2 --cpus spread -- bash -c 'for pid in $(pgrep -P $PPID -x pumiced); do tr "\0" " " </proc/$pid/cmdline; echo; done')
if [ "$(nproc)" -lt 8 ]; then
    is "daemons that have a processor for each device" "$(grep -c -e '--cpus [0-9]*,[0-9]*' <<<"$out")" 2
fi
exit $((failures > 0))
