#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Every program of tests/verbs is captured while it runs, at both of its hosts, before faults strike: so all is there that the engine makes.
# The linter accepts each capture, and to tshark with the dissector nothing in it is malformed.
# Usage: captured.sh [--full]   Without --full what takes long is left out, only some programs use the socket within a device, too, and
# of each capture tshark reads the beginning.
. "$(dirname "$0")/common.bash"
. "$here/captures.bash"
full=${1:-}
cd "$here/../.." || exit 1
block=$(($$ % 250)) # of loopback addresses, so that two runs at once don't meet
number=0 speaking=0
need tshark mergecap editcap

# These have nothing to send, or send nothing on purpose.
silent=" test_files test_layout_explain test_limits test_names test_no_daemon test_objects test_tm test_xrc_domain "
# More packets in a moment than a capture can hold: what is lost is counted, and excuses what it explains.
torrent=" test_big "
# These take seconds each, and send what others send, too.
long=" test_fork test_tm_death test_tm_many test_tm_match "
# Within one device by the socket: one program of each kind.
wire=" test_channel test_mw test_post test_src test_tm_own test_uc test_ud test_xrc "
beginning=2000 # packets

# capture NAME OPTION...: runs the program; pumiced gets the options. Each run has addresses of its own, so that all captures can be merged
capture()
{
    local name=$1 file
    shift
    number=$((number + 1))
    mkdir -p "$dir/now"
    VT_TIMEOUT=100 VT_CAPTURE="-B 64 --before-faults" VT_DAEMON="$BUILD/bin/pumiced $*" \
        tests/verbs/run.sh ${SANITIZED:+-p} -b "$BUILD" -a "127.36.$block.$number" -c "$dir/now" "$name" >"$dir/said" 2>&1 ||
        echo "($name $*: fails; that is not for this test to judge)"
    file=$dir/captured.$number.pcapng
    mv "$dir/now/$name.pcapng" "$file" || { fail "$name $*: no capture: $(tail -5 "$dir/said")"; return; }
    judge "$name $*" "$file"
}

judge() # WHAT FILE
{
    local what=$1 file=$2 packets
    pumice lint "$file" >"$dir/out" || fail "$what: $(head -4 "$dir/out"; tail -2 "$dir/out")"
    packets=$(sed -n 's/.* \([0-9]*\) RoCEv2 packets.*/\1/p' "$dir/out")
    echo "$what: ${packets:-0} packets"
    [ "${packets:-0}" -eq 0 ] || speaking=$((speaking + 1))
    if grep -q 'has lost' "$dir/out" && [[ $torrent != *" ${what%% *} "* ]]; then
        fail "$what: $(tail -1 "$dir/out")"
    fi
    if [ -z "$full" ] && [ "${packets:-0}" -gt $beginning ]; then
        editcap -r "$file" "$dir/cut.pcapng" 1-$beginning && mv "$dir/cut.pcapng" "$file"
    fi
}

for program in "$BUILD"/tests/verbs/test_*; do
    name=${program##*/}
    [[ $name != *.d ]] || continue
    if [ -z "$full" ] && [[ $silent$torrent$long == *" $name "* ]]; then
        continue
    fi
    capture "$name" ""
    if [ -n "$full" ] || [[ $wire == *" $name "* ]]; then
        capture "$name" --loopback wire
    fi
done
[ "$speaking" -ge 35 ] || fail "only $speaking captures with packets, of $number"

# One for all, since it takes tshark longer to start than to read one.
mergecap -w "$dir/all.pcapng" "$dir"/captured.*.pcapng || fail "mergecap"
dissect "$dir/all.pcapng" -Y "$wrong" >"$dir/out"
[ ! -s "$dir/out" ] || fail "the dissector: $(head -5 "$dir/out")"
dissect "$dir/all.pcapng" -T fields -e pumice.bth.name -e pumice.icrc.status | sort | uniq -c | sort -rn >"$dir/names"
grep -vE $'^ *[0-9]+ [^\t]+\t1$' "$dir/names" >"$dir/out" && fail "without a name or with a wrong ICRC: $(head -5 "$dir/out")"
for name in "RC SEND Only" "RC RDMA WRITE Last" "RC RDMA READ response Middle" "RC ATOMIC Acknowledge" "RC ATOMIC WRITE" "RC FLUSH" \
    "UC SEND Only" "UD SEND Only" "XRC SEND Only"; do
    grep -qi " $name" "$dir/names" || fail "no $name among: $(cut -c 9- "$dir/names" | tr -s '\t\n' ' ,')"
done
[ $failures -eq 0 ] && echo "$number captures, $(wc -l <"$dir/names") kinds of packets: all as they should be"
exit $((failures > 0))
