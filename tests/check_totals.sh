#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Shows that tests/run.sh counts right. A tree of a few small tests stands in for the real ones: they pass, fail, are skipped, or skip a
# part of their checks. The totals must have the right numbers, and the list before them each skipped test and part with its reason: with one
# lane and with two. Two lanes run two tests at a time, the long ones first, and those that must be alone at the end.
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
touch "$dir/tests/unit/part/test_a.c" "$dir/tests/unit/part/test_b.c" "$dir/tests/unit/part/test_c.c"
program build/tests/unit/part/test_a 'echo "[====] Synthesis: Tested: 7 | Passing: 7 | Failing: 0 | Crashing: 0"'
program build/tests/unit/part/test_b 'echo "# skipped: b/two: too busy"' 'echo "[====] Synthesis: Tested: 4 | Passing: 4 | Failing: 0 | Crashing: 0"'

program tests/e2e/programs/run.py '[[ $* == *"--alone no" ]] || exit 0' 'echo "# skipped: a case: no network"'
# Programs of verbs run by a script that has one exit code for "passed" and "skipped".
mkdir -p "$dir/tests/verbs/part" "$dir/build/tests/verbs/part"
touch "$dir/tests/verbs/part/test_passes.c" "$dir/tests/verbs/part/test_skipped.c"
program tests/verbs/run.sh '[[ ${!#} != *test_skipped ]] || { echo "skip: no device"; echo "# test_skipped skipped"; }'
program build/tests/verbs/part/test_passes 'exit 1'
program build/tests/verbs/part/test_skipped 'exit 1'
unset ONLY SANITIZED TEST_TIMEOUT
for lanes in 1 2; do
    out=$(LANES=$lanes BUILD=$dir/build "$dir/tests/run.sh" unit e2e 2>&1)
    is "exit code after a failure" $? 1
    has "totals" "$out" $'\n6 passed (11 Criterion tests in them), 7 skipped, 1 failed, in '
    has "names of what failed" "$out" $'\nfailed: e2e/kind/fails'
    has "what a failed test says" "$out" $'\n    # skipped: another: why\n    FAIL: broken\n'
    list=$(sed -n '/^skipped:$/,/^[0-9]* passed/p' <<<"$out" | sed '1d;$d' | LC_ALL=C sort)
    is "what was skipped" "$list" "    e2e/kind/fails: another: why
    e2e/kind/parts: the first: no reason
    e2e/kind/parts: the second: no no-such-tool
    e2e/kind/skipped: not today
    e2e/programs/run: a case: no network
    unit/part/test_b: b/two: too busy
    unit/part/test_c: not built"
    has "a test with skipped parts" "$(grep 'kind/parts  ' <<<"$out")" "skipped parts: 2"
    has "a test whose output is shown" "$out" $'\n    # skipped: a case: no network\n'

    out=$(LANES=$lanes BUILD=$dir/build ONLY='e2e/kind/p*' "$dir/tests/run.sh" unit e2e 2>&1)
    is "exit code when nothing failed" $? 0
    has "totals of some" "$(tail -n 1 <<<"$out")" "2 passed (0 Criterion tests in them), 2 skipped, 0 failed, in "

    out=$(LANES=$lanes BUILD=$dir/build ONLY='verbs/part/*' "$dir/tests/run.sh" verbs 2>&1)
    is "exit code of the programs of verbs" $? 0
    has "a program of verbs that is skipped" "$out" $'\n    verbs/part/test_skipped: no device\n'
    has "totals of verbs" "$(tail -n 1 <<<"$out")" "1 passed (0 Criterion tests in them), 1 skipped, 0 failed, in "

    out=$(LANES=$lanes BUILD=$dir/build ONLY='e2e/kind/p*|unit/part/x*' "$dir/tests/run.sh" unit e2e 2>&1)
    is "exit code when a pattern has no test" $? 1
    is "the pattern without a test" "$(tail -n 1 <<<"$out")" "no test has a name that matches: unit/part/x*"
done

out=$(BUILD=$dir/build SANITIZED=yes ONLY='e2e/*/install' "$dir/tests/run.sh" e2e 2>&1)
is "exit code when nothing was run" $? 1
has "nothing was run" "$(tail -n 1 <<<"$out")" "nothing was run"

if ! unshare --net true 2>/dev/null; then
    echo "# skipped: two lanes: this user can't make network namespaces"
    exit $((failures > 0))
fi
# --- lanes: what runs is noted in a file, and a test is over when it says so ---
rm -r "$dir"/tests/e2e/kind/* "$dir"/tests/unit "$dir/build"
mkdir -p "$dir/tests/e2e/capture"
# shellcheck disable=SC2016
note=('name=$(basename "$0" .sh)' 'note() { echo "$1 $name" >>"'"$dir"'/notes"; }' 'note begins')
# until LINE: waits for a line of the notes, for 20 seconds at most
# shellcheck disable=SC2016
until='until_noted() { for i in $(seq 400); do grep -qx "$1" "'"$dir"'/notes" && return; sleep 0.05; done; echo "never: $1"; exit 1; }'
program tests/e2e/kind/a.sh "${note[@]}" "$until" 'until_noted "begins captured"' 'echo "1 of a"; note meets; echo "2 of a"; note ends; exit 1'
program tests/e2e/capture/captured.sh "${note[@]}" "$until" 'until_noted "meets a"; until_noted "begins b"; note ends'
program tests/e2e/kind/b.sh "${note[@]}" 'note ends'
program tests/e2e/kind/measures.sh '# alone: it would see the others' "${note[@]}" 'sleep 0.2' 'note ends'
program tests/e2e/kind/z.sh "${note[@]}" 'note ends'
out=$(LANES=2 BUILD=$dir/build "$dir/tests/run.sh" e2e 2>&1)
has "lanes: totals" "$out" $'\n6 passed (0 Criterion tests in them), 1 skipped, 1 failed, in '
has "lanes: the output of one test" "$out" $'\n    1 of a\n    2 of a\n'
is "lanes: what runs at the end" "$(tail -n 2 "$dir/notes" | xargs)" "begins measures ends measures"
is "lanes: what begins first" "$(head -n 2 "$dir/notes" | grep -c 'begins captured')" 1
rm "$dir/notes"

# --- a run that is ended ends its tests, with all processes of theirs ---
# A process that ignores SIGTERM, in a process group of its own, below a test.
# shellcheck disable=SC2016
program tests/e2e/kind/a.sh "${note[@]}" 'trap "note ends; exit 1" TERM' \
    'setsid bash -c '"'"'trap "" TERM; echo "process $BASHPID" >>"'"$dir"'/notes"; while :; do read -r -t 1 _ <>/dev/null || sleep 0.2; done'"'"' &' \
    'for i in $(seq 400); do sleep 0.05; done'
for signal in "INT 130" "TERM 143"; do
    rm -f "$dir/notes"
    set -m # without it, a process in the background ignores SIGINT
    LANES=2 BUILD=$dir/build "$dir/tests/run.sh" e2e >"$dir/out" 2>&1 &
    set +m
    for _ in $(seq 400); do
        grep -qs "^process " "$dir/notes" && break
        sleep 0.05
    done
    kill -"${signal% *}" $!
    wait $!
    is "exit code of a run that is ended" $? "${signal#* }"
    has "the test of a run that is ended" "$(cat "$dir/notes")" "ends a"
    process=$(sed -n 's/^process //p' "$dir/notes")
    for _ in $(seq 100); do # a process that was killed ends when it runs next
        [[ $(sed -n 's/^State:\t\(.\).*/\1/p' "/proc/$process/status" 2>/dev/null) == [!XZ] ]] || continue 2
        sleep 0.05
    done
    fail "a process of a test lives on after SIG${signal% *}"
    kill -KILL "$process"
done
exit $((failures > 0))
