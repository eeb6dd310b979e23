#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Shows that the tests through the verbs API and the command line can fail: puts one deliberate fault after the other into a copy of the source
# tree and demands that the test of that feature fails. Prints a table; exit code 1 if a fault gets away, or if the text that it replaces
# is not exactly once in its file. Takes about a quarter of an hour. (tests/sim/can_fail.sh does the same for the simulator.)
# Usage: tests/can_fail.sh [FAULT...]     from the environment: BUILD, CC
#        tests/can_fail.sh --texts        only checks that the text of each fault is in its file once; takes a second
set -u
cd "$(dirname "$0")/.." || exit 1
BUILD=$(realpath "${BUILD:-build}")
tree=$BUILD/can_fail
missed=0
texts=false
if [ "${1:-}" = --texts ]; then
    texts=true
    shift
fi
wanted=" $* "

# Prints file $2 with text $3 replaced by $4; fails if the text is not in it exactly once.
mutate()
{
    FROM=$3 TO=$4 perl -0777 -pe '$n = s/\Q$ENV{FROM}\E/$ENV{TO}/g; END { exit($n == 1 ? 0 : 1) }' "$2" && return
    echo "$1: the text to be replaced is not exactly once in $2" >&2
    return 1
}

build()
{
    # Faults leave unused functions and variables.
    make -s -C "$tree" BUILD=build -j"$(nproc)" ${CC:+CC="$CC"} WARN=-w all tests >"$tree.log" 2>&1
}

run() # STAGE TEST
{
    ( cd "$tree" && LANES=1 BUILD='' TEST_TIMEOUT=120 ONLY="$1/$2" tests/run.sh "${1%%/*}" >"$tree.log" 2>&1 )
}

# fault NAME STAGE/FOLDER TEST FILE FROM TO
fault()
{
    [[ $wanted == "  " || $wanted == *" $1 "* ]] || return
    if $texts; then
        mutate "$1" "$4" "$5" "$6" >/dev/null || missed=$((missed + 1))
        compgen -G "tests/$2/${3%%[+/]*}*" >/dev/null || { echo "$1: no test $2/$3" >&2; missed=$((missed + 1)); }
        return
    fi
    local seen
    if ! mutate "$1" "$4" "$5" "$6" >"$tree/$4" || ! build; then
        seen="NOT BUILT, see $tree.log"
    elif run "$2" "$3"; then
        seen=MISSED
    elif grep -q '^nothing was run' "$tree.log"; then
        seen="NOT RUN: there is no such test"
    else
        seen=$(grep -m1 -E '^ *not ok|FAIL|assert|Assertion' "$tree/build/log/$(basename "$3")"* 2>/dev/null | sed 's/^[^:]*://' | cut -c 1-90)
        seen=${seen:-$(grep -m1 -E ' (FAILED|failed)' "$tree.log" | cut -c 1-90)}
    fi
    printf '%-16s %-44s %s\n' "$1" "$2/$3" "$seen"
    [[ $seen != MISSED && $seen != NOT\ * ]] || missed=$((missed + 1))
    cp "$4" "$tree/$4"
}

if ! $texts; then
    rm -rf "$tree"
    mkdir -p "$tree"
    git ls-files -z | xargs -0 cp --parents -t "$tree" || exit 1
    build || { cat "$tree.log"; exit 1; }
    printf '%-16s %-44s %s\n' fault test "what was seen first"
fi

# --- counters, settings and commands
fault LOG_ONCE unit/daemon/objects/srq test_tm_srq daemon/objects/srq/tm_srq.c 'q->tm.odd_count_logged = true;' ''
fault MAX_RESENDS unit/core/base test_scheduler daemon/core/requester/burst.c 'UINT32_MAX : qp->e->cfg.max_resends;' 'UINT32_MAX : UINT32_MAX;'
fault TX_CLASSES unit/daemon/monitor test_counter_names daemon/monitor/counter_names.h 'e->sent_pkts - e->acks_sent - e->sent_naks' 'e->sent_pkts - e->acks_sent'
fault CREDITS verbs/datapath test_credits+credits daemon/core/requester/credits.c 'c->begun == c->done : req_credits_left(c) > 0' 'true : true'
fault ENVIRONMENT unit/daemon test_option_table daemon/environment.c 'return getenv(name);' 'return NULL;'
fault AUTOSTART verbs/life test_reopen src/verbs/session/autostart.c 'strcmp(v, "1") == 0 &&' 'strcmp(v, "1") == 2 &&'
fault MESH e2e/daemon mesh include/pumice/abi.h '#define PM_DEVICES_MAX 16' '#define PM_DEVICES_MAX 4'
fault RES_PID e2e/cli res src/cmd/rdma/rows.c 'copy(row, "pid", s, "pid");' ''
fault LADDER_LOST e2e/capture ladder pcap/trace/psn_order.c 'q->marks |= TRACE_LOST;' ''
fault PLOT_TRIPS e2e/capture plot pcap/picture/plot.c 'end - request->time_ns};' '1};'
fault LADDER_BANDS e2e/capture ladder pcap/trace/exchange.c 'g->of_message[message] = r->exchange;' ';'
fault KILLS verbs/life test_kills daemon/objects/qp/xrc_target.c 'if (--x->opens == 0)' 'if (--x->opens == 77)'
fault PROFILE_LIMITS verbs/objects test_profile+e810 daemon/profile/profile.c 'take(&l->max_sge, from->max_sge, ENGINE_MAX_SGE);' ''
fault PROFILE_QUEUES verbs/objects test_profile+connectx-6 src/verbs/control/queue_rule.c 'BLOCKS_MAX = 32768' 'BLOCKS_MAX = 65536'
fault PROFILE_GIDS verbs/objects test_profile+connectx-6 daemon/objects/qp/qp_ring.c 'ud->av.sgid_index = (uint8_t)device_gid_entry(q->device, ud->av.sgid_index);' ''
fault PROFILE_ATOMICS verbs/objects test_profile+e810 src/verbs/datapath/wr_opcode.c 'absent & PM_ABSENT_ATOMICS ?' 'false ?'
fault LOCK_GROUP unit/daemon/session test_stuck_memory daemon/device/memory_strikes.h 'shared ? limit_ms :' ''
fault LOCK_WAIT unit/daemon/client_mem test_copier daemon/client_mem/copier.c 'c->now.remote && copier_waits_for_lock(waits_in) &&' ''
fault RUN_GAPS unit/daemon/loop test_tx_runs daemon/loop/tx.c 'capture_on(d) || !(late ||' 'true || !(late ||'
fault PACKETS_SKEW unit/daemon/loop test_packet_buffers daemon/loop/device_setup.c 'PACKETS_SKEW 1024u' 'PACKETS_SKEW 0u'
fault LOCK_SESSION unit/daemon/session test_stuck_memory daemon/session/session.c '= memory_lock_limit(s->client_mem->limit_ms, d->settings->group[0] != 0)' '= 0'
fault LOCK_SERVED unit/daemon/client_mem test_copier daemon/client_mem/copier.c 'if (copier_waits_for_lock(waits_in))' 'if (false)'
fault WAIT_AGAIN unit/daemon/threads test_takeover daemon/threads/takeover.c 'v->call != call || strcmp(v->waits_in, waits_in) != 0' 'v->call != call'
fault WATCH_WAKE unit/daemon/threads test_loop_activity daemon/threads/loop_activity.c 'activity_wake(w->data' 'activity_turn(w->data'
fault WATCH_LAST unit/daemon/server test_watchdog daemon/server/watchdog.c '&& now >= atomic_load(&w->thread[i].activity->may_last_until)' ''
fault WATCH_REST unit/daemon/server test_watchdog daemon/base/activity.c '== ACTIVITY_UNWATCHED)' '== ACTIVITY_WATCHED)'

# --- unkind devices
fault UNKIND_PLACE e2e/cli unkind daemon/client_mem/placement.c 'if (n > 1 && draw % 2) {' 'if (n > 1 && draw % 2 == 7) {'
fault UNKIND_SEEN e2e/cli unkind daemon/client_mem/late_writes.c 'if (draw % 2 || l->n == SLOTS' 'if (draw % 2 < 7 || l->n == SLOTS'
fault UNKIND_ORDER unit/daemon/client_mem test_late_writes daemon/client_mem/late_writes.c 'if (overlaps_held(l, s, w)) {' 'if (false && overlaps_held(l, s, w)) {'
fault UNKIND_LATE e2e/cli unkind daemon/loop/completion_delay.c 'if (draw % 4) {' 'if (draw % 4 == 7) {'
fault UNKIND_POLL e2e/cli unkind src/verbs/unkind/poll_size.c 'num > 1 && draw % 2 ?' 'num > 1 && draw % 2 == 7 ?'
fault UNKIND_RNR e2e/cli unkind daemon/objects/qp/qp_ring.c 'q->recv_was_late = draw % 2 &&' 'q->recv_was_late = draw % 2 == 7 &&'
fault UNKIND_BUFFERS e2e/cli unkind src/verbs/unkind/recv_buffers.c 'if (!p || !s->length)' 'if (p || !s->length)'
fault UNKIND_EVENT e2e/cli unkind daemon/objects/cq.c 'if (draw % 2)' 'if (draw % 2 == 7)'

# --- the linter
fault LINT_DAMAGED e2e/capture lint pcap/lint/lint_request.c '} else if (r->flags & RECORD_DAMAGED) {' '} else if (r->flags & RECORD_DAMAGED || s) {'
fault LINT_SACK e2e/capture lint pcap/lint/lint.c 'if (l->recs[i].sack)' 'if (false)'
fault LINT_SACK_FORM e2e/capture lint pcap/lint/lint_packet.c 'lint_sack_form(l, frame, p);' ';'
fault LINT_SACK_SENT e2e/capture lint pcap/lint/lint_sack.c 'if (newest > limit) {' 'if (newest > limit + 9) {'
fault LINT_SACK_SEEN e2e/capture lint pcap/lint/lint_sack.c '            return psn;' '            return end;'
fault LINT_SACK_GAPS e2e/capture lint pcap/lint/lint_sack.c 'if (psn >= from && psn < to)' 'if (false)'

# --- recordings
fault DECISIONS e2e/cli replay daemon/loop/decision_memory.c 'named && decisions_find(&d->decisions, &p, newest, &planned)' 'false'
fault SHRINK unit/cmd test_ddmin src/cmd/replay/ddmin.c 'result = try_parts(s, parts, true);' ';'

# --- processors
fault CPU_ADVICE unit/daemon/loop test_cpu_advice daemon/loop/cpu_advice.c 'if (sessions > processors)' 'if (false)'
fault CPU_STREAM unit/daemon/loop test_cpu_advice daemon/loop/cpu_advice.c 'if (outside <= FEW * datagrams)' 'if (true)'
fault CPU_AWAY unit/verbs test_poll_state src/verbs/base/poll_state.c '(!view->away && !gains_apart(t, crowd, view->now))' 'is_crowded(t, crowd, view->now)'
fault CPU_CROWD unit/verbs test_poll_state src/verbs/base/poll_state.c '!view->beside_crowded || !is_crowded(t, crowd, view->now)' '!view->beside_crowded || !crowd'
fault CPU_ALONE unit/verbs test_poll_state src/verbs/base/poll_state.c 'if (first || !shared)' 'if (first)'
fault MOVE_CPU unit/verbs test_move_cpu src/verbs/base/move_cpu.c 'sched_setaffinity(0, sizeof(*where), where) == 0)' 'where)'
fault MOVE_AS_BEFORE unit/verbs test_move_cpu src/verbs/base/move_cpu.c 'choose_as_before(allowed);' ';'
fault SLICE_BACK unit/system test_time_slice system/time_slice.h 'time_slice_write(&a, s->usual);' ';'
fault SLICE_KEPT unit/system test_time_slice system/time_slice.h 'a.runtime == TIME_SLICE_SHORT_NS && s->usual != 0' 'true'
fault SLICE_WAIT unit/verbs test_poll_wait src/verbs/datapath/poll_wait.c 'vb_slice_begin(before);' ';'
fault SLICE_AFTER unit/verbs test_yield src/verbs/shim/yield.c 'time_slice_set(&slice, false);' ';'
fault SLICE_OTHERS unit/verbs test_yield src/verbs/shim/yield.c '!polled_before(before)' 'false'
fault BRIEF_SECOND unit/verbs test_poll_brief src/verbs/base/poll_brief.c 'else if (second)' 'else if (true)'
fault BRIEF_LATE unit/verbs test_poll_brief src/verbs/base/poll_brief.c 'note_slow(b, due, after);' ';'
fault BRIEF_SLEEPS unit/verbs test_poll_state src/verbs/base/poll_state.c '|| vb_poll_is_brief(&t->brief, now)' ''
fault MANY unit/verbs test_poll_brief src/verbs/base/poll_brief.c 'if (b->many)' 'if (false)'
fault MANY_TOLD unit/daemon/session test_client_wakeup daemon/session/client_wakeup.c 'tell(&s->page->many, d->clients_many);' ';'
fault MANY_HEARD unit/verbs test_poll_wait src/verbs/datapath/poll_wait.c 'vb_poll_brief_many(&vb_poll_self.brief, ' '(void)(c && '
fault NAP_NEWS unit/verbs test_poll_wait src/verbs/datapath/poll_wait.c '&nobody, PM_WAITS_FOR_NEWS);' '&nobody, 100);'
fault NAP_OTHERS unit/verbs test_poll_wait src/verbs/datapath/poll_wait.c 'atomic_compare_exchange_strong(&c->page->waiting, &nobody, PM_WAITS_FOR_NEWS);' 'atomic_store(&c->page->waiting, nobody + PM_WAITS_FOR_NEWS);'
fault NAP_PAUSE unit/verbs test_poll_crowd src/verbs/base/poll_crowd.c 'pause_naps(nap, after);' ';'
fault SLOW_CLIENT unit/verbs test_poll_crowd src/verbs/base/poll_crowd.c 'after - before <= vb_poll_slow_yield_ns(yield_costs(crowd))' 'after - before <= VB_POLL_SLOW_YIELD_NS'
fault SLOW_BRIEF unit/verbs test_poll_brief src/verbs/base/poll_brief.c 'after > due + vb_poll_slow_yield_ns(b->yield_ns)' 'after > due + VB_POLL_SLOW_YIELD_NS'
fault PAUSES unit/verbs test_poll_state src/verbs/base/poll_state.c ' && now >= t->pauses_until' ''
fault SLOW_DAEMON unit/daemon/device test_cpu_yield daemon/device/cpu_yield.c 'return yield_cost_scaled(yield_cost_ns(&y->cost), SLOW_YIELD_NS, SLOW_YIELD_MAX_NS);' 'return SLOW_YIELD_NS;'
fault NAP_WOKEN unit/daemon/session test_client_wakeup daemon/session/client_wakeup.c 'wait_us != 0 && wait_us != PM_WAITS_FOR_NEWS)' 'wait_us != 0)'
fault POST_TURN unit/verbs test_poll_wait src/verbs/datapath/wqe.h 'vb_poll_posted();' ';'
fault QP_SPLIT unit/core/base test_qp_table daemon/core/base/qp_table.c 'if (!s->qp || (s->qpn & t->mask) != new)' 'if (true)'
fault QP_PAGES unit/core/base test_qp_table daemon/core/base/qp_table.c '#define FIRST_SLOTS 256u' '#define FIRST_SLOTS 131072u'
fault DONE_AGAIN unit/core/qp test_event_queue daemon/core/qp/event_queue.c 'e->done_head = e->done_tail = 0;' ';'
fault HELD_NEWEST unit/core/selective test_held_responses daemon/core/selective/held_responses.c 'reorder_newest_makes_room(pool, q)' 'false'
fault HELD_ROOM unit/core/selective test_held_responses daemon/core/requester/window.c 'if (r->behind)' 'if (false)'
fault HELD_FIT unit/core/selective test_held_responses daemon/core/requester/ack.c 'if (!fits)' 'if (false)'
fault HELD_ERR unit/core/selective test_held_responses daemon/core/qp/qp_fail.c 'reorder_clear(&qp->e->reorder, &qp->req->held);' ''
fault HELD_BEFORE unit/core/selective test_held_responses daemon/core/requester/ack.c 'r->held.count ? reorder_first(&r->held)->p.psn : r->executed' 'r->executed'
fault SACK_WRAP unit/core/requester test_selective daemon/core/requester/ack.c 'newest <= out' 'psn_diff(s->newest, r->sent_psn) <= 0'
fault HELD_AFTER unit/core/selective test_held_responses daemon/core/selective/held_responses.c 'psn_diff(h->p.psn, r->executed) >= 0' 'false'
fault HELD_REST unit/core/selective test_held_responses daemon/core/selective/scoreboard.c 'bool rest = kind' 'bool rest = false && kind'
fault HELD_END unit/core/selective test_held_responses daemon/core/selective/scoreboard.c 'm.start = request_end(r, s->end);' 'm.start = s->end;'
fault HELD_RTT unit/core/selective test_held_responses daemon/core/requester/selective.c 'take_sample_before(qp, s->newest, now);' ';'
fault HELD_COST unit/core/selective test_held_responses daemon/core/requester/ack.c 'r->held_cost = 0;' ';'
fault ACK_FILLED unit/core/selective test_held_requests daemon/core/responder/receive.c 'r->ack_pending |= r->plain_psn != plain;' ';'
fault ACK_PLAIN unit/core/selective test_held_requests daemon/core/responder/receive.c 'r->ack_pending |= r->plain_psn != plain;' 'r->ack_pending = true;'
fault SACK_FILLED unit/core/selective test_held_requests daemon/core/responder/receive.c 'r->held.count && r->held.count < count' 'false'
fault SACK_NEWS unit/core/selective test_held_requests daemon/core/responder/receive.c 'r->held.count && r->held.count < count' 'r->held.count > 0'
fault HELD_ACKS unit/core/selective test_held_responses daemon/core/requester/ack.c '            take_ack(qp, p, now);' '            ack_received(qp, p, now);'
fault SACK_OLD unit/core/selective test_held_responses daemon/core/requester/ack.c 'if (!old && is_current' 'if ((!old || old) && is_current'
fault ASKED_START unit/core/selective test_held_responses daemon/core/selective/held_responses.c 'psn_diff(psn, r->asked_start) < 0)' 'psn_diff(psn, r->asked_start) < -9999999)'
fault LOSS_ONCE unit/core/selective test_held_responses daemon/core/selective/scoreboard.c '!(known && known->due) &&' '!(known && known->due && full) &&'
fault PART_SENT unit/core/requester test_selective daemon/core/selective/scoreboard.c 'known->next : end;' 'known->next : start;'
fault LATE_UNDO unit/core/requester test_selective daemon/core/requester/selective.c 'congestion_unneeded(&qp->peer->congestion, unneeded, b->lost == 0, now);' ''
fault LATE_READ unit/core/selective test_held_responses daemon/core/requester/burst.c 'congestion_resent(&qp->peer->congestion, read_pkts ? read_pkts : 1);' ''
fault LATE_RESPONSE unit/core/selective test_held_responses daemon/core/selective/held_responses.c 'congestion_unneeded(&qp->peer->congestion, 1, r->board.lost == 0, now);' ''
fault LATE_COUNT unit/core/path test_congestion daemon/core/path/congestion.c 'if (d->resent == 0 && all_sent)' 'if (all_sent)'
fault LATE_UNSENT unit/core/path test_congestion daemon/core/path/congestion.c 'if (d->resent == 0 && all_sent)' 'if (d->resent == 0)'
fault LATE_EARLIER unit/core/path test_congestion daemon/core/path/congestion.c 'd->resent == 0 || packets == 0' 'packets == 0'
fault LATE_BEFORE unit/core/path test_congestion daemon/core/path/congestion.c '.before = d->resent' '.before = 0'
fault LATE_EPOCH unit/core/path test_congestion daemon/core/path/congestion.c 'now - d->since < LATE_ROUNDS * c->srtt' 'true'
fault LATE_PROBE unit/core/path test_congestion daemon/core/path/congestion.c 'c->doubt.undo.cwnd = 0;' ';'
fault LATE_ANSWER unit/core/path test_congestion daemon/core/path/congestion.c '    c->undo.cwnd = 0;' ';'
fault RES_PLACE unit/core/responder test_responder daemon/core/qp/resource.c 'if (res->pending && res->again)' 'if (false)'
fault RES_PARTS unit/core/responder test_responder daemon/core/qp/resource.c 'if (!res->pending || (start < res->next_pkt && end >= res->end_pkt))' 'if (true)'
fault REAPER_RACE unit/daemon/threads test_socket_reaper daemon/threads/socket_reaper.c '} while (n < 0);' '} while (false);'
fault ABANDONED unit/daemon/loop test_abandoned_qp daemon/loop/mads.c 'if (out.abandoned_qpn)' 'if (false)'
fault ABANDONED_DREP unit/core/cm test_disconnect daemon/core/cm/message.c 'id->is_ending ? id->local_qpn : 0' 'id->is_ending && attribute == CM_DREQ ? id->local_qpn : 0'
fault ABANDONED_ALIVE unit/daemon/loop test_abandoned_qp daemon/objects/qp/abandoned_qp.c 'if (!q || !has_died(s))' 'if (!q)'
fault SPIN_YIELD verbs/shim test_spin_lock src/verbs/shim/spin_lock.c 'sched_yield();' ';'
fault HUGE_CROWD verbs/memory test_hugepage src/verbs/shim/hugepage.c '!vb_machine_is_crowded()' '!vb_machine_is_crowded() || length'

# --- the checker of programs
fault CHECK_TRACE unit/check test_trace src/check/base/trace.c 'if (*r->slot[i] != r->trace->at[i])' 'if (false)'
fault CHECK_PAIRS unit/check test_pairs src/cmd/check/pairs.c 'if (a->sq_psn != b->rq_psn)' 'if (false)'
fault CHECK_ACCESS e2e/cli check src/check/requests/access.c 'else if (writes && !(mr->access & IBV_ACCESS_LOCAL_WRITE))' 'else if (false)'
fault CHECK_FREED e2e/cli check src/check/verbs/free_calls.c 's->addr + s->length <= g->from)' 'true)'
fault CHECK_MOVED e2e/cli check src/check/verbs/free_calls.c 'return mr && s->addr >= mr->memory && s->addr - mr->memory < mr->length;' 'return mr != NULL;'
fault CHECK_DONE e2e/cli check src/check/objects/records.c 'return q->failed || q->qp->state == IBV_QPS_ERR ||' 'return q->failed ||'
fault CHECK_XRC e2e/cli check src/check/requests/completion.c 's->cq != search->cq ||' 'true ||'
fault CHECK_TM e2e/cli check src/check/requests/completion.c 'status != IBV_WC_TM_RNDV_INCOMPLETE &&' 'true &&'
fault CHECK_SQE e2e/cli check src/check/verbs/queue_verbs.c 'attr->qp_state == IBV_QPS_RTS)' 'false)'
fault CHECK_REG_EX e2e/cli check src/check/verbs/memory_verbs.c 'a->mask & HAS_IOVA ?' 'false ?'
fault CHECK_ACKED e2e/cli check src/check/verbs/queue_verbs.c 'if (r && r->events < r->acked &&' 'if (false &&'
fault CHECK_CM e2e/cli check_ends src/check/verbs/cm_calls.c 'if (rc == 0)' 'if (false)'
fault CHECK_TOUCH e2e/cli check src/check/objects/request.c 'guard_set(&t->guard, t->from, t->to);' '(void)t;'
fault CHECK_WATCH e2e/cli check src/check/objects/watch.c 's->by = w;' 'set(s, nothing, false);'
fault CHECK_WATCH_RANK e2e/cli check src/check/objects/watch.c 'slots[i].rank < rank &&' 'false &&'
fault CHECK_WATCH_TURN e2e/cli check src/check/objects/watch.c 'turn++ *' '0 *'
fault CHECK_OVER e2e/cli check src/check/requests/touch.c '(q && qp_is_done(q))' 'false'
fault CHECK_BLOCKED e2e/cli check src/check/base/handler.c 'sigdelset(without, all[i].signal);' ';'
fault CHECK_THREAD e2e/cli check src/check/requests/thread_domain.c 'td->inside && td->thread != &here' 'false'
fault CHECK_LATE e2e/cli check_ends src/check/connect/late.c 'if (sent > q->receives_posted)' 'if (false)'
fault CHECK_GID e2e/cli check_ends src/check/connect/asked.c 'return in_arguments(index) || in_environment(index);' 'return true;'

# --- tag matching
fault DEL_CONSUMED verbs/tag_matching test_tm_del daemon/core/tm/tag_list.c 'return TM_WHY_CONSUMED;' 'return TM_WHY_NONE;'
fault DEL_NEVER verbs/tag_matching test_tm_del daemon/core/tm/tag_list.c 'tm_list_remove(&tm->list, e);
    e->state = TM_FREE;' ''
fault EAGER_LENGTH verbs/tag_matching test_tm_errors daemon/core/responder/tm_receive.c 'if (len > r->remaining)
        return V_LENGTH;' 'if (len > r->remaining)
        len = r->remaining;'
fault ENTRY_LKEY verbs/tag_matching test_tm_errors daemon/core/responder/tm_receive.c 'qp->resp->received, len, ACCESS_LOCAL_WRITE)' 'qp->resp->received, len, 0)'
fault READ_LKEY verbs/tag_matching test_tm_errors daemon/core/requester/rendezvous.c 'tm_complete_entry(qp, &rx, status, now);' ''
fault FIN_ORDER verbs/tag_matching test_tm_fins daemon/core/requester/rendezvous.c 'r->offload_reads--;
        queue_fin(qp, &rx);' 'r->offload_reads--;
        static struct tm_rx kept;
        static int ended;
        if (ended++ == 0)
            kept = rx;
        else
            queue_fin(qp, &rx);
        if (ended == 2)
            queue_fin(qp, &kept);'
fault FIN_EARLY verbs/tag_matching test_tm_fins daemon/core/requester/rendezvous.c 'queue_read(qp, e);
            continue;' 'queue_read(qp, e); queue_fin(qp, &e->rx);
            continue;'

# --- XRC and windows
fault XRC_BIND verbs/datapath test_xrc_windows daemon/core/memory/key.c 'return k->kind == KEY_WINDOW_2 && k->mw.qpn != qpn ? NULL : k;' 'return k;'
fault XRC_NUMBER verbs/wire test_xrc_wire daemon/core/responder/xrc.c 'if (r->message && p->srqn != r->srqn)' 'if (false)'
fault XRC_DESTROYED verbs/wire test_xrc_wire daemon/core/responder/xrc.c 'if (!srq || srq->xrcd != qp->xrcd)' 'if (!srq) return V_DROP; if (srq->xrcd != qp->xrcd)'
fault XRC_MAKER verbs/life test_xrc_maker daemon/objects/qp/xrc_target.c 'if (--x->opens == 0)' 'if (--x->opens == 77)'

# --- layouts
fault LAST_WINS verbs/layout test_layout_rules daemon/core/memory/layout.c 'return add(end, e->length);' 'return false;'
fault INNER_KEY verbs/layout test_layout_rules daemon/core/memory/key.c 'const struct mkey *k = key_find(t, e->object);
    return k && (k->kind == KEY_REGION || (k->mw.region && k->serial == e->serial)) ? k : NULL;' 'const struct mkey *k = key_find_index(t, e->object);
    return k;'
fault LAYOUT_QP verbs/layout test_layout_rules daemon/core/memory/mw.c 'mw->mw.qpn = by->qpn;' 'mw->mw.qpn = 0;'
fault MILLION verbs/layout test_layout_million daemon/core/memory/key.c 'if (!k || !grants(k, pd, access))' 'static unsigned uses; if (!k || ++uses > 100000 || !grants(k, pd, access))'

# --- shared regions
fault SHARED_MAP verbs/memory test_shared_region daemon/objects/mr.c 'init.space |= mr_file_space(mr->file);' ''
fault SHARED_LOST verbs/memory test_shared_region daemon/loop/device_setup.c 'sigdelset(&all, SIGBUS);' ''
fault SHARED_SAID verbs/memory test_shared_region daemon/status/object_status.c 'mr_file_in_use(mr->file)' 'true'
fault SHARED_SAID_NOT verbs/memory test_shared_region daemon/status/object_status.c 'json_boolean(v->mapped)' 'json_false()'

# --- data that change while they are sent
fault ICRC_LIVE verbs/memory test_changing_data daemon/net/udp_tx.c '    bth_set_icrc_id(p, ip_id);' '    bth_set_icrc_id(p, ip_id);
    if (len > 1000)
        p[len - 100] = p[100]; /* as if the thread had come so far by now */'
fault ICRC_FIRST verbs/memory test_changing_data daemon/net/udp_tx.c 'icrc_store(p + len - ICRC_LEN, icrc_compute(ctx, (uint16_t)ip_id, p, len - ICRC_LEN));' 'static uint8_t first[8192][1200]; /* the packets as they were sent first, by their PSNs */
    uint8_t *k = first[(p[10] << 8 | p[11]) % 8192];
    if (len < 1000 || len > sizeof(first[0]))
        k = p;
    else if (memcmp(k, p, BTH_LEN) != 0)
        memcpy(k, p, len);
    icrc_store(p + len - ICRC_LEN, icrc_compute(ctx, (uint16_t)ip_id, k, len - ICRC_LEN));'

# --- small messages
fault SMALL_COPY verbs/datapath test_small_data src/verbs/datapath/small_data.h 'if (num == 0 ||' 'if (true ||'
fault SMALL_FENCE verbs/datapath test_small_data src/verbs/datapath/small_data.h 'w->flags & PM_SEND_FENCE' 'false'
fault SMALL_PD verbs/datapath test_small_data src/verbs/datapath/small_data.h 'mr->mr.pd->handle != qp->qp.pd->handle' 'false'

# --- reliable connections, packet by packet
fault ACK_EACH verbs/datapath test_ack_counts daemon/core/responder/receive.c '} else if (psn_diff(p->psn, qp->resp->plain_psn) <= 0) { /* else' '} else if (false) { /* else'
fault NAK_ONCE verbs/wire test_responder_wire daemon/core/responder/receive.c 'if (r->nak_sent && (r->nak_quiet || !went_back))' 'if (false)'
fault REPLAY verbs/wire test_responder_wire daemon/core/responder/receive.c 'if (operation == OP_READ_REQUEST) {
        repeat_read(qp, p);' 'if (operation == OP_READ_REQUEST) {'
fault MSN verbs/wire test_responder_wire daemon/core/responder/receive.c 'r->msn = psn_add(r->msn, 1);' ''
fault RETRY_COUNT verbs/wire test_requester_wire daemon/core/requester/retry.c 'r->retries_left--;
    report' 'report'
fault TIMEOUT_0 verbs/datapath test_timeouts daemon/core/requester/retry.c 'if (qp->attr.timeout && r->progress_at + req_timeout_ns(qp) <= now)' 'if (r->progress_at + req_timeout_ns(qp) <= now)'
fault RETRIES verbs/wire test_requester_wire daemon/core/requester/retry.c 'if (r->retries_left == 0) {' 'if (r->retries_left <= 1) {'
fault RNR_TIMER verbs/wire test_rnr_timers daemon/core/requester/ack.c 'now + rnr_timer_ns(p->aeth.syndrome & AETH_VALUE_MASK);' 'now + rnr_timer_ns(p->aeth.syndrome & AETH_VALUE_MASK) / 2;'

# --- states, datagrams and congestion
fault SQ_DRAINED verbs/datapath test_states daemon/core/requester/retire.c 'event_add(qp, EVENT_SQ_DRAINED);' ';'
fault COMM_EST verbs/datapath test_states daemon/core/responder/receive.c 'event_add(qp, EVENT_COMM_EST);' ''
fault STATE_TABLE verbs/objects test_qp_table daemon/core/control/qp_modify.c '[RC]       = {0,                                             DRAINED | RETRIES | QPA_MAX_RD_ATOMIC | RESPONDS},' '[RC]       = {0,                                             DRAINED | RETRIES | QPA_MAX_RD_ATOMIC},'
fault GRH_V6 e2e/programs ipv6 wire/grh.c '6u << 28 | (uint32_t)g->traffic_class << 20' '5u << 28 | (uint32_t)g->traffic_class << 20'
fault RNR_STORM e2e/cli fault_kinds daemon/loop/rx.c 'engine_withhold_recv(d->engine, true);' ''
fault LINK_DOWN unit/daemon/fault test_fault_match daemon/fault/fault_match.c 'r->link_down = !rule->link_up;' ''
fault SCRIPT_TIME unit/daemon/fault test_fault_script daemon/fault/fault_script.c 'return read_time(l, &l->rule.from_ns);' 'return read_time(l, &(uint64_t){0});'
fault NET_QUEUE unit/daemon/netem test_netem daemon/netem/netem_link.c 'bytes + len > l->queue_bytes' 'bytes > l->queue_bytes'
fault NET_HOPS e2e/cli net daemon/loop/tx.c 'if (travels_on(d, e))' 'if (false)'
fault NTH_MESSAGE unit/daemon/fault test_fault_match daemon/fault/fault_match.c 's->in_message = !ends;' ''
fault IDLE_QP unit/core/qp test_qp_traffic daemon/core/control/qp_modify.c 'if (to > QPS_RTS)' 'if (to > QPS_INIT)'
fault SLAB_ZEROS unit/daemon/objects/qp test_slab daemon/objects/qp/slab.c 'madvise(slab_own(slot), b->own, MADV_DONTNEED);' ''
fault CNP e2e/daemon bottleneck daemon/core/path/dcqcn.c 'c->rate -= (uint64_t)((c->rate / 2 * c->alpha) / ALPHA_ONE);' ''
fault ASK_OTHERS verbs/wire test_responder_wire daemon/loop/rx.c '(dg.peer->like_pumice || dg.peer->icrc.flow.is_v6)' 'true'
fault ASK_ANYBODY unit/core/selective test_held_requests daemon/core/path/peer_sacks.c 'if (like_pumice && peer_features_should_ask(' 'if (peer_features_should_ask('
fault ASK_EARLY e2e/daemon selective daemon/core/responder/receive.c '    } else {
        in_sequence(qp, p, now);' '    } else {
        bool peer_takes_sacks(struct datagram_flow_table *, struct peer_window *, const struct av *, bool, uint64_t);
        peer_takes_sacks(&qp->e->flows, qp->peer, &qp->attr.av, qp->e->rx_like_pumice, now);
        in_sequence(qp, p, now);'
fault SACK_RTT unit/core/requester test_selective daemon/core/requester/rtt.h 'if (!r->sacked || r->fired_at < r->rtt_start)' 'if (true)'
fault SACK_ROOM unit/core/requester test_selective daemon/core/selective/scoreboard.c 'if (full)' 'if (false)'
fault SACK_WAKE unit/core/requester test_selective daemon/core/requester/retry.c 'if (r->board.wake_at && r->board.wake_at < d)' 'if (false)'
fault SACK_PROBE unit/core/requester test_selective daemon/core/requester/selective.c 'min32((uint32_t)twice, b->repeated)' 'min32((uint32_t)twice, 0)'
fault REORDERING unit/core/path test_reordering daemon/core/path/reordering.c 'else if (++r->in_vain == IN_VAIN_MOST)' 'else if (false)'
fault HELD_WHERE unit/daemon/loop test_traffic daemon/loop/device_setup.c 'c->reorder_mem = d->reorder_mem;' ''
fault RUN_WHOLE unit/core test_rx_run daemon/core/rx.c 'if (!qp || !take_run(qp, r, meta, now)) {' 'if (!qp || true || !take_run(qp, r, meta, now)) {'
fault RUN_MTU unit/core test_rx_run daemon/core/responder/execute.c 'r->mtu == qp->mtu && ' ''
fault RUN_LATE unit/core test_rx_run daemon/core/requester/burst.c 'run->last.ackreq = qp_is_reliable(qp);' 'run->last.ackreq |= run->n == want;'
fault RUN_ANSWER unit/core test_rx_run daemon/core/requester/ack.c 'r->una_psn != run->first.psn || ' ''
fault RUN_COST unit/core test_rx_run daemon/core/rx.c 'r->n * PACKET_COST' 'PACKET_COST'
fault RUN_SINGLE unit/core test_rx_run daemon/core/qp/qp.h '? tx_append_plain(b' '? tx_append(b'
fault RUN_ASKED unit/core test_rx_run daemon/core/requester/burst.c 't->plain->ackreq = true;' ';'
fault RUN_SOURCE unit/core test_rx_run daemon/core/rx.c 'refusal(qp, &r->first, meta) != DROP_CAUSES' 'false'
fault RUN_ADDRESS unit/core test_rx_run daemon/core/qp/qp.h 'memcmp(av->dgid, qp->e->cfg.gids[av->sgid_index], sizeof(av->dgid)) == 0' 'true'
fault LOOKS_CAPTURE unit/daemon/loop test_traffic daemon/loop/tx.c 'return !capture_on(d) && ' 'return '
fault LOOKS_FAULT unit/daemon/loop test_traffic daemon/loop/tx.c '&& !delays_packets(d)' ''
fault LOOKS_UNKIND unit/daemon/loop test_traffic daemon/loop/tx.c '&& !d->unkind.kinds' ''
fault SACK_NEWEST unit/pcap test_note pcap/sack_text.c 'last_before(s->newest)' 'last_before(s->end)'
fault NET_RECORDED e2e/cli replay daemon/loop/tx.c 'record(d, made, v->ce, lost);' 'record(d, made, v->ce, false);'
fault NET_REPLAYED e2e/cli replay daemon/server/device_set.c 'if (d->netem && d->decisions.replays)' 'if (false)'

[ $missed -eq 0 ] || echo "$missed faults not caught"
[ $missed -eq 0 ]
