#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Tests the tutorial of docs/tag-matching.md. Its outputs and its packets are those of examples/tag_matching.c. Times, and the numbers of
# processes and queue pairs, may differ. ACKs are not compared, because they may come later or together. Packets that are sent again count once.
. "$(dirname "$0")/../lib/common.bash"
. "$lib/captures.bash"
[ -z "${SANITIZED:-}" ] || skip "pumice run preloads the library alone, not the sanitizer's"
page=$root/docs/tag-matching.md
program=$BUILD/examples/tag_matching

block() # NAME: a block of the page
{
    awk -v name="$1" '$0 == "```" { on = 0 } on { print; any = 1 } $0 == "```" name { on = 1 } END { exit !any }' "$page" || fail "no block $1"
}

# Without what differs each time: frame numbers, times, numbers of processes and of queue pairs.
plain()
{
    sed -E 's/^ *[0-9]+ [0-9]+\.[0-9]+ +/packet /; s/ACK .*//; s/pid [0-9]+/pid P/; s/QP([= ])0x[0-9a-f]+/QP\1Q/; s/[0-9.]+ ms ago/T ago/; s/ +/ /g; s/ $//' |
        grep -v ' Acknowledge \|^$'
}

same() # WHAT GOT WANTED
{
    diff -u --label "the page" --label "now" <(plain <<<"$3") <(plain <<<"$2") || fail "$1: not as in docs/tag-matching.md"
}

steps=$(grep -c '^## Step [0-9]*:' "$page")
is "steps of the page" "$steps" 7

# --- the whole program ---
got=$("$pumice" run --hosts 2 --capture "$dir/tags.pcapng" -- "$program") || fail "exit code $?"
wanted="step 1: an empty list"
for ((i = 2; i <= steps; i++)); do
    wanted+=$'\n'$(block "output-$i")
done
same "what it prints" "$got" "$wanted"
same "what it prints with an adapter's limits" "$("$pumice" run --hosts 2 --profile connectx-6 -- "$program")" "$wanted"
if have "packets of the tutorial" tshark; then
    got=$(dissect "$dir/tags.pcapng")
    wanted=
    for i in 2 4 5 6 7; do
        wanted+=$(block "packets-$i")$'\n'
    done
    once='!seen[$0]++'
    same "its packets" "$(plain <<<"$got" | awk "$once")" "$(plain <<<"$wanted" | awk "$once")"
fi

# --- one step, and then a command ---
host0() # STEP COMMAND: what the command says of host 0
{
    "$pumice" run --hosts 2 -- "$program" --step "$1" --show "$2" | sed -n '/^=== host 0/,/^=== host 1/p' | grep -v '^==='
}
for i in 1 2 3; do
    same "the list after step $i" "$(host0 $i 'pumice tm list')" "$(block "list-$i")"
done
same "decisions" "$(host0 7 'pumice tm why')" "$(block why-7)"
has "the rules" "$(host0 7 'pumice tm replay')" " 0 contradictions"

# --- the command line ---
"$program" --step 8 >"$dir/out" 2>&1
is "a step that is not there" $? 2
has "usage" "$("$program" --help)" "usage: tag_matching"
exit $((failures > 0))
