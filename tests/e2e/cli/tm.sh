#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Tests pumice tm replay: a saved trace of the race that synchronization prevents, and the same trace with decisions that break the rules.
. "$(dirname "$0")/../lib/common.bash"
cd "$root" || exit 1

"$pumice" tm replay --input tests/e2e/cli/tm/race.json >"$dir/out" || fail "exit code $?"
diff -u tests/e2e/cli/tm/race.out "$dir/out" || fail "the diagram is not as expected"
"$pumice" tm replay --input tests/e2e/cli/tm/race.json --step 18 >"$dir/out" || fail "step: exit code $?"
diff -u tests/e2e/cli/tm/race_step.out "$dir/out" || fail "the list after event 18 is not as expected"
"$pumice" tm replay --input tests/e2e/cli/tm/race.json --step 99 >/dev/null 2>&1 && fail "there is no event 99"
"$pumice" tm replay --input "$dir/nothing" >/dev/null 2>&1 && fail "there is no such file"
"$pumice" tm trace --check >/dev/null 2>&1 && fail "--check is for replay"

# broken WHAT SCRIPT TEXT: with the events changed by the Python statement, where e[n] is event n, replay must say TEXT
broken()
{
    python3 -c "
import json, sys
d = json.load(open('tests/e2e/cli/tm/race.json'))
l = d['hosts'][0]['tm']['devices'][0]['lists'][0]
e = l['events']
$2
json.dump(d, open(sys.argv[1], 'w'))" "$dir/broken.json" || fail "$1: can't be made"
    "$pumice" tm replay --check --input "$dir/broken.json" >"$dir/out" && fail "$1: it is not noticed"
    grep -qF -- "$3" "$dir/out" || { fail "$1: not said"; cat "$dir/out"; }
}
broken "a later entry matched" "e[13]['handle'] = '0x1003'" "must match entry 0x1002, which is the first"
broken "a pending entry matched" "e[5].update(event='match'); del e[6]" "no active entry matches tag 0x5"
broken "an active entry passed over" "e[7].update(event='unexpected'); del e[7]['handle'], e[8]" "must match entry 0x1000"
broken "an entry active too early" "e[4]['active'] = True" "entry 0x1001 should be pending"
broken "a message not counted" "e[3]['hw_cnt'] = 0" "hw_cnt 1 and inflight 0 are right"
broken "entries that stay pending" "del e[23]" "2 entries should have become active"
broken "a deletion that came too late" "e[10]['why'] = 'stale-handle'" "so it can be deleted"
broken "an entry that is gone" "del l['entries'][0]" "entries are left"

# Without its beginning nothing is judged, and what is older is marked.
python3 -c "
import json
d = json.load(open('tests/e2e/cli/tm/race.json'))
l = d['hosts'][0]['tm']['devices'][0]['lists'][0]
del l['events'][:6]
json.dump(d, open('$dir/late.json', 'w'))"
"$pumice" tm replay --input "$dir/late.json" >"$dir/out" || fail "a late beginning: exit code $?"
grep -q '0x1000? 0x1001?' "$dir/out" && grep -q 'nothing is judged' "$dir/out" || { fail "a late beginning"; cat "$dir/out"; }
exit $((failures > 0))
