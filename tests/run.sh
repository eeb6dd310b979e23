#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs what was built, and says how it went. Usage: tests/run.sh STAGE...
#
#   check   rules of the source tree: dependencies between folders, licence lines, man pages
#   unit    build/tests/unit/**/test_*: Criterion, each in a process of its own
#   sim     build/tests/sim/sim: the protocol engine in virtual time
#   verbs   build/tests/verbs/**/test_*: programs against the verbs API, each with a daemon of its own
#   e2e     tests/e2e/**/*.sh, and tests/e2e/programs/run.py: unmodified programs between hosts
#   valgrind  the unit tests and a first traffic under valgrind
#   fuzz    build/fuzz/tests/fuzz/fuzz_*, each for FUZZ_SECONDS
#
# A test succeeds with exit code 0; 77 means that it can't run here, and its last line says why. The output of each is in
# $BUILD/log; that of a failed one is shown. The exit code is 0 if nothing failed.
# From the environment: SANITIZED (not empty: it is a build with a sanitizer), BUILD, TEST_TIMEOUT (seconds for each test), ONLY (patterns, separated by |, one of which test names must match), SIM_ARGS.
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

# try NAME COMMAND...; with live=yes its output is shown as it comes
live=
try()
{
    local name=$1 log status seconds note="" start=$EPOCHREALTIME
    shift
    # shellcheck disable=SC2053
    [[ $name == @(${ONLY:-*}) ]] || return
    log=$logs/${name//\//-}.log
    if [ -n "$live" ]; then
        echo "$name:"
        timeout --kill-after=10 "$limit" "$@" </dev/null 2>&1 | tee "$log" | sed 's/^/    /'
        status=${PIPESTATUS[0]}
    fi
    printf '%-44s ' "$name"
    if [ -z "$live" ]; then
        timeout --kill-after=10 "$limit" "$@" >"$log" 2>&1 </dev/null
        status=$?
    fi
    seconds=$(awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }')
    [ $status -eq 124 ] && echo "(no end after $limit s)" >>"$log"
    case $status in
    0)
        # Criterion's totals: "[====] Synthesis: Tested: 59 | Passing: 59 | Failing: 0 | Crashing: 0"
        note=$(sed 's/\x1b\[[0-9;]*m//g' "$log" | grep -o 'Tested: [0-9]*' | tail -n 1 | grep -o '[0-9]*')
        if [ -n "$note" ]; then
            criterion=$((criterion + note))
            note="  $note tests"
        fi
        passed=$((passed + 1))
        echo "ok    ${seconds} s$note"
        ;;
    77)
        skipped=$((skipped + 1))
        echo "skip  $(tail -n 1 "$log")"
        ;;
    *)
        failed=$((failed + 1))
        failures="$failures $name"
        echo "FAIL  ${seconds} s, exit code $status; log: $log"
        [ -n "$live" ] || tail -n 60 "$log" | sed 's/^/    /'
        ;;
    esac
}

# What was built of the programs that there are sources of, in all sub-folders: a build outlives sources that move or go.
built()
{
    local source t
    find "tests/$1" -name "$2.c" | LC_ALL=C sort | while read -r source; do
        t=$BUILD/${source%.c}
        [ -x "$t" ] && echo "$t"
    done
}

stage_check()
{
    try check/pure tests/check_pure.py --core "$BUILD/lib/libcore.a" --wire "$BUILD/lib/libwire.a"
    try check/pure_can_fail tests/check_pure_can_fail.sh
    try check/spdx tests/check_spdx.sh
    try check/format tests/check_format.sh
    try check/compat tests/check_compat.sh
    try check/man tests/check_man.sh docs/man/*.[1-8]
    try check/docs tests/check_docs.py
}

stage_unit()
{
    local t
    for t in $(built unit 'test_*'); do
        try "${t#"$BUILD/tests/"}" "$t" --short-filename
    done
}

stage_sim()
{
    # shellcheck disable=SC2086
    [ -x "$BUILD/tests/sim/sim" ] && try sim/sim "$BUILD/tests/sim/sim" ${SIM_ARGS:-}
    try sim/can_fail tests/sim/can_fail.sh
}

# tests/verbs/run.sh has an exit code for "failed" only.
verbs_one()
{
    local keep=
    # Half a million control calls, one after the other: five times as fast if none has to wake up another processor.
    [ "${1##*/}" != test_limits ] || keep="taskset -c $(sed -n 's/^Cpus_allowed_list:[^0-9]*\([0-9]*\).*/\1/p' /proc/self/status)"
    # shellcheck disable=SC2016,SC2086
    $keep bash -c 'tests/verbs/run.sh ${SANITIZED:+-p} -b "$BUILD" -a 127.20.$(($$ / 250 % 250)).$(($$ % 250 + 1)) "$0" | tee "$1"
        status=${PIPESTATUS[0]}
        [ $status -eq 0 ] && grep -q "^# .* skipped" "$1" && status=77
        exit $status' "$1" "$logs/verbs.out"
}
export -f verbs_one
export logs

# Tag matching again: with the way within a device leading through the socket, and as strict as the adapters are.
verbs_legs()
{
    local t name
    for t in $(built verbs 'test_tm*'); do
        name=${t#"$BUILD/tests/"}
        VT_DAEMON="$BUILD/bin/pumiced --loopback wire" try "$name+wire" bash -c 'verbs_one "$0"' "$t"
        VT_DAEMON="$BUILD/bin/pumiced --tm-profile mlx5" try "$name+mlx5" bash -c 'verbs_one "$0"' "$t"
    done
}

stage_verbs()
{
    local t
    for t in $(built verbs 'test_*'); do
        try "${t#"$BUILD/tests/"}" bash -c 'verbs_one "$0"' "$t"
    done
    verbs_legs
    for t in tests/verbs/*.sh; do
        # A sanitizer adds symbols of its own.
        [ "${t##*/}" = run.sh ] || [ -n "${SANITIZED:-}" ] || try "verbs/${t##*/}" "$t" "$BUILD/lib/pumice/libibverbs.so.1"
    done
}

stage_e2e()
{
    local t name long=900
    for t in tests/e2e/*/*.sh; do
        name=${t#tests/}
        name=${name%.sh}
        # These build what they install, without the sanitizer, or put the library into programs by other ways than "pumice run".
        [ -n "${SANITIZED:-}" ] && [[ $t == */@(ci_example|deb|extcap|install|installed).sh ]] && continue
        [ -x "$t" ] && try "$name" "$t"
    done
    [ -n "${SANITIZED:-}" ] && long=3600
    live=yes limit=${TEST_TIMEOUT:-$long} try e2e/programs/run tests/e2e/programs/run.py --build "$BUILD"
}

stage_valgrind()
{
    local t check="valgrind -q --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite --trace-children=yes"
    for t in $(built unit 'test_*'); do
        # shellcheck disable=SC2086
        try "valgrind/${t##*/}" $check "$t" -j1
    done
    # shellcheck disable=SC2086
    try valgrind/rc_pingpong $check --trace-children-skip='*/sh' "$BUILD/bin/pumice" run --hosts 2 -- sh -c \
        'pumice on 0 -- ibv_rc_pingpong -g 0 & sleep 8; pumice on 1 -- ibv_rc_pingpong -g 0 localhost && wait $!'
}

stage_fuzz()
{
    local t name seeds
    for t in $(built fuzz 'fuzz_*'); do
        name=${t##*/}
        mkdir -p "$BUILD/corpus/$name" "$BUILD/findings"
        seeds=
        [ -d "tests/fuzz/corpus/$name" ] && seeds=tests/fuzz/corpus/$name
        # shellcheck disable=SC2086
        try "fuzz/$name" "$t" -max_total_time="${FUZZ_SECONDS:-600}" -max_len=65536 -print_final_stats=1 \
            -artifact_prefix="$BUILD/findings/$name-" "$BUILD/corpus/$name" $seeds
    done
}

start=$SECONDS
for stage; do
    "stage_$stage"
done
echo
echo "$passed passed ($criterion Criterion tests in them), $skipped skipped, $failed failed, in $((SECONDS - start)) s"
if [ $failed -gt 0 ]; then
    echo "failed:$failures"
    exit 1
fi
if [ $((passed + skipped)) -eq 0 ]; then
    echo "nothing was run"
    exit 1
fi
