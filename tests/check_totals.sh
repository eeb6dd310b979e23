#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Shows that tests/run.sh counts right. A tree of a few small tests stands in for the real ones: they pass, fail, are skipped, or skip a
# part of their checks. The totals must have the right numbers, and the list before them each skipped test and part with its reason.
set -u
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
cd "$(dirname "$0")" || exit 1
mkdir -p "$dir/tests/e2e/kind" "$dir/tests/e2e/programs" "$dir/tests/unit/part" "$dir/build/tests/unit/part"
cp run.sh "$dir/tests"
cp -r e2e/lib "$dir/tests/e2e"
. e2e/lib/checks.bash

program() # FILE LINE...: an executable script
{
    local file=$dir/$1
    shift
    printf '%s\n' '#!/bin/bash' "$@" >"$file"
    chmod +x "$file"
}

# shellcheck disable=SC2016
checks='. "$(dirname "$0")/../lib/checks.bash"'
program tests/e2e/kind/passes.sh 'echo fine'
program tests/e2e/kind/parts.sh "$checks" 'skip_part "the first: no reason"' 'have "the second" no-such-tool && exit 1' 'have "the third" sh'
program tests/e2e/kind/skipped.sh "$checks" 'skip_part "a part"' 'skip "not today"' 'exit 1'
program tests/e2e/kind/fails.sh "$checks" 'skip_part "another: why"' 'fail "broken"' 'exit 1'
program tests/e2e/programs/run.py 'echo "# skipped: a case: no network"'
touch "$dir/tests/unit/part/test_a.c" "$dir/tests/unit/part/test_b.c" "$dir/tests/unit/part/test_c.c"
program build/tests/unit/part/test_a 'echo "[====] Synthesis: Tested: 7 | Passing: 7 | Failing: 0 | Crashing: 0"'
program build/tests/unit/part/test_b 'echo "# skipped: b/two: too busy"' 'echo "[====] Synthesis: Tested: 4 | Passing: 4 | Failing: 0 | Crashing: 0"'

unset ONLY SANITIZED TEST_TIMEOUT
out=$(BUILD=$dir/build "$dir/tests/run.sh" unit e2e 2>&1)
is "exit code after a failure" $? 1
has "totals" "$out" $'\n5 passed (11 Criterion tests in them), 7 skipped, 1 failed, in '
has "names of what failed" "$out" $'\nfailed: e2e/kind/fails'
list=$(sed -n '/^skipped:$/,/^[0-9]* passed/p' <<<"$out" | sed '1d;$d')
is "what was skipped" "$list" "    unit/part/test_b: b/two: too busy
    unit/part/test_c: not built
    e2e/kind/fails: another: why
    e2e/kind/parts: the first: no reason
    e2e/kind/parts: the second: no no-such-tool
    e2e/kind/skipped: not today
    e2e/programs/run: a case: no network"
has "a test with skipped parts" "$(grep 'kind/parts  ' <<<"$out")" "skipped parts: 2"

out=$(BUILD=$dir/build ONLY='e2e/kind/p*' "$dir/tests/run.sh" unit e2e 2>&1)
is "exit code when nothing failed" $? 0
has "totals of some" "$(tail -n 1 <<<"$out")" "2 passed (0 Criterion tests in them), 2 skipped, 0 failed, in "

out=$(BUILD=$dir/build ONLY='e2e/kind/p*|unit/part/x*' "$dir/tests/run.sh" unit e2e 2>&1)
is "exit code when a pattern has no test" $? 1
is "the pattern without a test" "$(tail -n 1 <<<"$out")" "no test has a name that matches: unit/part/x*"

out=$(BUILD=$dir/build SANITIZED=yes ONLY='e2e/*/install' "$dir/tests/run.sh" e2e 2>&1)
is "exit code when nothing was run" $? 1
has "nothing was run" "$(tail -n 1 <<<"$out")" "nothing was run"
exit $((failures > 0))
