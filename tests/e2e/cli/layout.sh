#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Tests pumice layout explain: the worked examples of docs/layouts.md, as a whole and offset by offset, and its answers to wrong input.
. "$(dirname "$0")/../lib/common.bash"
cd "$root" || exit 1

for expected in tests/e2e/cli/layouts/*.out; do
    name=${expected##*/}
    name=${name%.out}
    "$pumice" layout explain "examples/layouts/$name.json" >"$dir/out" 2>&1 || fail "$name: exit code $?"
    diff -u "$expected" "$dir/out" || fail "$name: not as expected"
done

# at FILE WINDOW OFFSET ADDRESS...: where the bytes at an offset, and at those that follow, are
at()
{
    local file=$1 window=$2 off=$3 address got
    shift 3
    for address; do
        got=$("$pumice" layout explain -w "$window" "examples/layouts/$file.json" "$off" 1 | awk 'END { print $3 }')
        [ "$got" = "$address" ] || fail "$file, $window, offset $off: $got instead of $address"
        off=$((off + 1))
    done
}
at column column 0 0x1008
at column column 8 0x1030
at column column 16 0x1058
at column column 19 0x105b
at column column 24 0x1080
at face part 0 0x48
at face part 8 0x70
at face part 16 0xe8
at face part 20 0xec
at face part 24 0x110
at face part 32 0x188
at face part 40 0x1b0
at composite message 99 0x10063 0x20000
at composite message 149 0x20031 0x30000
at two_to_one stream 0 0x1000
at two_to_one stream 4 0x1010
at two_to_one stream 8 0x2000
at two_to_one stream 16 0x1020
at two_to_one stream 20 0x1030 0x1031 0x1032
at two_to_one stream 24 0x2008 0x2009 0x200a 0x200b
at uneven stream 0 0x1000
at uneven stream 4 0x2000
at uneven stream 8 0x1010
at uneven stream 12 0x1020
at in_turn both 7 0x1007 0x1040
at in_turn both 15 0x1047 0x100a
at in_turn both 24 0x104a
at in_turn both 32 0x1014
at in_turn both 40 0x1054

# refuse WHAT JSON...: exit code 1, and stderr says it
refuse()
{
    local what=$1
    shift
    printf '%s' "$*" >"$dir/bad.json"
    "$pumice" layout explain "$dir/bad.json" >"$dir/out" 2>"$dir/err"
    [ $? -eq 1 ] || fail "accepted, or crashed: $*"
    grep -qF -- "$what" "$dir/err" || fail "instead of '$what': $(cat "$dir/err")"
}
region='"regions": {"m": {"address": 4096, "length": 160}}'
window() # ENTRY
{
    echo "{$region, \"windows\": [{\"name\": \"w\", \"type\": \"${2:-interleaved}\", \"entries\": [$1]}]}"
}
refuse 'must be an object with "windows"' '{}'
refuse 'must be an object with "windows"' '[]'
refuse 'bad.json:1:' '{'
refuse 'bad.json:1:' '{"regions": 1, "regions": 2}'
refuse '"regions" must be an object' '{"windows": [1]}'
refuse '"address" must be given' '{"regions": {"m": {}}, "windows": [1]}'
refuse '"length" must be a number' '{"regions": {"m": {"address": 1, "length": -1}}, "windows": [1]}'
refuse '"length" must be a number' '{"regions": {"m": {"address": 1, "length": "0x1g"}}, "windows": [1]}'
refuse 'beyond 64 bits' '{"regions": {"m": {"address": "0xffffffffffffffff", "length": 2}}, "windows": [1]}'
refuse 'window 0 must have' "{$region, \"windows\": [{}]}"
refuse 'composite or interleaved' "$(window '{}' both)"
refuse '"object" must name' "$(window '{"object": "w"}')"
refuse 'unknown member "strides"' "$(window '{"object": "m", "address": 4096, "length": 8, "strides": 2}')"
refuse 'has no dimensions' "$(window '{"object": "m", "address": 4096, "length": 8}')"
refuse 'has dimensions' "$(window '{"object": "m", "address": 4096, "length": 8, "dimensions": [{"stride": 0, "count": 1}]}' composite)"
refuse 'outside of its object' "$(window '{"object": "m", "address": 4104, "length": 8, "dimensions": [{"stride": 40, "count": 5}]}')"
refuse 'more dimensions' "$(window "{\"object\": \"m\", \"address\": 4096, \"length\": 8, \"dimensions\": [
    $(for i in 1 2 3 4 5 6 7 8; do echo '{"stride": 1, "count": 1},'; done) {\"stride\": 1, \"count\": 1}]}")"
refuse 'no entries' "$(window '')"
"$pumice" layout explain examples/layouts/column.json 20 13 >"$dir/out" 2>&1 && fail "beyond the end"
grep -q 'not within \[0, 32)' "$dir/out" || fail "beyond the end: $(cat "$dir/out")"
"$pumice" layout explain -w nobody examples/layouts/column.json >"$dir/out" 2>&1 && fail "no such window"

# A billion items, of which two are shown.
window '{"object": "m", "address": 4096, "length": 1, "dimensions": [{"stride": 0, "count": 1000000000}]}' |
    timeout 5 "$pumice" layout explain -m 2 - >"$dir/out" || fail "a billion items: exit code $?"
grep -q 'and 999999998 bytes more' "$dir/out" || fail "a billion items: $(cat "$dir/out")"

[ $failures -eq 0 ] && echo "layouts are explained"
exit $((failures > 0))
