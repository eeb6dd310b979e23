#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The checker: mistakes that only both ends of a connection together show (tests/verbs/checker/ends.c), and what a program assumes of its
# device (tests/verbs/checker/assumes.c).
. "$(dirname "$0")/../lib/common.bash"
need timeout
[ -z "${SANITIZED:-}" ] || skip "a build with a sanitizer: its run-time library must be the first one"
unset PUMICE_SOCKET

check() # OPTION... -- COMMAND...: prints what pumice says
{
    timeout 60 "$pumice" run "$@" 2>&1 >/dev/null | grep -vE '^pumice: (info|UDP port)'
}

# Both ends of a connection together: in one process, and in two on two hosts. Each names the place of the other end.
ends=$BUILD/tests/verbs/checker/ends
for entry in mtu=mismatch psn=mismatch rd-atomic=mismatch destination=mismatch qp-access=access region-access=access bounds=access dead=dead-key late=late-receive; do
    rule=${entry#*=} mistake=${entry%=*}
    is "ends $mistake, right" "$(check --check "$ends" $mistake right)" "pumice: check: no findings"
    out=$(check --check "$ends" $mistake wrong)
    has "ends $mistake, wrong" "$out" "  $rule: "
    [[ $out =~ $'\n   the peer '[a-z\ ]+:$'\n    in '[a-z_]+,\ [^\ ]*ends\.c:[0-9] ]] || fail "ends $mistake, the other end: $out"
    is "ends $mistake, findings" "$(grep -cE '^  [a-z-]+: ' <<<"$out")" 1
    is "ends $mistake, without the rule" "$(check --check=unacked "$ends" $mistake wrong)" "pumice: check: no findings"
done
has "differences" "$(check --check "$ends" psn wrong)" "begins with PSN 1 (sq_psn), "
two() # MISTAKE wrong|right
{
    rm -rf "$dir/meet" && mkdir "$dir/meet"
    # shellcheck disable=SC2016
    check --hosts 2 --check -- sh -c 'pumice on 0 -- "$0" "$@" 0 "$D" & pumice on 1 -- "$0" "$@" 1 "$D"; wait' "$ends" "$@"
}
export D=$dir/meet
for mistake in mtu late; do
    is "two hosts, $mistake, right" "$(two $mistake right)" "pumice: check: no findings"
done
has "two hosts, mtu" "$(two mtu wrong)" "do not fit: path_mtu is "
out=$(two late wrong)
[[ $out =~ late-receive:.*it\ tries\ for\ ever,\ because\ its\ rnr_retry\ is\ 7.*in\ post_receive,.*the\ peer\ posted\ the\ message:$'\n'\ *in\ post,\ [^\ ]*ends\.c: ]] ||
    fail "two hosts, late: $out"

# A program that assumes an index or an MTU is told. One whose user gives the index is not.
assumes=$BUILD/tests/verbs/checker/assumes
has "a GID index" "$(check --check "$assumes" index wrong)" "  gid-index: the address of a connection has sgid_index 0"
has "an MTU" "$(check --check "$assumes" mtu wrong)" "  mtu: path_mtu is 2048 bytes, but the program has not asked for the port's active_mtu"
for asked in "index right" "mtu right" "file right" "index wrong 0"; do
    # shellcheck disable=SC2086
    is "$asked" "$(check --check "$assumes" $asked)" "pumice: check: no findings"
done
# The address of a connection by rdma_cm comes from the kernel, even if the program modifies its queue pair by itself.
if command -v rping >/dev/null; then
    # shellcheck disable=SC2016
    out=$(check --check -- bash -c '
        rping -s -q -a 127.0.0.1 -p 7199 -C 2 &
        for i in $(seq 200); do
            pumice status --json --only listeners | grep -q "\"port\": 7199" && break
            sleep 0.1
        done
        rping -c -q -a 127.0.0.1 -p 7199 -C 2; wait')
    hasnt "an index of rdma_cm" "$out" "gid-index"
    has "rping" "$out" "pumice: check: "
fi
is "an index of the environment" "$(UCX_IB_GID_INDEX=0 check --check "$assumes" index wrong)" "pumice: check: no findings"
exit $((failures > 0))
