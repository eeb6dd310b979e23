#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A program sends the same messages within one device and between two hosts. The test captures both and compares them byte for byte.
. "$(dirname "$0")/../lib/common.bash"
cd "$root" || exit 1
block=127.38.$(($$ % 250)) # of loopback addresses, so that two runs at once don't meet
port=$((18600 + $$ % 250)) # likewise: the examples listen at all addresses
need tshark python3 ibv_rc_pingpong

# same WHAT INSIDE BETWEEN LEAST: the messages inside of devices in one capture are those between hosts in the other, and so many
same()
{
    local what=$1 least=$4 n
    "$here/messages.py" "$2" inside >"$dir/inside" || fail "$what: can't be read"
    "$here/messages.py" "$3" between >"$dir/between" || fail "$what: can't be read"
    if [ -n "${any_order:-}" ]; then # what a device does by itself is not in step with its program
        sort -o "$dir/inside" "$dir/inside"
        sort -o "$dir/between" "$dir/between"
    fi
    diff "$dir/inside" "$dir/between" >"$dir/diff" || fail "$what (< within one device, > between hosts): $(head -10 "$dir/diff")"
    n=$(grep -c '^  ' "$dir/inside")
    [ "$n" -ge "$least" ] || fail "$what: only $n messages"
    echo "$what: $n messages"
}

# These do the same within one device and between two hosts, one after the other.
while read -r name least any_order; do
    mkdir -p "$dir/now"
    VT_CAPTURE="-B 64 --before-faults" tests/verbs/run.sh ${SANITIZED:+-p} -b "$BUILD" -a "$block.1" -c "$dir/now" "$name" </dev/null >"$dir/said" 2>&1 ||
        fail "$name: $(tail -5 "$dir/said")"
    same "$name" "$dir/now/$name.pcapng" "$dir/now/$name.pcapng" "$least"
done <<'END_OF_LIST'
test_atomic_write 8
test_layout 20
test_layout_tags 50
test_mw 30
test_tm_rndv 280 any-order
test_uc 20
test_xrc 70
END_OF_LIST
any_order=
if [ -n "${SANITIZED:-}" ]; then
    skip_part "rdma-core's pingpongs: pumice run preloads the library alone, not the sanitizer's"
    exit $((failures > 0))
fi

# These have a server and a client: once both on one host, once on two.
cat >"$dir/pair" <<'END'
client=$1
shift
pumice on 0 -- "$@" -p "$port" </dev/null >"$dir/server" 2>&1 &
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do # until the server listens
    sleep 0.3
    pumice on "$client" -- "$@" -p "$port" "$address" </dev/null >"$dir/client" 2>&1 && wait && exit 0
done
cat "$dir/client"
exit 1
END
export address=$block.1 port
while read -r program; do
    # shellcheck disable=SC2086
    timeout 60 pumice run --addresses "$block.1" --capture "$dir/inside.pcapng" -- sh "$dir/pair" 0 $program </dev/null >"$dir/said" 2>&1 ||
        fail "$program: $(tail -3 "$dir/said")"
    # shellcheck disable=SC2086
    timeout 60 pumice run --addresses "$block.1,$block.2" --capture "$dir/between.pcapng" -- sh "$dir/pair" 1 $program </dev/null >"$dir/said" 2>&1 ||
        fail "$program: $(tail -3 "$dir/said")"
    same "$program" "$dir/inside.pcapng" "$dir/between.pcapng" 20
done <<'END_OF_LIST'
ibv_rc_pingpong -g 0 -n 20 -s 10000
ibv_uc_pingpong -g 0 -n 20 -s 10000
ibv_ud_pingpong -g 0 -n 20
ibv_xsrq_pingpong -g 0 -n 20
END_OF_LIST
exit $((failures > 0))
