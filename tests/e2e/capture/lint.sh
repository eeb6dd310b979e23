#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Tests the linter. It accepts correct captures: the scenes of the dissector's test and the simulator's exchanges. lint_gen.c makes captures
# with one fault each; the linter reports exactly the rule that the fault breaks.
. "$(dirname "$0")/../lib/common.bash"
need python3

# rules SEVERITY OPTION... FILE: which rules are broken, each once
rules()
{
    local severity=$1
    shift
    "$pumice" lint --json --notes "$@" | python3 -c '
import json, sys
print(" ".join(sorted({f["rule"] for f in json.load(sys.stdin)["findings"] if f["severity"] == sys.argv[1]})))' "$severity"
}

# 1. One fault each. A rule whose findings are notes must be there, and no error with it.
"$BUILD/tests/e2e/capture/lint_gen" good "$dir/good.pcapng" || fail "not generated"
is "without fault" "$(rules error "$dir/good.pcapng") $(rules note "$dir/good.pcapng")" " "
faults=0
while read -r name rule; do
    "$BUILD/tests/e2e/capture/lint_gen" "$name" "$dir/fault.pcapng" || { fail "$name: not generated"; continue; }
    severity=$("$pumice" lint --rules | awk -v rule="$rule" '$1 == rule { print $2 }')
    if [ "$rule" = none ]; then # right, but not simple
        is "$name" "$(rules error "$dir/fault.pcapng")" ""
        continue
    elif [ "$severity" = error ]; then
        is "$name" "$(rules error "$dir/fault.pcapng")" "$rule"
    else
        is "$name, errors" "$(rules error "$dir/fault.pcapng")" ""
        [[ " $(rules note "$dir/fault.pcapng") " == *" $rule "* ]] || fail "$name: no note $rule"
    fi
    faults=$((faults + 1))
    echo "$rule" >>"$dir/tested"
done < <("$BUILD/tests/e2e/capture/lint_gen" --list)

# A NAK for a wrong length: its code may be wrong, too.
for name in nak-length nak-right-code; do
    "$BUILD/tests/e2e/capture/lint_gen" $name "$dir/fault.pcapng"
    [[ " $(rules note "$dir/fault.pcapng") " == *" nak-code "* ]] && echo $name
done >"$dir/codes"
is "wrong NAK codes" "$(cat "$dir/codes")" nak-length

# 2. All rules are tested, here or in tests/unit/pcap: those about frames in test_lint.c, about connection management in test_lint_cm.c.
for rule in $("$pumice" lint --rules | awk '{ print $1 }'); do
    grep -qx "$rule" "$dir/tested" || grep -q "[\" ]$rule[\" ]" "$root"/tests/unit/pcap/test_lint*.c || fail "rule $rule is not tested"
done

# 3. Options and exit codes.
"$BUILD/tests/e2e/capture/lint_gen" unseen "$dir/unseen.pcapng"
"$pumice" lint "$dir/unseen.pcapng" >/dev/null
is "violations" $? 1
"$pumice" lint --incomplete "$dir/unseen.pcapng" >/dev/null
is "incomplete capture" $? 0
"$BUILD/tests/e2e/capture/lint_gen" icrc "$dir/icrc.pcapng"
"$pumice" lint --faulty "$dir/icrc.pcapng" >/dev/null
is "faulty network" $? 0
"$pumice" lint - <"$dir/good.pcapng" >/dev/null
is "standard input" $? 0
head -c 3000 "$dir/good.pcapng" >"$dir/half.pcapng"
"$pumice" lint "$dir/half.pcapng" >/dev/null 2>&1
is "half a file" $? 2
"$pumice" lint "$dir/none" >/dev/null 2>&1
is "no file" $? 2
"$pumice" lint "$here/lint.sh" >/dev/null 2>&1
is "no capture" $? 2
"$BUILD/tests/e2e/capture/lint_gen" tm-rvh "$dir/tm.pcapng"
is "no tag matching" "$(rules error --tm off "$dir/tm.pcapng")" ""
is "tag matching elsewhere" "$(rules error --tm 0x22,0x333 "$dir/tm.pcapng")" tm-fin-unasked
is "tag matching here" "$(rules error --tm 0x11,34 "$dir/tm.pcapng")" tm-short

# 4. Other formats: classic pcap, without directions and comments.
if have "classic pcap" tshark; then
    tshark -r "$dir/good.pcapng" -F pcap -w "$dir/good.pcap" 2>/dev/null
    "$pumice" lint "$dir/good.pcap" >/dev/null
    is "classic pcap" $? 0
    tshark -r "$dir/unseen.pcapng" -F pcap -w "$dir/unseen.pcap" 2>/dev/null
    is "classic pcap with a gap" "$(rules error "$dir/unseen.pcap")" ack-unseen
fi

# 5. Correct traffic. The simulator's network damages some packets, and only that.
for scene in $("$BUILD/tests/e2e/capture/scene_gen" --list); do
    "$BUILD/tests/e2e/capture/scene_gen" "$scene" "$dir/scene.pcapng"
    is "scene $scene" "$(rules error --faulty "$dir/scene.pcapng")" ""
done
seeds=${LINT_SEEDS:-350}
"$BUILD/tests/sim/sim" --keep --seed 1 -n "$seeds" --out "$dir/sim" >"$dir/out" || fail "simulator: $(tail -3 "$dir/out")"
"$BUILD/tests/sim/sim" --keep --case loss-mixed --mask 0 --out "$dir/sim" >/dev/null
captures=0
for file in "$dir"/sim/*.pcapng; do
    "$pumice" lint --faulty "$file" >"$dir/out" 2>&1
    status=$?
    captures=$((captures + 1))
    case ${file##*/} in
    rogue-*) [ $status -le 1 ] || fail "exit code $status: $(head -3 "$dir/out")" ;; # somebody writes nonsense
    *) [ $status -eq 0 ] || fail "$(head -3 "$dir/out")" ;;
    esac
done
[ $captures -gt "$seeds" ] || fail "only $captures captures of the simulator"

[ $failures -eq 0 ] && echo "$faults faults found, each by its rule; $captures exchanges of the simulator accepted"
exit $((failures > 0))
