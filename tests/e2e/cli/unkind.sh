#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Unkind devices: each kind exposes a wrong program (tests/verbs/unkind/unkind.c), which passes as long as the devices are kind. The right
# program passes with each kind, and with all. The options, what is printed, and the status.
. "$(dirname "$0")/../lib/common.bash"
need timeout
program=$BUILD/tests/verbs/unkind/unkind
unset PUMICE_SOCKET

run() # OPTION... -- COMMAND...: its output; the exit code in $code
{
    out=$(timeout 100 "$pumice" run "$@" 2>"$dir/err")
    code=$?
}

for kind in placement visibility completions events polls buffers rnr acks; do
    run "$program" $kind wrong
    is "$kind, wrong, but the device is kind" "$code $out" "0 all is well"
    for seed in 1 2 3; do
        run --unkind=$kind --seed $seed "$program" $kind wrong
        is "$kind, wrong, seed $seed" $code 1
        run --unkind=$kind --seed $seed "$program" $kind right
        is "$kind, right, seed $seed" "$code $out" "0 all is well"
        run --unkind --seed $seed "$program" $kind right
        is "$kind, right, with all kinds, seed $seed" "$code $out" "0 all is well"
    done
done

# The command prints how to repeat the run.
run --unkind true
has "the seed" "$(cat "$dir/err")" "pumice: the devices are unkind: --unkind=all --seed 1"
hasnt "the end" "$(cat "$dir/err")" "to repeat this run"
run --unkind=acks,placement --fault dup=1% --seed 7 sh -c 'exit 3'
is "exit code" $code 3
has "how to repeat" "$(cat "$dir/err")" "pumice: to repeat this run: --fault 'dup=1%' --unkind=acks,placement --seed 7"
run --unkind=placment true
is "no such kind" $code 125
has "no such kind" "$(cat "$dir/err")" 'unkind: invalid value "placment": expected off, all, or kinds with commas between: placement, '
run true
hasnt "kind devices" "$(cat "$dir/err")" unkind

# The status shows the kinds, and counts.
run --unkind=placement,acks sh -c "'$program' placement right >/dev/null; pumice status --json"
[[ $out =~ \"unkind\":\ \"placement,acks\" ]] || fail "kinds in the status: $out"
[[ $out =~ \"unkind_placements\":\ [1-9] ]] || fail "counted: $out"
run sh -c "'$program' placement right >/dev/null; pumice status --json"
[[ $out =~ \"unkind\":\ \"off\" ]] || fail "kind devices in the status: $out"
[[ $out =~ \"unkind_placements\":\ 0 ]] || fail "kind devices count nothing: $out"
exit $((failures > 0))
