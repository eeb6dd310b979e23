#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Unmodified programs on devices that are unkind in each way (docs/unkind.md), with several seeds. Prints all that fails, a line for each
# runner and seed, and in the end how many passed.
# Usage: tests/unkind.sh [SEED...]     1 2 3 by default
cd "$(dirname "$0")/.." || exit 1
[ $# -gt 0 ] || set -- 1 2 3
failed=0 passed=0
out=$(mktemp)
trap 'rm -f "$out"' EXIT

runner() # SEED RUNNER OPTION...
{
    local seed=$1
    shift
    "tests/$1" --unkind all --seed "$seed" "${@:2}" >"$out" 2>&1
    case $? in
    0) ;;
    77) echo "seed $seed, $*: $(tail -n 1 "$out")"; return ;;
    *)
        failed=$((failed + 1))
        sed -n '/^FAIL/,/^$/p' "$out"
        ;;
    esac
    echo "seed $seed, $*: $(grep -E '^[0-9]+ passed' "$out")"
    passed=$((passed + $(sed -n 's/^\([0-9]*\) passed.*/\1/p' "$out")))
}

for seed; do
    runner "$seed" e2e/programs/run.py
    runner "$seed" rdmacm/run.py
    runner "$seed" mpi/run.py --basic
    runner "$seed" mpi/run.py --mpi
done
echo "$passed cases passed on unkind devices; $failed runs had failures"
exit $((failed > 0))
