#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Captures every program of tests/verbs at both of its hosts. "before" captures the packets as the engine makes them. "wire" captures them
# as they leave, with the ICRCs of the daemon; packets within a device also go through the socket then.
# Each program succeeds while it is captured. The linter accepts each capture, and no packet is missing in it. tshark with the dissector
# gives each packet a name and a right ICRC, and calls none malformed.
# Usage: captured.sh [--full] [NAME ...]   With names, it runs only these programs. Without --full it leaves out slow programs, captures
# only some programs with "wire" too, and gives tshark only the beginning of each capture.
. "$(dirname "$0")/../lib/common.bash"
. "$lib/captures.bash"
full=
if [ "${1:-}" = --full ]; then
    full=$1
    shift
fi
only=" $* "
cd "$root" || exit 1
block=$(($$ % 250)) # of loopback addresses, so that two runs at once don't meet
number=0 speaking=0
need tshark mergecap editcap

# These have nothing to send, or send nothing on purpose.
silent=" test_layout_explain test_names test_no_daemon test_objects test_qp_table test_sysfs_files test_tm test_xrc_domain "
# Messages of 2 GiB, more than a buffer holds while the linter's machine is busy: of each packet the beginning.
torrent=" test_big "
# These take seconds each, and send what others send, too.
long=" test_fork test_layout_million test_limits test_tm_death test_tm_many test_tm_match "
# One end of these is no Pumice, and breaks the rules on purpose.
wrong_peer=" test_requester_wire test_responder_wire test_xrc_wire "
# As their packets leave: one program of each kind.
wire=" test_channel test_mcast test_mw test_post test_src test_tm_own test_uc test_ud test_xrc "
beginning=2000 # packets
[ -z "$full" ] || beginning=200000
together=300000 # so many packets are given to tshark at once, since it takes long to start, and keeps messages in memory
waiting=0 # packets in $dir/waiting/

# capture NAME before|wire [TRIES]: runs the program; again, if its capture lacks packets because the machine is busy. Each run has addresses of its own, so that captures can be merged
capture()
{
    local name=$1 file options="-B 256" tries=${3:-4} flags=() daemon=$BUILD/bin/pumiced
    number=$((number + 1))
    mkdir -p "$dir/now"
    [[ $torrent != *" $name "* ]] || options="-B 1024 --snaplen 64"
    case $2 in
    before) options+=" --before-faults" ;;
    wire) daemon+=" --loopback wire" ;;
    esac
    VT_CAPTURE=$options VT_DAEMON=$daemon \
        tests/verbs/run.sh ${SANITIZED:+-p} -b "$BUILD" -a "127.36.$block.$number" -c "$dir/now" "$name" >"$dir/said" 2>&1 ||
        fail "$name $2: $(grep -E '^not ok|^# .* failed \(' "$dir/said" | head -4)"
    file=$dir/captured.$number.pcapng
    mv "$dir/now/$name.pcapng" "$file" || { fail "$name $2: no capture: $(tail -5 "$dir/said")"; return; }
    [ "$2" != wire ] || ! loses "$name" || flags=(--faulty)
    if ! judge "$name $2" "$file" "${flags[@]}"; then
        [ "$tries" -gt 1 ] || { fail "$name $2: $(tail -1 "$dir/out")"; return; }
        rm "$file"
        capture "$name" "$2" $((tries - 1))
    fi
}

# Does a program lose packets on purpose? (All that have tags.h do.) What leaves a host then lacks some, unless faults are left out.
loses()
{
    grep -qE '^#include ".*/tags(_mpi)?\.h"' tests/verbs/*/"$1.c"
}

judge() # WHAT FILE OPTION...: of the linter
{
    local what=$1 file=$2 packets
    shift 2
    pumice lint "$@" "$file" >"$dir/out" || grep -q 'has lost' "$dir/out" || fail "$what: $(head -4 "$dir/out"; tail -2 "$dir/out")"
    packets=$(sed -n 's/.* \([0-9]*\) RoCEv2 packets.*/\1/p' "$dir/out")
    packets=${packets:-0}
    echo "$what: $packets packets"
    ! grep -q 'has lost' "$dir/out" || return 1
    [ "$packets" -gt 0 ] || { rm "$file"; return 0; }
    speaking=$((speaking + 1))
    mkdir -p "$dir/waiting"
    if [ "$packets" -gt $beginning ]; then
        editcap -r "$file" "$dir/waiting/$number.pcapng" 1-$beginning || fail "$what: editcap"
        rm "$file"
        packets=$beginning
    else
        mv "$file" "$dir/waiting/$number.pcapng"
    fi
    waiting=$((waiting + packets))
    [ $waiting -lt $together ] || look
    return 0
}

# tshark reads the waiting captures. (A packet that was captured in part has no ICRC.)
look()
{
    [ $waiting -gt 0 ] || return
    mergecap -w "$dir/all.pcapng" "$dir"/waiting/*.pcapng || fail "mergecap"
    dissect "$dir/all.pcapng" -T fields -e frame.comment -e pumice.bth.name -e pumice.icrc.status -e frame.len -e frame.cap_len \
        -e _ws.malformed -e _ws.lua.error | awk -F '\t' -v n=$waiting -v names="$dir/names" '
            { count[$2]++ }
            $2 == "" || $3 != 1 && $4 == $5 || $6 != "" || $7 != ""
            END {
                for (name in count) print count[name], name >>names
                if (NR != n) print NR " packets of " n
            }' >"$dir/out"
    [ ! -s "$dir/out" ] || fail "to the dissector, $(wc -l <"$dir/out") packets: $(head -5 "$dir/out")"
    rm -r "$dir/waiting" "$dir/all.pcapng"
    waiting=0
}

for source in tests/verbs/*/test_*.c; do
    name=$(basename "$source" .c)
    [[ -z ${only// /} || $only == *" $name "* ]] || continue
    [[ $wrong_peer != *" $name "* ]] || continue
    if [ -z "$full" ] && [[ $silent$torrent$long == *" $name "* ]]; then
        continue
    fi
    capture "$name" before
    if [ -n "$full" ] || [[ $wire == *" $name "* ]]; then
        capture "$name" wire
    fi
done
[ "$speaking" -ge 35 ] || [ -n "${only// /}" ] || fail "only $speaking captures with packets, of $number"

look
touch "$dir/names"
awk '{ n = $1; $1 = ""; sum[$0] += n } END { for (name in sum) print sum[name] name }' "$dir/names" | sort -rn >"$dir/out"
cat "$dir/out"
for name in "RC SEND Only" "RC RDMA WRITE Last" "RC RDMA READ response Middle" "RC ATOMIC Acknowledge" "RC ATOMIC WRITE" "RC FLUSH" \
    "UC SEND Only" "UD SEND Only" "XRC SEND Only"; do
    [ -n "${only// /}" ] || grep -qi " $name\$" "$dir/out" || fail "no $name"
done
[ $failures -eq 0 ] && echo "$number captures, $(wc -l <"$dir/out") kinds of packets: all as they should be"
exit $((failures > 0))
