#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# pumice run --record, pumice replay and pumice shrink: a replay strikes the same packets, although QP numbers and PSNs differ; shrink finds
# the two packets of thousands that a planted bug needs; wrong recordings are refused.
. "$(dirname "$0")/../lib/common.bash"
lost_twice=$BUILD/examples/lost_twice
cd "$dir" || exit 1

decisions() # DIR: how many decisions there are
{
    wc -l <"$1/decisions.jsonl"
}

# --- a program with a bug
timeout 60 "$pumice" run "$lost_twice" >out 2>&1 || fail "without faults: $(cat out)"
timeout 60 "$pumice" run --fault loss=1% --record first "$lost_twice" >out 2>&1; is "with loss" $? 1
has "with loss" "$(cat out)" "faults recorded in first"
has "with loss" "$(cat out)" "to repeat this run: pumice replay first"
all=$(decisions first)
[ "$all" -gt 20 ] && [ "$all" -lt 80 ] || fail "$all of about 4000 packets lost"
timeout 60 "$pumice" replay --record again first >out 2>&1; is "replay" $? 1
has "replay" "$(cat out)" "all $all recorded faults struck"
cmp first/decisions.jsonl again/decisions.jsonl || fail "the replay struck other packets"
# With other faults, other packets.
timeout 60 "$pumice" run --fault loss=1% --seed 2 --record other "$lost_twice" >out 2>&1
cmp -s first/decisions.jsonl other/decisions.jsonl && fail "another seed strikes the same packets"

timeout 300 "$pumice" shrink --from first -o two >out 2>&1; is "shrink" $? 0
is "faults that are left" "$(decisions two)" 2
has "shrink" "$(cat out)" "2 of $all faults are enough"
has "shrink" "$(cat out)" "to repeat: pumice replay two"
grep -q '^host 0: request [0-9]* of QP 2 of program 1 is lost (UD SEND only)$' out || fail "no lost answer: $(cat out)"
has "output of the command" "$(cat two/output.txt)" "wrong: the counter is 2001"
is "files of the result" "$(find two -mindepth 1 -printf '%f\n' | sort | tr '\n' ' ')" "decisions.jsonl output.txt run.json "
timeout 60 "$pumice" replay two >out 2>&1; is "replay of the result" $? 1
has "replay of the result" "$(cat out)" "wrong: the counter is 2001"
# Each of the two alone does no harm.
for n in 1 2; do
    cp -r two "one$n"
    sed -i "${n}d" "one$n/decisions.jsonl"
    timeout 60 "$pumice" replay "one$n" >out 2>&1; is "without fault $n" $? 0
done
timeout 300 "$pumice" shrink --output direct --seeds 3 --fault loss=0.2% -- "$lost_twice" >out 2>&1; is "shrink with a new run" $? 0
is "faults that are left" "$(decisions direct)" 2

# --- a program over RC, whose QP numbers and PSNs are random, and a capture that the linter accepts
export -f await_listener
# shellcheck disable=SC2016
rc=(bash -c 'pumice on 0 -- ibv_rc_pingpong -g 0 -p $0 -s 8192 -n 200 >/dev/null & await_listener $0; pumice on 1 -- ibv_rc_pingpong -g 0 -p $0 -s 8192 -n 200 127.0.0.1 >/dev/null; wait' $((22000 + $$ % 2000)))
if have "a program over RC" ibv_rc_pingpong; then
    block=127.57.$(($$ % 250))
    rc[2]=${rc[2]/127.0.0.1/$block.1}
    timeout 60 "$pumice" run --addresses "$block.1,$block.2" --fault 'loss=1%,dup=1%,corrupt=1%,truncate=1%,reorder=1%,ce=1%;rnr=5%' --record rc "${rc[@]}" >out 2>&1 || fail "rc: $(cat out)"
    for fault in lost twice damaged truncated refused delay_ns marked; do
        grep -q "$fault" rc/decisions.jsonl || fail "no packet is $fault: $(cat rc/decisions.jsonl)"
    done
    timeout 60 "$pumice" replay --capture rc.pcapng --capture-lost rc >out 2>&1 || fail "replay of rc: $(cat out)"
    struck=$(sed -n 's/.* \(all\|[0-9]* of\) \([0-9]*\) recorded faults struck.*/\1 \2/p' out)
    case $struck in
    "all "*) ;;
    *" of "*) [ $((10 * ${struck%% *})) -ge $((7 * ${struck##* })) ] || fail "rc: only $struck faults struck: $(cat out)" ;;
    *) fail "no count: $(cat out)" ;;
    esac
    "$pumice" lint rc.pcapng >out || fail "the capture of the replay: $(tail -3 out)"
fi

# Rules for the link stay in a replay, and those for packets do not, also if `pumice fault` sets them. An unkind device is unkind again.
cp -r two link
sed -i 's/"--fault=[^"]*"/"--fault=loss=100%;link=down,from=0ms", "--unkind"/' link/run.json
: >link/decisions.jsonl
timeout 60 "$pumice" replay link -- ibv_devinfo >out 2>err
has "link down in a replay" "$(cat out)" PORT_DOWN
has "an unkind device in a replay" "$(cat err)" "the devices are unkind"
sed -i 's/"--fault=[^"]*"/"--fault=loss=100%"/' link/run.json
# shellcheck disable=SC2016
timeout 60 "$pumice" replay link -- sh -c 'pumice fault loss=100% >/dev/null && "$0"' "$lost_twice" >out 2>&1 || fail "rules for packets in a replay: $(cat out)"

# A recording has the text of a script. Its packets are struck again, and its link goes down again.
echo 'after 100 packets: drop 1 # one of them' >script
timeout 60 "$pumice" run --script script --record scripted "$lost_twice" >out 2>&1 || fail "a script: $(cat out)"
is "faults of a script" "$(decisions scripted)" 1
rm script
timeout 60 "$pumice" replay scripted >out 2>&1 || fail "replay of a script: $(cat out)"
has "replay of a script" "$(cat out)" "all 1 recorded faults struck"
sed -i 's/"script": "[^"]*"/"script": "at 0ms: link down"/' scripted/run.json
timeout 60 "$pumice" replay scripted -- sh -c 'sleep 0.2; ibv_devinfo' >out 2>err
has "link down by a script in a replay" "$(cat out)" PORT_DOWN

# It also has what a network lost and marked. In a replay, the network loses and marks these packets, and no others.
cat >burst.sh <<'SH'
pumice on 0 -- "$endurance" -p "$1" >/dev/null &
sleep 0.4
pumice on 1 -- "$endurance" -p "$1" -n 300 -s 8192 -S 8192 -m 1024 -o write 127.0.0.1 >/dev/null || exit 3
wait
pumice status --json | python3 -c 'import json, sys
hosts = [host["status"]["devices"][0]["counters"] for host in json.load(sys.stdin)["hosts"]]
print("dropped", sum(h["net_dropped"] for h in hosts), "marked", sum(h["net_marked"] for h in hosts))'
SH
export endurance=$BUILD/tests/verbs/rdma_endurance
burst=(bash ./burst.sh $((26000 + $$ % 2000)))
if have "a network that loses" python3; then
    echo 'to 0: rate 100Mbit, latency 10us, queue 6kB, mark 2kB' >net
    timeout 60 "$pumice" run --hosts 2 --ecn=on --net net --record lossy "${burst[@]}" >out 2>&1 || fail "a network that loses: $(cat out)"
    rm net
    lost=$(grep -c '"fault": "lost"' lossy/decisions.jsonl)
    marked=$(grep -c '"marked": true' lossy/decisions.jsonl)
    [ "$lost" -gt 0 ] && [ "$marked" -gt 0 ] || fail "a network that loses: $lost lost, $marked marked"
    # A packet that is marked and then lost has one fault.
    set -- $(sed -n 's/^dropped \([0-9]*\) marked \([0-9]*\)$/\1 \2/p' out)
    is "packets that the network lost" "$lost" "$1"
    [ "$marked" -le "$2" ] && [ $((marked + lost)) -ge "$2" ] || fail "$marked marked packets recorded, $2 were marked"
    timeout 60 "$pumice" replay lossy >out 2>&1 || fail "replay of a network that loses: $(cat out)"
    grep -q '^dropped 0 marked 0$' out || fail "the network decides in a replay: $(cat out)"
    grep -q 'recorded faults struck' out && ! grep -q ' 0 of [0-9]* recorded' out || fail "replay of a network that loses: $(cat out)"
    : >lossy/decisions.jsonl
    timeout 60 "$pumice" replay lossy >out 2>&1 || fail "replay without decisions: $(cat out)"
    grep -q '^dropped 0 marked 0$' out || fail "the network decides in a replay: $(cat out)"
fi

# It also has the text of a network.
echo 'from each: rate 10Gbit, latency 1us' >net
if timeout 60 "$pumice" run --net net --record emulated true >out 2>&1; then
    rm net
    timeout 60 "$pumice" replay emulated >out 2>&1 || fail "replay with a network: $(cat out)"
else
    fail "a network: $(cat out)"
fi

# --- what a replay says
cp -r two changed
# A decision about a packet that no run has, one about another kind of packet, and one about a host that is not there.
sed -i 's/"packet": [0-9]*,/"packet": 1000000,/; q' changed/decisions.jsonl
sed -n '2s/"opcode": "UD SEND only"/"opcode": "RC ACK"/; 2s/RC ACK/RC Acknowledge/; 2p' two/decisions.jsonl >>changed/decisions.jsonl
sed -n '1s/"host": 0/"host": 9/p' two/decisions.jsonl >>changed/decisions.jsonl
sed -i 's/"pumice": "[^"]*"/"pumice": "0.0.7"/; s/"hosts": 1/"hosts": 4/; s/xxh64:[0-9a-f]*/xxh64:0/' changed/run.json
timeout 60 "$pumice" replay changed >out 2>&1; is "replay with other decisions" $? 0
for part in "note: version of Pumice: 0.0.7 in the recording" "note: hosts: 4 in the recording, 1 now" "lost_twice has changed since the recording" \
    "note: no such packet: host 0: request 1000000" "note: another kind of packet was sent" "1 decisions are about hosts" "0 of 3 recorded faults struck"; do
    has "replay with other decisions" "$(cat out)" "$part"
done
timeout 60 "$pumice" replay two -- sh -c 'exit 9' >out 2>&1; is "another command" $? 9
timeout 60 "$pumice" run --replay two "$lost_twice" >out 2>&1; is "run --replay" $? 1

# --- wrong recordings and command lines
refuses() # TEXT COMMAND...
{
    local wanted=$1 out
    shift
    out=$(timeout 60 "$@" 2>&1); is "$*" $? 125
    has "$*" "$out" "$wanted"
}
refuses "can't read nowhere/run.json" pumice replay nowhere
refuses "can't read nowhere/run.json" pumice run --replay nowhere true
refuses "no recording given" pumice replay
mkdir other_files && touch other_files/a
refuses "has other files and no recording" pumice run --record other_files true
touch a_file
refuses "is no directory" pumice run --record a_file true
refuses "can't make the directory" pumice run --record nowhere/dir true
refuses "argument 1 of the command is not UTF-8" pumice run --record new true $'\xff'
cp -r two bad
echo '{"host": 0}' >>bad/decisions.jsonl
refuses 'bad/decisions.jsonl: line 3: "stream" is not one of' pumice replay bad
cp two/decisions.jsonl bad
sed 's/"--seed=1"/"--capture=\/tmp\/x"/' two/run.json >bad/run.json
refuses "no option that a recording may have" pumice replay bad
sed 's/"version": 1/"version": 2/' two/run.json >bad/run.json
refuses "another version of the format" pumice replay bad
echo '{' >bad/run.json
refuses "bad/run.json: line" pumice replay bad
refuses "no command given" pumice shrink --times 3
refuses "--times: invalid value" pumice shrink --times 0 true
refuses "--from takes the options of its recording" pumice shrink --from two --hosts 2 -- true
refuses "unrecognized option" pumice shrink --no-such-option -- true
timeout 60 "$pumice" shrink --fault loss=1% -- true >out 2>&1; is "a command that never fails" $? 1
has "a command that never fails" "$(cat out)" "did not fail in 1 run:"
timeout 60 "$pumice" shrink --fault loss=1% -- false >out 2>&1; is "a command that always fails" $? 1
has "a command that always fails" "$(cat out)" "fails without faults, too"
exit $((failures > 0))
