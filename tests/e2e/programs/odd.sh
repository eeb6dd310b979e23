#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The table of single cases that `make test-rxe` runs beside soft-RoCE (tests/rxe/odd), between two Pumice hosts: errors, limits, windows,
# late receive requests, PSNs that wrap. Every result must be the expected one.
. "$(dirname "$0")/../lib/common.bash"
odd=$BUILD/tests/rxe/odd
[ -x "$odd" ] || skip "$odd is not built"
port=$((22000 + $$ % 20000))
"$pumice" run --hosts 2 -- bash -c '
    "$0" on 0 -- "$1" -p "$2" &
    server=$!
    for _ in $(seq 200); do
        grep -qE ":$(printf %04X "$2") [0-9A-F]+:0000 0A" /proc/net/tcp && break
        sleep 0.05
    done
    "$0" on 1 -- "$1" -p "$2" 127.0.0.1 >"$3" && wait $server' "$pumice" "$odd" "$port" "$dir/results" 2>"$dir/errors"
is "exit code" $? 0
is "number of results" "$(wc -l <"$dir/results")" "$("$odd" -l | wc -l)"
while IFS=$'\t' read -r name verdict seen wanted; do
    [ "$verdict" = same ] || fail "$name: seen '$seen', expected '$wanted'"
done <"$dir/results"
[ "$failures" -eq 0 ] || tail -n 20 "$dir/errors"
exit $((failures > 0))
