#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Tests Pumice's devices in Wireshark's list of interfaces, by tshark: a daemon's device, and a lab's devices from inside and outside the
# lab. Tests options and captures by extcap. Wireshark's dialogue offers the same values as the program accepts.
. "$(dirname "$0")/../lib/common.bash"
block=127.35.$(($$ % 250)) # of loopback addresses, so that two runs at once don't meet
port=$((20000 + $$ % 20000))
daemon=
also_clean() { [ -z "$daemon" ] || kill "$daemon" 2>/dev/null; }
need tshark ibv_rc_pingpong

# Wireshark looks into this folder of the user, too; the command is there under the name that make install gives it.
export HOME=$dir
unset XDG_CONFIG_HOME
mkdir -p "$dir/.config/wireshark/extcap"
extcap=$dir/.config/wireshark/extcap/pumice-extcap
ln -s "$BUILD/bin/pumice" "$extcap"

interfaces() # those of Pumice that are no lab, one per line
{
    tshark -D 2>/dev/null | sed -n 's/^[0-9]*\. //; /Pumice:/p' | grep -v '^lab-'
}

# within FILE INTERFACE OPTION... -- COMMAND: captures while COMMAND runs, which begins when the capture has begun
within()
{
    local file=$1 interface=$2 options=() tshark pid i
    shift 2
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    timeout 120 tshark -i "$interface" "${options[@]}" -w "$file" >"$dir/tshark" 2>&1 &
    tshark=$!
    for ((i = 0; i < 600; i++)); do
        pid=$(pgrep -f "^$extcap .*--fifo") && readlink /proc/"$pid"/fd/* | grep -q wireshark_extcap && break # it opens this last
        kill -0 $tshark 2>/dev/null || break
        sleep 0.05
    done
    "$@" >"$dir/out" 2>&1 || fail "$*: $(tail -3 "$dir/out")"
    await_unchanged "$file"
    kill -INT $tshark
    wait $tshark || fail "tshark -i $interface: $(tail -3 "$dir/tshark")"
}

count() # FILE [FILTER]
{
    tshark -r "$1" -Y "${2:-frame}" 2>/dev/null | wc -l
}

# ping SERVER CLIENT: two commands that precede the programs
cat >"$dir/ping" <<'END'
$1 ibv_rc_pingpong -p $3 -g 0 -n 50 &
for i in 1 2 3 4 5 6 7 8 9 10; do
    sleep 0.2
    $2 ibv_rc_pingpong -p $3 -g 0 -n 50 127.0.0.1 && wait && exit 0
done
exit 1
END

# --- without a daemon: one interface is always there, and says what is wrong --------------------------------------------
export PUMICE_SOCKET=$dir/d.sock
[ "$(interfaces)" = "pumice (Pumice: all devices)" ] || fail "without a daemon: $(interfaces)"
"$extcap" --capture --extcap-interface pumice --fifo "$dir/none" 2>"$dir/err" && fail "captures without a daemon"
grep -q 'no answer at' "$dir/err" || fail "without a daemon it says: $(cat "$dir/err")"

# --- a daemon with two devices ------------------------------------------------------------------------------------------
pumiced --socket "$PUMICE_SOCKET" --device "pumice0=$block.1" --device "storage=$block.2" 2>"$dir/log" &
daemon=$!
for _ in $(seq 100); do
    [ -S "$PUMICE_SOCKET" ] && break
    sleep 0.05
done
[ "$(interfaces | tr '\n' ,)" = "pumice (Pumice: all devices),pumice0 (Pumice: pumice0 ($block.1)),storage (Pumice: storage ($block.2))," ] ||
    fail "interfaces: $(interfaces)"
tshark -i pumice0 -L 2>/dev/null | grep -q 'EN10MB' || fail "link type: $(tshark -i pumice0 -L 2>&1)"

within "$dir/one.pcapng" pumice0 -- env LD_PRELOAD="$BUILD/lib/pumice/libibverbs.so.1" sh "$dir/ping" "" "" "$port"
[ "$(count "$dir/one.pcapng" infiniband)" -ge 400 ] || fail "pumice0: only $(count "$dir/one.pcapng" infiniband) packets"
pumice lint "$dir/one.pcapng" >"$dir/out" || fail "lint: $(tail -3 "$dir/out")"
within "$dir/other.pcapng" storage -- env LD_PRELOAD="$BUILD/lib/pumice/libibverbs.so.1" sh "$dir/ping" "" "" "$port"
[ "$(count "$dir/other.pcapng")" -eq 0 ] || fail "storage: packets of another device"
within "$dir/acks.pcapng" pumice -o extcap.pumice.opcode:"acknowledge,cnp" -o extcap.pumice.snaplen:64 -o extcap.pumice.beforefaults:true -- \
    env LD_PRELOAD="$BUILD/lib/pumice/libibverbs.so.1" sh "$dir/ping" "" "" "$port"
opcodes=$(tshark -r "$dir/acks.pcapng" -T fields -e infiniband.bth.opcode 2>/dev/null | sort -u | tr '\n' ' ')
[ "$opcodes" = "17 " ] || fail "opcodes of a filtered capture: $opcodes"

# A capture filter is refused in words, not forgotten.
timeout 30 tshark -i pumice0 -f "udp port 1" -a duration:1 -w "$dir/never" >"$dir/out" 2>&1 && fail "took a capture filter"
grep -q 'options' "$dir/out" || fail "capture filter: $(cat "$dir/out")"
[ -n "$("$extcap" --extcap-interface pumice0 --extcap-capture-filter 'udp port 1')" ] || fail "calls a capture filter good"
[ -z "$("$extcap" --extcap-interface pumice0 --extcap-capture-filter '')" ] || fail "calls no capture filter bad"

# The program accepts every choice that the dialogue offers, and no other.
offered=$("$extcap" --extcap-interface pumice0 --extcap-config | sed -n 's/^arg {number=[0-9]*}{call=--\([a-z-]*\)}.*/\1/p' | sort)
taken=$("$extcap" --help | grep -oE -- '--[a-z-]+' | sed 's/^--//' | grep -vE '^(extcap-|capture$|fifo$|help$|usage$)' | sort -u)
[ "$offered" = "$taken" ] || fail "the dialogue offers: $offered; the program takes: $taken"
bad=$("$extcap" --extcap-interface pumice0 --extcap-config | grep -vE '^(arg \{number=[0-9]+\}\{call=--[a-z-]+\}\{display=[^{}]+\}\{type=(string|selector|boolflag|unsigned)\}(\{[a-z]+=.*\})*|value \{arg=[0-9]+\}\{value=[a-z0-9]*\}\{display=[^{}]+\}\{default=(true|false)\})$')
[ -z "$bad" ] || fail "not as extcap has it: $bad"

# When its reader is gone, it ends, though there is nothing to write.
mkfifo "$dir/fifo"
"$extcap" --capture --extcap-interface pumice0 --fifo "$dir/fifo" &
capture=$!
head -c 20 "$dir/fifo" >/dev/null
for _ in $(seq 60); do
    kill -0 $capture 2>/dev/null || break
    sleep 0.05
done
kill -0 $capture 2>/dev/null && fail "goes on without a reader" && kill $capture
wait $capture
kill $daemon
wait $daemon
daemon=

# --- labs ---------------------------------------------------------------------------------------------------------------
cat >"$dir/lab" <<'END'
echo ready >"$1/ready"
for i in $(seq 400); do
    [ -e "$1/go" ] && break
    sleep 0.05
done
sh "$1/ping" "pumice on 0 --" "pumice on 1 --" $2 >"$1/lab.out" 2>&1
echo $? >"$1/done"
for i in $(seq 400); do
    [ -e "$1/stop" ] && break
    sleep 0.05
done
END
pumice run --addresses "$block.1,$block.2" -- sh "$dir/lab" "$dir" $((port + 1)) 2>"$dir/log" &
lab=$!
for _ in $(seq 100); do
    [ -e "$dir/ready" ] && break
    sleep 0.05
done
name=$(tshark -D 2>/dev/null | sed -n 's/^[0-9]*\. \(lab-[A-Za-z0-9]*\) (Pumice: all 2 hosts of the lab .*/\1/p' | while read -r n; do
    [ -d "$dir/pumice-$n" ] && echo "$n"; done)
[ -n "$name" ] || fail "no lab from outside: $(tshark -D 2>/dev/null)"
await() { for _ in $(seq 200); do [ -e "$dir/done" ] && return; sleep 0.05; done; false; }
within "$dir/lab.pcapng" "${name:-pumice}" -- sh -c "$(declare -f await); dir=$dir; : >\"\$dir/go\"; await" 2>/dev/null
[ "$(cat "$dir/done" 2>/dev/null)" = 0 ] || fail "in the lab: $(cat "$dir/lab.out")"
[ "$(count "$dir/lab.pcapng" infiniband)" -ge 400 ] || fail "lab: only $(count "$dir/lab.pcapng" infiniband) packets"
[ "$(tshark -r "$dir/lab.pcapng" -T fields -e frame.interface_name 2>/dev/null | sort -u | tr '\n' ' ')" = "host0:pumice0 host1:pumice0 " ] ||
    fail "not one interface for each host"
: >"$dir/stop"
wait $lab
# shellcheck disable=SC2016
inside=$(env -u PUMICE_SOCKET "$BUILD/bin/pumice" run --addresses "$block.1,$block.2" -- "$extcap" --extcap-interfaces | sed -n 's/.*{value=\([^}]*\)}.*/\1/p' | grep -v '^lab-' | tr '\n' ' ')
[ "$inside" = "pumice host0:pumice0 host1:pumice0 " ] || fail "inside of a lab: $inside"

exit $((failures > 0))
