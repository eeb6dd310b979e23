#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Shows that the simulator can fail: builds the engine with one deliberate fault after the other (each an #ifdef ENGINE_FAULT_… in
# daemon/core) and demands that random exchanges catch it within SEEDS seeds. Prints a table; exit code 1 if a fault gets away.
# Usage: tests/sim/can_fail.sh [FAULT...], after `make build/tests/sim/sim`. From the environment: BUILD, CC, SEEDS.
set -u
cd "$(dirname "$0")/../.." || exit 1
BUILD=${BUILD:-build}
CC=${CC:-cc}
SEEDS=${SEEDS:-5000}
out=$BUILD/faults
faults=${*:-$(grep -oh 'ENGINE_FAULT_[A-Z_]*' daemon/core/*.[ch] | sort -u | sed 's/ENGINE_FAULT_//')}
missed=0

if nm "$BUILD/obj/tests/sim/prng.o" | grep -q '__asan\|__ubsan\|__tsan'; then
    echo "made for builds without sanitizers"
    exit 77
fi

build()
{
    mkdir -p "$out/$1"
    local f
    for f in daemon/core/*.c; do
        $CC -D_GNU_SOURCE -I. -Iinclude -std=gnu11 -O1 -w "-DENGINE_FAULT_$1" -c -o "$out/$1/$(basename "$f" .c).o" "$f" || return 1
    done
    $CC -o "$out/$1/sim" "$out/$1"/*.o "$BUILD"/obj/tests/sim/*.o "$BUILD/lib/libpcapng.a" "$BUILD/lib/libwire.a" -lisal
}

printf '%-14s %-10s %-12s %s\n' fault "at seed" "cases failed" "what was seen"
for fault in $faults; do
    build "$fault" || exit 1
    sim=$out/$fault/sim
    log=$out/$fault/log
    timeout 120 "$sim" --seed 1 -n "$SEEDS" --max-failures 1 --out "$out/$fault" >"$log" 2>&1
    status=$?
    seed=$(sed -n 's/^FAILED  sim --seed \([0-9]*\).*/\1/p' "$log" | head -n 1)
    seen=$(sed -n '/^FAILED/{n;s/^ *//p;q}' "$log" | cut -c 1-110)
    cases=$(timeout 120 "$sim" -n 0 --max-failures 1000000 --out "$out/$fault" 2>/dev/null |
        sed -n 's/^FAILED  sim --case \([a-z0-9-]*\).*/\1/p' | sort -u | wc -l)
    if [ $status -ne 1 ] || [ -z "$seed" ]; then
        missed=$((missed + 1))
        seed=MISSED
    fi
    printf '%-14s %-10s %-12s %s\n' "$fault" "$seed" "$cases" "$seen"
done
if [ $missed -ne 0 ]; then
    echo "$missed faults were not caught within $SEEDS seeds"
    exit 1
fi
echo "all caught within $SEEDS seeds"
