#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Captures of programs that connect by rdma_cm: the linter accepts them, tshark shows the messages in their order, and the comments of the
# packets describe them. Two hosts, one device, faults, datagrams, a refused connection.
. "$(dirname "$0")/../lib/common.bash"
. "$lib/captures.bash"
need tshark rping ucmatose udaddy
block=127.59.$(($$ % 250))

# lab NAME HOSTS OPTION... -- SERVER / CLIENT: runs both programs, the server on host 0 and the client on the last one, and captures
# what they send to $dir/NAME.pcapng. {} in a command is the address of host 0.
lab()
{
    local name=$1 hosts=$2 options=() server=() client=() at=server word
    shift 2
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    for word; do
        word=${word//'{}'/$block.1}
        case $at,$word in
        server,/) at=client ;;
        server,*) server+=("$word") ;;
        *) client+=("$word") ;;
        esac
    done
    local addresses=$block.1
    [ "$hosts" -eq 1 ] || addresses+=,$block.2
    # shellcheck disable=SC2016
    timeout 120 "$pumice" run --addresses "$addresses" --capture "$dir/$name.pcapng" "${options[@]}" -- bash -c '
        host=$1 server=$2 client=$3
        pumice on 0 -- $server >"$0.server" 2>&1 &
        for i in $(seq 100); do
            pumice status --json --host 0 --only listeners | grep -q "\"port\": 7[0-9]*" && break
            sleep 0.05
        done
        pumice on "$host" -- $client >"$0.client" 2>&1 || echo "the client fails: $(tail -3 "$0.client")"
        wait' "$dir/$name" $((hosts - 1)) "${server[*]}" "${client[*]}" >"$dir/out" 2>&1
    [ ! -s "$dir/out" ] || fail "$name: $(head -5 "$dir/out")"
}

messages() # NAME: the messages in the capture as tshark with our dissector names them, in a line
{
    dissect "$dir/$1.pcapng" -o pumice.icrc:FALSE -Y pumice.cm.message -T fields -e pumice.cm.message | while read -r code; do
        case $code in
        0x0010) echo REQ ;;
        0x0012) echo REJ ;;
        0x0013) echo REP ;;
        0x0014) echo RTU ;;
        0x0015) echo DREQ ;;
        0x0016) echo DREP ;;
        0x0017) echo SIDR_REQ ;;
        0x0018) echo SIDR_REP ;;
        *) echo "$code" ;;
        esac
    done | paste -sd ' '
}

comments() # NAME: the comments of these packets
{
    dissect "$dir/$1.pcapng" -o pumice.icrc:FALSE -Y pumice.cm.message -T fields -e frame.comment
}

for hosts in 2 1; do
    name=rping$hosts
    lab $name $hosts -- rping -s -a {} -p 7471 -C 3 / rping -c -a {} -p 7471 -C 3
    accepted "$dir/$name.pcapng" 20
    is "$name: messages" "$(messages $name)" "REQ REP RTU DREQ DREP"
    comments $name >"$dir/comments"
    has "$name: the REQ" "$(sed -n 1p "$dir/comments")" "QP 0x000001, REQ: service ID 0x0000000001061d2f (TCP port 7471), from $block.$hosts port "
    has "$name: the REP" "$(sed -n 2p "$dir/comments")" "QP 0x000001, REP: comm IDs 0x"
    has "$name: the RTU" "$(sed -n 3p "$dir/comments")" "QP 0x000001, RTU: comm IDs 0x"
    has "$name: the DREQ" "$(sed -n 4p "$dir/comments")" "QP 0x000001, DREQ: comm IDs 0x"
    has "$name: the DREP" "$(sed -n 5p "$dir/comments")" "QP 0x000001, DREP: comm IDs 0x"
    # The QP and the starting PSN of the REQ: the first request of the server is a packet to this QP with this PSN.
    qp=$(sed -n '1s/.*RC, QP 0x0*\([0-9a-f]*\), .*/0x\1/p' "$dir/comments")
    psn=$(sed -n '1s/.*starting PSN 0x0*\([0-9a-f]*\).*/0x\1/p' "$dir/comments")
    first=$(dissect "$dir/$name.pcapng" -o pumice.icrc:FALSE -Y "infiniband.bth.destqp == $qp && infiniband.bth.opcode < 0x0d" -T fields \
        -e infiniband.bth.psn | head -1)
    is "$name: the first PSN to QP $qp" "$((${first:-0}))" "$((psn))"
    [ "$hosts" -eq 2 ] || has "within the device" "$(sed -n 1p "$dir/comments")" "inside of the device"
    # tshark's own fields of the same messages.
    got=$(shark -r "$dir/$name.pcapng" -Y infiniband.cm.req -T fields -e infiniband.cm.req.startpsn)
    is "$name: tshark's starting PSN" "$((${got:-0}))" "$((psn))"
done

cat >"$dir/twice" <<END
rping -c -a $block.1 -p 7999 -C 1
exec rping -c -a $block.1 -p 7471 -C 1
END
lab refused 2 -- rping -s -a {} -p 7471 -C 1 / sh "$dir/twice"
accepted "$dir/refused.pcapng" 10
is "refused: messages" "$(messages refused)" "REQ REJ REQ REP RTU DREQ DREP"
has "refused: the REJ" "$(comments refused | sed -n 2p)" "REJ of a REQ: comm IDs 0x00000000, 0x"
has "refused: the reason" "$(comments refused | sed -n 2p)" "reason 8 (invalid service ID)"
has "refused: a note" "$("$pumice" lint --notes "$dir/refused.pcapng")" "cm-rej"

lab lost 2 --fault 'drop=REQ#1;drop=REP#1;drop=RTU#1;drop=DREQ#1;drop=DREP#1' -- rping -s -a {} -p 7471 -C 3 / rping -c -a {} -p 7471 -C 3
accepted "$dir/lost.pcapng" 20
has "lost: a note" "$("$pumice" lint --notes "$dir/lost.pcapng")" "cm-repeat"

lab faulty 2 --fault loss=5%,dup=2%,reorder=5%,corrupt=1% -- ucmatose -p 7471 -c 8 -C 8 / ucmatose -s {} -p 7471 -c 8 -C 8
wrong=_ws.lua.error accepted "$dir/faulty.pcapng" 100 --faulty

lab udaddy 2 -- udaddy -C 3 / udaddy -s {} -C 3
accepted "$dir/udaddy.pcapng" 6
is "udaddy: messages" "$(messages udaddy)" "SIDR_REQ SIDR_REP"
has "udaddy: the SIDR_REQ" "$(comments udaddy | sed -n 1p)" "SIDR_REQ: service ID 0x0000000001111c06 (UDP port 7174), from $block.2 port "
has "udaddy: the SIDR_REP" "$(comments udaddy | sed -n 2p)" "status 0 (valid queue pair), QP 0x"
exit $((failures > 0))
