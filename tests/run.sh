#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs what was built, and says how it went. Usage: tests/run.sh STAGE...
#
#   check   rules of the source tree: dependencies between folders, licence lines, man pages, units
#   unit    build/tests/unit/**/test_*: Criterion, each in a process of its own
#   sim     build/tests/sim/sim: the protocol engine in virtual time
#   verbs   build/tests/verbs/**/test_*: programs against the verbs API, each with a daemon of its own
#   e2e     tests/e2e/**/*.sh, and tests/e2e/programs/run.py: unmodified programs between hosts
#   valgrind  the unit tests and a first traffic under valgrind
#   fuzz    build/fuzz/tests/fuzz/fuzz_*, each for FUZZ_SECONDS
#
# A test succeeds with exit code 0. Exit code 77 means that it can't run here; a line "skip: WHY" or "skip - WHY" of its output gives the
# reason. A test that can do only a part of its checks prints a line "# skipped: PART: WHY" for each part that it skips. Skipped tests and
# skipped parts are counted, and listed at the end. The output of each test is in $BUILD/log; that of a failed one is shown.
# The exit code is 0 if nothing failed. The totals are a line "N passed ..., N skipped, N failed, in N s"; the names of what failed follow.
#
# With LANES=2, tests run side by side, each in a network namespace of its own, so that no address or port of one is in the way of another. The
# longest begin first. A test whose source has a line "# alone: WHY" or "// alone: WHY" runs at the end, when nothing else runs.
# From the environment:
#   BUILD         the folder of the build (build)
#   LANES         tests that run at a time (1; `make test` takes 2 on two processors and more, where all tests take little more than half of
#                 the time). Where this user can't make network namespaces, it is 1. With 1, tests run in the order above
#   ONLY          patterns, separated by |: run only the tests whose names match one of them. A pattern without a test is a failure
#   SANITIZED     not empty: this is a build with a sanitizer
#   SIM_ARGS      arguments for the simulator
#   TEST_TIMEOUT  seconds that each test may take
set -u
cd "$(dirname "$0")/.." || exit 1
BUILD=$(realpath "${BUILD:-build}")
export BUILD
export PATH=$BUILD/bin:$PATH
limit=${TEST_TIMEOUT:-600}
logs=$BUILD/log
mkdir -p "$logs"

passed=0 failed=0 skipped=0 criterion=0
failures=
skips=() # a line "name: why" for each test and each part that is skipped

# The command before that of a test in a lane: a network namespace of its own, with the loopback device. (Not sh: it drops exported functions.)
# shellcheck disable=SC2016
separate=(unshare --net bash -c 'ip link set lo up && exec "$@"' bash)
"${separate[@]}" true 2>/dev/null || separate=()
LANES=${LANES:-1}
[ ${#separate[@]} -gt 0 ] || LANES=1
[ "$LANES" -gt 1 ] || separate=()
export LANES # for tests that use all processors

# chosen NAME: does it match ONLY? Remembers which patterns of ONLY have matched.
unmatched=()
[[ ${ONLY:-} == *[\(\[]* ]] || IFS='|' read -ra unmatched <<<"${ONLY:-}" # a pattern in brackets may have a | of its own
chosen()
{
    local i
    # shellcheck disable=SC2053
    for i in "${!unmatched[@]}"; do
        [[ $1 != ${unmatched[i]} ]] || unset "unmatched[$i]"
    done
    # shellcheck disable=SC2053
    [[ $1 == @(${ONLY:-*}) ]]
}

# skip NAME WHY: a test that is not even started
skip()
{
    chosen "$1" || return
    skipped=$((skipped + 1))
    skips+=("$1: $2")
    printf '%-44s skip  %s\n' "$1" "$2"
}

# perform LOG COMMAND...: runs the command of a test for at most $limit seconds. Its output goes to the log, its exit code and its seconds to
# LOG.result.
perform()
{
    local log=$1 status start=$EPOCHREALTIME
    shift
    if [ -n "$live" ] && [ "$LANES" -le 1 ]; then
        timeout --kill-after=10 "$limit" "$@" </dev/null 2>&1 | tee "$log" | sed 's/^/    /'
        status=${PIPESTATUS[0]}
    else
        timeout --kill-after=10 "$limit" "$@" >"$log" 2>&1 </dev/null
        status=$?
    fi
    [ "$status" -ne 124 ] || echo "(no end after $limit s)" >>"$log"
    awk -v status="$status" -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%d %.1f\n", status, b - a }' >"$log.result"
}

# report NAME LOG: prints the line of a test that has ended, and counts it
report()
{
    local name=$1 log=$2 status=1 seconds=0 part why note="" parts=()
    read -r status seconds <"$log.result"
    rm -f "$log.result"
    if [ -n "$live" ] && [ "$LANES" -gt 1 ]; then
        echo "$name:"
        sed 's/^/    /' "$log"
    fi
    printf '%-44s ' "$name"
    if [ "$status" -ne 77 ]; then
        mapfile -t parts < <(sed -n 's/^# skipped: //p' "$log")
        for part in "${parts[@]}"; do
            skips+=("$name: $part")
        done
        skipped=$((skipped + ${#parts[@]}))
    fi
    case $status in
    0)
        # Criterion's totals: "[====] Synthesis: Tested: 59 | Passing: 59 | Failing: 0 | Crashing: 0"
        note=$(sed 's/\x1b\[[0-9;]*m//g' "$log" | grep -o 'Tested: [0-9]*' | tail -n 1 | grep -o '[0-9]*')
        if [ -n "$note" ]; then
            criterion=$((criterion + note))
            note="  $note tests"
        fi
        [ ${#parts[@]} -eq 0 ] || note="$note  skipped parts: ${#parts[@]}"
        passed=$((passed + 1))
        echo "ok    ${seconds} s$note"
        ;;
    77)
        why=$(sed -n 's/^skip\(:\| -\) //p' "$log" | tail -n 1)
        [ -n "$why" ] || why=$(tail -n 1 "$log")
        skipped=$((skipped + 1))
        skips+=("$name: $why")
        echo "skip  $why"
        ;;
    *)
        failed=$((failed + 1))
        failures="$failures $name"
        echo "FAIL  ${seconds} s, exit code $status; log: $log"
        [ -n "$live" ] || tail -n 60 "$log" | sed 's/^/    /'
        ;;
    esac
}

# try NAME COMMAND...: with one lane it runs the test, with more run_lanes does so later. The environment of the test must be in its command.
# Before it may stand
#   source=FILE    where the source of the test says whether it runs alone
#   alone=yes      it runs alone
#   live=yes       its whole output is shown: with one lane as it comes, else when it has ended
#   limit=SECONDS  how long it may take
names=() commands=() limits=() lives=() # of the tests, by number
last=() # the numbers of those that run alone
source= live= alone=
try()
{
    local name=$1 number=${#names[@]}
    shift
    chosen "$name" || return
    names+=("$name")
    commands+=("$(printf '%q ' "$@")")
    limits+=("$limit")
    lives+=("$live")
    if [ "$LANES" -le 1 ]; then
        [ -z "$live" ] || echo "$name:"
        begin 1 "$number"
    elif [ -n "$alone" ] || { [ -n "$source" ] && grep -qE '^(#|//) alone: ' "$source"; }; then
        last+=("$number")
    fi
}

# The tests that take longest, the longest first. If one of them began late, the other lanes would be empty at the end.
longest="e2e/programs/run e2e/capture/captured sim/can_fail e2e/programs/rdmacm e2e/programs/mpi_docs e2e/programs/ipv6 sim/sim e2e/programs/mpi
    e2e/capture/messages e2e/capture/dissector e2e/daemon/window e2e/daemon/hostile e2e/daemon/stuck e2e/capture/lint_live e2e/capture/capture
    e2e/programs/odd e2e/programs/ucx e2e/capture/lint check/pure_can_fail verbs/datapath/test_big verbs/objects/test_limits
    verbs/layout/test_layout_life e2e/daemon/quota e2e/cli/ping"

declare -A running=() # the number of the test of each process in a lane

log_of() # NUMBER
{
    echo "$logs/${names[$1]//\//-}.log"
}

# Waits until a test ends, and reports each that has.
await()
{
    local process number some=
    while [ -z "$some" ]; do
        for process in "${!running[@]}"; do
            kill -0 "$process" 2>/dev/null && continue
            number=${running[$process]}
            unset "running[$process]"
            live=${lives[number]} report "${names[number]}" "$(log_of "$number")"
            some=yes
        done
        [ -n "$some" ] || read -r -t 0.05 -u "$never" _
    done
}

# begin LANES NUMBER...: starts these tests one after the other, at most so many at a time, and waits for all
begin()
{
    local lanes=$1 number
    shift
    for number; do
        while [ ${#running[@]} -ge "$lanes" ]; do
            await
        done
        # With job control, because a process in the background without it ignores SIGINT.
        set -m
        (
            limit=${limits[number]} live=${lives[number]}
            eval "perform \"$(log_of "$number")\" \"\${separate[@]}\" ${commands[number]}"
        ) {never}>&- &
        running[$!]=$number
        set +m
    done
    while [ ${#running[@]} -gt 0 ]; do
        await
    done
}

# The tests that wait run, those that must be alone at the end.
run_lanes()
{
    local i name order=() rest=()
    for name in $longest; do
        for i in "${!names[@]}"; do
            [ "$name" != "${names[i]}" ] || order+=("$i")
        done
    done
    for i in "${!names[@]}"; do
        [[ " ${order[*]} ${last[*]} " == *" $i "* ]] || rest+=("$i")
    done
    begin "$LANES" "${order[@]}" "${rest[@]}"
    begin 1 "${last[@]}"
}

# tree PID...: sets $tree to these processes and all below them. Tests make process groups of their own, so a group is not enough.
tree()
{
    local stat line pid found=yes
    local -A parents=() known=()
    for stat in /proc/[0-9]*/stat; do
        read -r line 2>/dev/null <"$stat" || continue
        pid=${stat//[^0-9]/}
        line=${line##*) } # behind the name of the program: its state, its parent
        line=${line#* }
        parents[$pid]=${line%% *}
    done
    for pid; do
        known[$pid]=yes
    done
    while [ -n "$found" ]; do
        found=
        for pid in "${!parents[@]}"; do
            [ -z "${known[$pid]:-}" ] && [ -n "${known[${parents[$pid]}]:-}" ] || continue
            known[$pid]=yes found=yes
        done
    done
    tree=("${!known[@]}")
}

# Ends the tests that run, and the processes that they have started.
end_tests()
{
    local tree=()
    trap '' INT TERM HUP
    [ ${#running[@]} -gt 0 ] || return
    tree "${!running[@]}"
    kill "${tree[@]}" 2>/dev/null
    for _ in {1..40}; do
        kill -0 "${tree[@]}" 2>/dev/null || return
        read -r -t 0.05 -u "$never" _
    done
    kill -KILL "${tree[@]}" 2>/dev/null
}
trap 'end_tests; exit 130' INT
trap 'end_tests; exit 143' TERM HUP
exec {never}<> <(:) # nothing to read

# programs FOLDER PATTERN: the programs in the build that have sources in this folder of tests or below it. (The build also has programs
# of sources that are gone.)
programs()
{
    find "tests/$1" -name "$2.c" | LC_ALL=C sort | sed "s|.*|$BUILD/&|; s|\.c\$||"
}

# built NAME PROGRAM: is it there? If not, the test NAME is skipped.
built()
{
    [ -x "$2" ] || { skip "$1" "not built"; return 1; }
}

stage_check()
{
    try check/pure tests/check_pure.py --core "$BUILD/lib/libcore.a" --wire "$BUILD/lib/libwire.a"
    try check/pure_can_fail tests/check_pure_can_fail.sh
    try check/faults tests/sim/can_fail.sh --texts
    try check/feature_faults tests/can_fail.sh --texts
    try check/totals tests/check_totals.sh
    try check/spdx tests/check_spdx.sh
    try check/format tests/check_format.sh
    try check/compat tests/check_compat.sh
    try check/man tests/check_man.sh docs/man/*.[1-8] docs/man/man3/*.3
    try check/docs tests/check_docs.py
    try check/abi tests/check_abi.sh "$BUILD/lib/pumice/libibverbs.so.1"
    try check/units tests/check_units.py
}

stage_unit()
{
    local t name
    for t in $(programs unit 'test_*'); do
        name=${t#"$BUILD/tests/"}
        built "$name" "$t" && source=tests/$name.c try "$name" "$t" --short-filename
    done
}

stage_sim()
{
    # shellcheck disable=SC2086
    built sim/sim "$BUILD/tests/sim/sim" && try sim/sim "$BUILD/tests/sim/sim" ${SIM_ARGS:-}
    try sim/can_fail tests/sim/can_fail.sh
}

# tests/verbs/run.sh has an exit code for "failed" only.
verbs_one()
{
    local keep=
    # Half a million control calls, one after the other: five times as fast if none has to wake up another processor.
    [ "${1##*/}" != test_limits ] || keep="taskset -c $(sed -n 's/^Cpus_allowed_list:[^0-9]*\([0-9]*\).*/\1/p' /proc/self/status)"
    # shellcheck disable=SC2016,SC2086
    $keep bash -c 'out=$(mktemp) || exit 1
        tests/verbs/run.sh ${SANITIZED:+-p} -b "$BUILD" -a 127.20.$(($$ / 250 % 250)).$(($$ % 250 + 1)) "$0" | tee "$out"
        status=${PIPESTATUS[0]}
        [ $status -eq 0 ] && grep -q "^# [^ ]* skipped$" "$out" && status=77
        rm -f "$out"
        exit $status' "$1"
}
export -f verbs_one

# Tag matching again: with the way within a device leading through the socket, and as strict as the adapters are.
verbs_legs()
{
    local t name
    for t in $(programs verbs 'test_tm*'); do
        name=${t#"$BUILD/tests/"}
        [ -x "$t" ] || continue
        source=tests/$name.c try "$name+wire" env VT_DAEMON="$BUILD/bin/pumiced --loopback wire" bash -c 'verbs_one "$0"' "$t"
        source=tests/$name.c try "$name+mlx5" env VT_DAEMON="$BUILD/bin/pumiced --tm-profile mlx5" bash -c 'verbs_one "$0"' "$t"
    done
    t=$BUILD/tests/verbs/datapath/test_credits
    [ ! -x "$t" ] || try "${t#"$BUILD/tests/"}+credits" env VT_CREDITS=1 VT_DAEMON="$BUILD/bin/pumiced --e2e-credits on" bash -c 'verbs_one "$0"' "$t"
    t=$BUILD/tests/verbs/objects/test_profile
    for name in connectx-4 connectx-6 bluefield-3 e810 bcm57508 rxe; do
        [ ! -x "$t" ] || try "${t#"$BUILD/tests/"}+$name" env VT_PROFILE=$name VT_DAEMON="$BUILD/bin/pumiced --profile $name" bash -c 'verbs_one "$0"' "$t"
    done
    # Memory of a FUSE file or of a userfaultfd has little time, even where other memory has a minute.
    t=$BUILD/tests/verbs/life/test_stuck_memory
    name=${t#"$BUILD/tests/"}
    source=tests/$name.c try "$name+served" env VT_STUCK=served VT_DAEMON="$BUILD/bin/pumiced --memory-timeout 60000" bash -c 'verbs_one "$0"' "$t"
}

stage_verbs()
{
    local t name
    for t in $(programs verbs 'test_*'); do
        name=${t#"$BUILD/tests/"}
        built "$name" "$t" && source=tests/$name.c try "$name" bash -c 'verbs_one "$0"' "$t"
    done
    verbs_legs
    if [ -n "${SANITIZED:-}" ]; then
        skip verbs/abi_symbols "a sanitizer adds symbols of its own"
    else
        try verbs/abi_symbols tests/verbs/abi_symbols.sh "$BUILD/lib/pumice/libibverbs.so.1"
    fi
}

stage_e2e()
{
    local t name long=900
    for t in tests/e2e/*/*.sh; do
        name=${t#tests/}
        name=${name%.sh}
        if [ -n "${SANITIZED:-}" ] && [[ $t == */@(ci_example|deb|extcap|install|installed).sh ]]; then
            skip "$name" "it builds what it installs, or loads the library without the sanitizer's"
            continue
        fi
        [ -x "$t" ] && source=$t try "$name" "$t"
    done
    [ -n "${SANITIZED:-}" ] && long=3600
    live=yes limit=${TEST_TIMEOUT:-$long} try e2e/programs/run tests/e2e/programs/run.py --build "$BUILD" --alone no
    live=yes alone=yes try e2e/programs/alone tests/e2e/programs/run.py --build "$BUILD" --alone yes
}

stage_valgrind()
{
    local t name check="valgrind -q --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite --trace-children=yes"
    for t in $(programs unit 'test_*'); do
        name=valgrind/${t#"$BUILD/tests/"}
        # shellcheck disable=SC2086
        built "$name" "$t" && try "$name" $check "$t" -j1
    done
    # shellcheck disable=SC2086
    try valgrind/rc_pingpong $check --trace-children-skip='*/sh' "$BUILD/bin/pumice" run --sandbox off --hosts 2 -- sh -c \
        'pumice on 0 -- ibv_rc_pingpong -g 0 & sleep 8; pumice on 1 -- ibv_rc_pingpong -g 0 localhost && wait $!'
}

stage_fuzz()
{
    local t name seeds
    for t in $(programs fuzz 'fuzz_*'); do
        name=${t##*/}
        built "fuzz/$name" "$t" || continue
        mkdir -p "$BUILD/corpus/$name" "$BUILD/findings"
        seeds=
        [ -d "tests/fuzz/corpus/$name" ] && seeds=tests/fuzz/corpus/$name
        # The usual exit code for a finding is 77, which is that of a skipped test here.
        # shellcheck disable=SC2086
        try "fuzz/$name" "$t" -max_total_time="${FUZZ_SECONDS:-600}" -max_len=65536 -print_final_stats=1 \
            -error_exitcode=1 -artifact_prefix="$BUILD/findings/$name-" "$BUILD/corpus/$name" $seeds
    done
}

start=$SECONDS
for stage; do
    "stage_$stage"
done
[ "$LANES" -le 1 ] || run_lanes
echo
if [ ${#skips[@]} -gt 0 ]; then
    echo "skipped:"
    printf '    %s\n' "${skips[@]}"
fi
echo "$passed passed ($criterion Criterion tests in them), $skipped skipped, $failed failed, in $((SECONDS - start)) s"
if [ $failed -gt 0 ]; then
    echo "failed:$failures"
    exit 1
fi
if [ $((passed + skipped)) -eq 0 ]; then
    echo "nothing was run"
    exit 1
fi
if [ ${#unmatched[@]} -gt 0 ]; then
    echo "no test has a name that matches: ${unmatched[*]}"
    exit 1
fi
