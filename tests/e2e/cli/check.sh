#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The checker: each rule finds its mistake (tests/verbs/checker/memory.c, queues.c), and nothing in the program that does it right. The place, the
# reports, and the exit codes.
. "$(dirname "$0")/../lib/common.bash"
need timeout python3
[ -z "${SANITIZED:-}" ] || skip "a build with a sanitizer: its run-time library must be the first one"
memory=$BUILD/tests/verbs/checker/memory queues=$BUILD/tests/verbs/checker/queues
unset PUMICE_SOCKET

check() # OPTION... -- COMMAND...: prints what pumice says
{
    timeout 60 "$pumice" run "$@" 2>&1 >/dev/null | grep -vE '^pumice: (info|UDP port)'
}

each() # PROGRAM RULE[=NAME]...: the mistakes of a program, by their rules; NAME: if it is not that of the rule
{
    local program=$1 entry rule mistake out
    shift
    for entry; do
        rule=${entry%=*} mistake=${entry#*=}
        is "$mistake, right" "$(check --check "$program" $mistake right)" "pumice: check: no findings"
        out=$(check --check "$program" $mistake wrong)
        has "$mistake, wrong" "$out" "  $rule: "
        [[ $out =~ in\ [a-z_.0-9]+,\ [^\ ]*tests/verbs/[a-z/]*\.[ch]:[0-9] ]] || fail "$rule, the place: $out"
        [ $rule = busy ] || is "$mistake, other findings" "$(grep -E '^  [a-z]' <<<"$out" | grep -cv "^  $rule: ")" 0
        [ $rule = $mistake ] && is "without $rule" "$(check --check=unacked "$program" $mistake wrong | tail -n 1)" "pumice: check: no findings"
    done
}
each "$memory" send-buffer overlap dereg dead-key dead-key=dead-key-recv read-fence access access=access-bounds freed \
    freed=freed-realloc freed=freed-munmap freed=freed-send
each "$queues" lost-event unsignaled cq-size after-error busy left fork grh grh=grh-ah grh=grh-room mtu timeout timeout=timeout-early thread
# The program hangs, as it would without the checker, so it is killed by a signal. The finding is not lost.
has "unacked" "$(check --check "$queues" unacked wrong)" "  unacked: a CQ is destroyed, but 1 of its 1 events were not acknowledged"
has "unacked, asynchronous" "$(check --check "$queues" unacked-async wrong)" "  unacked: a shared receive queue is destroyed, but 1 of its asynchronous events was not"
has "unacked at the end" "$(check --check "$queues" unacked-exit wrong)" "  unacked: at the end of the process, 1 of the 1 events of a CQ were never acknowledged"
has "acknowledged too often" "$(check --check "$queues" unacked-more wrong)" "  unacked: a CQ is destroyed, but the program has acknowledged 3 events (ibv_ack_cq_events) and taken 1: "
for mistake in unacked unacked-more unacked-async unacked-exit; do
    is "$mistake, right" "$(check --check "$queues" $mistake right)" "pumice: check: no findings"
done

# Regions that move, or whose queue pair is done with them, and all calls that register one.
regions=$BUILD/tests/verbs/checker/regions
for entry in dereg=dereg-after-error freed=freed-moved access=reg-mr-ex access=reg-buf-mr access=reg-mr-iova2 access=reg-dm-mr; do
    rule=${entry%=*} mistake=${entry#*=}
    is "$mistake, right" "$(check --check "$regions" $mistake right)" "pumice: check: no findings"
    out=$(check --check "$regions" $mistake wrong)
    has "$mistake, wrong" "$out" "  $rule: "
    is "$mistake, findings" "$(grep -cE '^  [a-z-]+: ' <<<"$out")" 1
done

datagrams=$BUILD/tests/verbs/checker/datagrams
is "a send queue that works again" "$(check --check=after-error "$datagrams" right)" "pumice: check: no findings"
has "a send queue that has failed" "$(check --check=after-error "$datagrams" wrong)" "  after-error: "
is "a rendezvous that does not fit" "$(VT_BUILD=$BUILD check --check=after-error "$BUILD/tests/verbs/tag_matching/test_tm_own")" "pumice: check: no findings"
xrc=$BUILD/tests/verbs/checker/xrc
is "XRC, right" "$(check --check "$xrc" right)" "pumice: check: no findings"
has "XRC, wrong" "$(check --check "$xrc" wrong)" "  overlap: the receive request with wr_id 2 and the outstanding receive request with wr_id 1 "

# The text of each finding.
out=$(check --check "$memory" send-buffer wrong)
has "a short buffer" "$out" "bytes 100 to 100 of 4000"
has "function and line" "$out" "in write_to, tests/verbs/checker/mistake.h:"
out=$(check --check "$memory" send-buffer-long wrong)
[[ $out =~ bytes\ ([0-9]+)\ to\ ([0-9]+)\ of\ 30000 ]] && [ "${BASH_REMATCH[1]}" -le 20000 ] && [ "${BASH_REMATCH[2]}" -ge 20000 ] ||
    fail "a long buffer: $out"
has "number" "$(check --check "$queues" unsignaled wrong)" "the send queue is full of requests without IBV_SEND_SIGNALED"

# The calls that led to a post, and to that of the other party. Both are by one function, which is called at two lines.
out=$(check --check "$memory" read-fence wrong)
[[ $out =~ in\ write_to,\ [^\ ]*mistake\.h:[0-9]+$'\n'\ *from\ read_fence,\ [^\ ]*memory\.c:([0-9]+)$'\n'\ *from\ main,\ [^\ ]*:[0-9]+$'\n'\ *the\ earlier\ request:$'\n'\ *in\ read_to,\ [^\ ]*$'\n'\ *from\ read_fence,\ [^\ ]*memory\.c:([0-9]+) ]] ||
    fail "the calls: $out"
[ "${BASH_REMATCH[1]:-0}" -eq $((${BASH_REMATCH[2]:-0} + 1)) ] || fail "the lines of the calls: $out"
has "an inlined function" "$(check --check "$memory" overlap wrong)" "    from overlap, tests/verbs/checker/memory.c:"

# A rule that must be named, because it takes long.
for entry in touch:reads touch-write:writes touch-read:reads; do
    mistake=${entry%:*}
    is "$mistake, right" "$(check --check=all,touch "$memory" $mistake right)" "pumice: check: no findings"
    out=$(check --check=all,touch "$memory" $mistake wrong)
    has "$mistake, wrong" "$out" "  touch: the program ${entry#*:} byte 4900 of memory that the "
    has "$mistake, the place" "$out" "    in touch_target, tests/verbs/checker/memory.c:"
    is "$mistake, without the rule" "$(check --check "$memory" $mistake wrong)" "pumice: check: no findings"
done

# Less than a page: debug registers, which the kernel may refuse.
if check --check=all,touch "$memory" touch-atomic right | grep -q perf_event_open; then
    echo "# the kernel allows no debug registers (kernel.perf_event_paranoid), so small targets are not tested"
else
    for entry in "touch-atomic:0 to 7:atomic with wr_id 42:touch_atomic" "touch-thread:92 to 99:RDMA READ with wr_id 6:touch_in_thread" \
        "touch-inner:44 to 51:RDMA READ with wr_id :touch_inner"; do
        IFS=: read -r mistake bytes request place <<<"$entry"
        is "$mistake, right" "$(check --check=all,touch "$memory" $mistake right)" "pumice: check: no findings"
        out=$(check --check=all,touch "$memory" $mistake wrong)
        has "$mistake, wrong" "$out" "  touch: the program touches bytes $bytes of memory that the $request"
        has "$mistake, the place" "$out" "    in $place, tests/verbs/checker/memory.c:"
    done
    is "touch, after a failure" "$(check --check=touch,freed "$memory" touch-done right)" "pumice: check: no findings"
    has "an atomic, written" "$(check --check=all,touch "$memory" touch-atomic wrong)" "that the atomic with wr_id 43"
fi

is "touch, by the library" "$(check --check=all,touch "$memory" touch-small right)" "pumice: check: no findings"

has "the request of freed memory" "$(check --check "$memory" freed wrong)" "   the request:"

# Requests that ibv_wr_* built.
is "ibv_wr_*, right" "$(check --check "$memory" send-buffer-wr right)" "pumice: check: no findings"
out=$(check --check "$memory" send-buffer-wr wrong)
has "ibv_wr_*" "$out" "the buffer of the RDMA WRITE with wr_id 9 changed before its completion was polled: bytes 57 to 57 of 100"
has "ibv_wr_*, the place" "$out" "in send_buffer_wr, tests/verbs/checker/memory.c:"
is "ibv_wr_*, findings" "$(grep -cE '^  [a-z-]+: ' <<<"$out")" 1

# Exit codes and reports.
timeout 60 "$pumice" run --check --check-fail "$memory" overlap wrong 2>/dev/null; is "--check-fail" $? 124
timeout 60 "$pumice" run --check --check-fail "$memory" overlap right 2>/dev/null; is "--check-fail, no findings" $? 0
timeout 60 "$pumice" run --check --check-fail sh -c "'$memory' overlap wrong; exit 3" 2>/dev/null; is "--check-fail, the command fails" $? 3
timeout 60 "$pumice" run --check "$memory" overlap wrong 2>/dev/null; is "without --check-fail" $? 0
for form in json sarif xml; do
    check --check --check-report "$dir/report.$form" "$memory" overlap wrong >/dev/null
done
python3 - "$dir" <<'EOF' || fail "a report"
import json, sys
import xml.etree.ElementTree as xml
folder = sys.argv[1]
with open(folder + "/report.json", encoding="utf-8") as f:
    (finding,) = json.load(f)["findings"]
assert finding["rule"] == "overlap" and finding["count"] == 1 and finding["place"]["file"].endswith("vt.h"), finding
assert finding["place"]["line"] > 0 and finding["place"]["function"], finding
assert finding["calls"][0] == finding["place"] and finding["calls"][-1]["function"] == "main", finding
assert finding["other"]["what"] == "the outstanding request" and finding["other"]["calls"][-1]["function"] == "main", finding
with open(folder + "/report.sarif", encoding="utf-8") as f:
    (run,) = json.load(f)["runs"]
(result,) = run["results"]
assert result["ruleId"] == "overlap" and "overlap" in [r["id"] for r in run["tool"]["driver"]["rules"]], result
place = result["locations"][0]["physicalLocation"]
assert place["artifactLocation"]["uri"].endswith("vt.h") and place["region"]["startLine"] > 0, place
assert len(result["stacks"]) == 2 and len(result["stacks"][0]["frames"]) >= 3, result
assert result["relatedLocations"][0]["message"]["text"] == "the outstanding request", result
suite = xml.parse(folder + "/report.xml").getroot()
assert [c.get("name") for c in suite if c.find("failure") is not None] == ["overlap"] and suite.get("failures") == "1"
assert len(suite) == int(suite.get("tests")) > 10
EOF
out=$("$pumice" run --check=sned-buffer true 2>&1); is "no such rule" $? 125; has "no such rule" "$out" "there is no rule 'sned-buffer'; the rules are all, send-buffer"
out=$("$pumice" run --check --check-report x.txt true 2>&1); is "no such report" $? 125; has "no such report" "$out" "does not end with .json, .sarif or .xml"
out=$("$pumice" run --check --check-report "$dir/none/x.json" touch "$dir/ran" 2>&1); is "no such folder" $? 125
is "no such folder" "$out" "pumice: --check-report: can't write $dir/none/x.json: No such file or directory"
[ ! -e "$dir/ran" ] || fail "the command ran, although its report can't be written"
out=$("$pumice" run --check-fail true 2>&1); is "without --check" $? 125; has "without --check" "$out" "need --check"
is "several rules" "$(check --check=left,overlap "$memory" overlap wrong | grep -c '^  overlap: ')" 1

# The example with five mistakes: all are found, each with the line in its source. (The domain that is not destroyed is left, too.)
out=$(check --check "$BUILD/examples/bugs")
for rule in overlap send-buffer read-fence lost-event busy; do
    has "the example" "$out" "  $rule: "
done
is "rules of the example" "$(grep -oE '^  [a-z-]+: ' <<<"$out" | sort -u | wc -l)" 6
hasnt "places of the example" "$out" "no debug information"
is "it ends well" "$("$pumice" run --check "$BUILD/examples/bugs" 2>/dev/null)" "all messages arrived"

# The other examples are right.
while read -r hosts program; do
    # shellcheck disable=SC2086
    is "examples/$program" "$(check --hosts "$hosts" --check "$BUILD/examples/"$program)" "pumice: check: no findings"
done <<END
2 tag_matching
2 transpose
3 xrc_scale --hosts 3 --jobs 2
2 tagmpi/halo --ranks 2 --n 100
END

# Programs for which a call fails, whose memory is gone, that look at errno, whose threads are cancelled,
# or that use libpumice.so: as without the checker.
for program in completion/test_cq memory/test_unmapped memory/test_hugepage life/test_cancel objects/test_state memory/test_mr_ex shim/test_libc_next layout/test_layout_uses; do
    out=$(timeout 60 "$pumice" run --check "$BUILD/tests/verbs/$program" 2>/dev/null)
    [[ $? = @(0|77) ]] || fail "$program: $(grep -v '^ok' <<<"$out" | head -3)"
done

# Alone, without pumice run: it writes to standard error.
out=$("$pumice" run sh -c "LD_PRELOAD='$BUILD/lib/pumice/libpumice_check.so':\$LD_PRELOAD '$memory' overlap wrong" 2>&1)
has "alone" "$out" "pumice check: overlap: the receive request with wr_id 2"
exit $((failures > 0))
