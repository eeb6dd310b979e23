#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Profiles: what ibv_devinfo shows of each, the ways to choose one, programs that work by default and not on a ConnectX, and the GID table of
# a real interface.
. "$(dirname "$0")/../lib/common.bash"
need ibv_devinfo
block=127.93.$(($$ % 256)) # of loopback addresses, so that two runs at once don't meet
export port=$((23600 + $$ % 300))

with() # PROFILE COMMAND...: in a lab of two hosts
{
    local profile=$1
    shift
    "$pumice" run --profile "$profile" --addresses $block.1,$block.2 -- "$@" 2>&1
}
value() # NAME: of ibv_devinfo's output, in $info
{
    sed -n "s/^[[:space:]]*$1:[[:space:]]*\\([^ ]*\\).*/\\1/p" <<<"$info" | head -n 1
}

# --- what it says of itself
while read -r name vendor part sge wr atom tags gids; do
    info=$(with "$name" ibv_devinfo -v)
    is "$name" "$(value vendor_id) $(value vendor_part_id) $(value max_sge) $(value max_qp_wr) $(value max_qp_rd_atom)" \
        "$vendor $part $sge $wr $atom"
    is "$name: tags" "$(value max_num_tags)" "${tags#-}"
    is "$name: GID table" "$(value gid_tbl_len)" "$gids"
done <<END
default 0xffffff 1 32 16384 128 4095 16
connectx-4 0x02c9 4115 30 32768 16 - 255
connectx-6 0x02c9 4123 30 32768 16 127 255
bluefield-3 0x02c9 41692 30 32768 16 127 255
e810 0x8086 5522 13 4063 127 - 32
bcm57508 0x14e4 5968 6 16384 126 - 256
rxe 0xffffff 0 32 32768 128 - 1024
END
info=$(with connectx-6 ibv_devinfo -v)
has "RoCE v2" "$info" "::ffff:$block.1, RoCE v2"
has "RoCE v1" "$info" ", RoCE v1"
hasnt "no RoCE v1" "$(with e810 ibv_devinfo -v)" "RoCE v1"

# --- the ways to choose it
has "status" "$(with e810 pumice status | grep -E "^ *pumice0 .* e810 ")" "127.93"
mkfifo "$dir/ready"
echo "profile = rxe" >"$dir/conf"
shows() # WHAT PROFILE ARGUMENT...: a daemon with these arguments has this profile
{
    local what=$1 profile=$2
    shift 2
    "$BUILD/bin/pumiced" "$@" --socket "$dir/s" --address $block.3 --ready-fd 3 3>"$dir/ready" 2>"$dir/log" &
    read -r -t 20 _ <"$dir/ready"
    has "$what" "$("$pumice" status --json --socket "$dir/s")" "\"profile\": \"$profile\""
    kill $!
    wait $!
}
shows "the file" rxe --config "$dir/conf"
shows "the command line wins" e810 --config "$dir/conf" --profile e810
PUMICED_PROFILE=bcm57508 shows "the environment" bcm57508
shows "none" default
out=$(with connectx-7 true)
is "an unknown one: exit code" $? 125
has "an unknown one" "$out" "expected default, connectx-4, connectx-6, bluefield-3, e810, bcm57508 or rxe"

# --- the reasons, if the user wants them
if have "reasons" ibv_srq_pingpong ibv_rc_pingpong; then
    out=$(PUMICE_VERBOSE=1 with e810 ibv_srq_pingpong -g 0)
    has "no SRQs" "$out" "pumice: Operation not supported: this device has no shared receive queues"
    has "functions that are absent" "$out" "pumice: this device has no XRC (docs/profiles.md)"
    has "a limit" "$(PUMICE_VERBOSE=1 with rxe ibv_rc_pingpong -g 0 -r 40000)" "pumice: Invalid argument: a completion queue with cqe 40001 and comp_vector 0: this device has cqe 1 to 32767, and "
    has "room in queues" "$(PUMICE_VERBOSE=1 with e810 ibv_rc_pingpong -g 0 -r 40000)" "max_recv_wr 40000"
    hasnt "without the variable" "$(with e810 ibv_srq_pingpong -g 0)" "pumice: "
fi

# --- programs that work by default. (Without the option, perftest tells the library which requests it sends, and gets more room.)
if have "perftest" ib_write_bw; then
    pair() # PROFILE ARGUMENT...
    {
        # shellcheck disable=SC2016
        with "$1" sh -c 'pumice on 0 -- timeout 60 ib_write_bw --use_old_post_send -n 9000 -p $port "$@" >/dev/null 2>&1 & for i in $(seq 50); do sleep 0.1
            pumice on 1 -- timeout 60 ib_write_bw --use_old_post_send -n 9000 -p $port "$@" 127.0.0.1 && wait $! && exit 0
            kill -0 $! || exit 1; done; exit 1' "$@"
    }
    for try in "-t 8200 -s 8" "-I 900 -s 8"; do
        # shellcheck disable=SC2086
        pair default $try >"$dir/out"
        is "ib_write_bw $try" $? 0
        # shellcheck disable=SC2086
        pair connectx-6 $try >"$dir/out"
        is "ib_write_bw $try on a ConnectX" $? 1
    done
    pair connectx-6 -t 8000 -s 8 >"$dir/out"
    is "ib_write_bw -t 8000 on a ConnectX" $? 0
fi

# --- a real interface
ns=pprofile$$
also_clean()
{
    ip netns del $ns 2>/dev/null
}
if [ "$(id -u)" != 0 ] || ! have "a real interface" ip ibv_asyncwatch script || ! ip netns add $ns 2>/dev/null ||
    ! ip -n $ns link add e0 type veth peer name e1 2>/dev/null; then
    skip_part "a real interface: not root, or no network namespaces"
    exit $((failures > 0))
fi
ip netns exec $ns sysctl -qw net.ipv6.conf.e0.accept_dad=0 net.ipv6.conf.e0.addr_gen_mode=1
ip -n $ns link set lo up && ip -n $ns link set e1 up && ip -n $ns link set e0 up
for address in 10.81.1.1/24 10.81.1.2/24 "fd81::1/64 nodad" "fe80::81/64 nodad"; do
    # shellcheck disable=SC2086
    ip -n $ns address add dev e0 $address
done
ip netns exec $ns "$BUILD/bin/pumiced" --profile connectx-6 --socket "$dir/s" --address 10.81.1.1 --ready-fd 3 3>"$dir/ready" 2>"$dir/log" &
pids+=($!)
read -r -t 20 _ <"$dir/ready" || fail "the daemon does not start: $(cat "$dir/log")"
library=$BUILD/lib/pumice/libibverbs.so.1
asan=$(ldd "$library" | awk '/libasan/ { print $3 }')
preloaded() { LD_PRELOAD=${asan:+$asan:}$library PUMICE_SOCKET=$dir/s "$@"; }
of() # VERSION: the GIDs of this version of RoCE
{
    preloaded ibv_devinfo -v | sed -n "s/.*GID\\[ *\\([0-9]*\\)\\]:[[:space:]]*\\([^,]*\\), RoCE $1\$/\\1=\\2/p" | xargs
}
all=$(of v2)
for gid in "1=::ffff:10.81.1.1" "=::ffff:10.81.1.2" "=fd81::1" "=fe80::81"; do
    has "all addresses" "$all" "$gid"
done
is "as many of RoCE v1" "$(of v1 | wc -w)" "$(wc -w <<<"$all")"
is "their indexes are even" "$(of v1 | xargs -n 1 | cut -d= -f1 | xargs)" "0 2 4 6"
preloaded exec script -qfec ibv_asyncwatch /dev/null >"$dir/events" 2>&1 </dev/null &
pids+=($!)
for _ in $(seq 100); do
    [ -s "$dir/events" ] && break
    sleep 0.1
done
ip -n $ns address add fd81::2/64 dev e0 nodad
for _ in $(seq 100); do
    grep -aq GID_CHANGE "$dir/events" && break
    sleep 0.1
done
has "an event" "$(cat "$dir/events")" IBV_EVENT_GID_CHANGE
has "a new address" "$(of v2)" "9=fd81::2"
exit $((failures > 0))
