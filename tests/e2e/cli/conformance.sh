#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Tests tests/verbs/conformance.py, with Pumice as the chosen device: it runs and counts programs, leaves out those that are Pumice's own,
# finds a failure, and refuses a device that is not there.
. "$(dirname "$0")/../lib/common.bash"

run() # ARGUMENT...: in a lab of two hosts
{
    "$BUILD/bin/pumice" run --hosts 2 -- tests/verbs/conformance.py --build "$BUILD" "$@" >"$dir/said" 2>&1
}

run --device pumice0 --only 'completion/test_[cr]*' || fail "completion: $(cat "$dir/said")"
grep -q '^GID: index 0, ::ffff:127\.' "$dir/said" || fail "the GID is not described"
grep -Eq '^  test_resize +22 +0 +0 +0$' "$dir/said" || fail "test_resize is not counted"
grep -Eq '^  test_cq_notify +0 +0 +0 +1$' "$dir/said" || fail "test_cq_notify is not counted as Pumice's own"
grep -Eq '^[0-9]+ checks passed, 0 failed, ' "$dir/said" || fail "no totals"

# A port that is not there makes the description fail; a program that fails makes the run fail.
run --device pumice0 --port 2 && fail "port 2 is there"
grep -q 'pumice0 has no port 2' "$dir/said" || fail "the port is not named: $(cat "$dir/said")"
run --device rxe77 && fail "rxe77 is there"
grep -q 'no RDMA device rxe77' "$dir/said" || fail "the device is not named: $(cat "$dir/said")"
mkdir -p "$dir/build/tests/verbs/completion"
cp "$BUILD/tests/verbs/describe" "$dir/build/tests/verbs/"
printf '#!/bin/sh\necho "# part: one"\necho "ok - right"\necho "not ok - wrong (line 1, errno x)"\nexit 1\n' >"$dir/build/tests/verbs/completion/test_cq"
chmod +x "$dir/build/tests/verbs/completion/test_cq"
"$BUILD/bin/pumice" run --hosts 2 -- tests/verbs/conformance.py --build "$dir/build" --device pumice0 --only completion/test_cq >"$dir/said" 2>&1 &&
    fail "a failed check is not a failure"
grep -q '^  completion/test_cq: one: wrong$' "$dir/said" || fail "the failed check is not listed: $(cat "$dir/said")"
grep -q '^1 checks passed, 1 failed, ' "$dir/said" || fail "it is not counted"
exit $((failures > 0))
