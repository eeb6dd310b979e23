#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Shows that the simulator can fail: puts one deliberate fault after the other into a copy of the engine and demands that it is caught: by
# random exchanges within SEEDS seeds, or, for a fault that only a certain sequence shows, by a case or
# an emulated network. Prints a table; exit code 1 if a
# fault gets away, or if the text that it replaces is no longer in the engine exactly once.
# The engine is the one of the daemon (libcore.a), without the asserted invariants, which would catch some faults first.
# Usage: tests/sim/can_fail.sh [FAULT...], after `make build/lib/libcore.a build/tests/sim/sim`. From the environment: BUILD, CC, SEEDS; LANES,
#        the number of tests that share the processors; COUNT=N, to count for each fault the cases that fail, up to N.
#        tests/sim/can_fail.sh --texts    only checks that the text of each fault is in the engine once; takes a second
set -u
cd "$(dirname "$0")/../.." || exit 1
BUILD=${BUILD:-build}
CC=${CC:-cc}
SEEDS=${SEEDS:-5000}
out=$BUILD/faults
texts=false
if [ "${1:-}" = --texts ]; then
    texts=true
    shift
fi
wanted=" $* "
missed=0
processors=$(($(nproc) / ${LANES:-1}))
[ $processors -ge 1 ] || processors=1

if ! $texts && nm "$BUILD/obj/tests/sim/prng.o" | grep -q '__asan\|__ubsan\|__tsan'; then
    echo "made for builds without sanitizers"
    exit 77
fi

sources=$(find daemon/core -name '*.c')
sim_objects=$({ find tests/sim -name '*.c'; echo daemon/netem/netem_{plan,link}.c daemon/fault/fault_text.c | tr ' ' '\n'; } | sed "s|.*|$BUILD/obj/&|; s|c\$|o|")

# Prints file $2 with text $3 replaced by $4; fails if the text is not in it exactly once.
mutate()
{
    FROM=$3 TO=$4 perl -0777 -pe '$n = s/\Q$ENV{FROM}\E/$ENV{TO}/g; END { exit($n == 1 ? 0 : 1) }' "daemon/core/$2" && return
    echo "$1: the text to be replaced is not exactly once in daemon/core/$2" >&2
    return 1
}

# The engine with text $3 of file $2 replaced by $4. All files that include a header are compiled again.
build()
{
    local dir=$out/$1 file=daemon/core/$2 f o objects=
    rm -rf "$dir"
    mkdir -p "$dir/$(dirname "$file")"
    mutate "$@" >"$dir/$file" || return 1
    for f in $sources; do
        o=$BUILD/obj/${f%.c}.o
        if [ "$f" = "$file" ] || { [[ $file == *.h ]] && grep -qF "$file" "${o%.o}.d"; }; then
            o=$dir/$(echo "${f%.c}.o" | tr / _)
            [ "$f" = "$file" ] && f=$dir/$file
            $CC -D_GNU_SOURCE "-I$dir" -I. -Iinclude -std=gnu11 -O1 -w -c -o "$o" "$f" || return 1
        fi
        objects="$objects $o"
    done
    # shellcheck disable=SC2086
    $CC -o "$dir/sim" $objects $sim_objects "$BUILD/lib/libpcapng.a" "$BUILD/lib/libwire.a" -lisal
}

# fault NAME FILE FROM TO [case|tm|cm|slow CELL|net NETWORK|SEEDS]: random exchanges must find the fault; with `case` a case must, with `tm` an
# exchange with tag matching, with `cm` one with connection management, with `slow` and `net` the cell of the slow paths or the emulated
# network of that name. A number of seeds is for a fault that needs a rare packet.
fault()
{
    [[ $wanted == "  " || $wanted == *" $1 "* ]] || return
    if $texts; then
        mutate "$@" >/dev/null || missed=$((missed + 1))
        return
    fi
    while [ "$(jobs -pr | wc -l)" -ge "$processors" ]; do
        wait -n
    done
    try "$@" || echo "$1" >>"$out/missed" &
}

try() # the arguments of fault: prints the line of the table
{
    local log=$out/$1/log seeds=$SEEDS seed seen cases=-
    build "$1" "$2" "$3" "$4" || return
    if [ "${5:-}" = tm ]; then
        timeout 120 "$out/$1/sim" --tm 1 500 1 >"$log" 2>&1
    elif [ "${5:-}" = cm ]; then
        timeout 120 "$out/$1/sim" --cm 1 500 1 >"$log" 2>&1
    elif [ "${5:-}" = case ]; then
        : >"$log"
    elif [ "${5:-}" = net ]; then
        timeout 120 "$out/$1/sim" --net "$6" | sed -n 's/^FAILED  \(.*[^ ]\)  *\([0-9.]* % of .*\)/FAILED  sim --net \1\n\2/p' >"$log" 2>&1
    elif [ "${5:-}" = slow ]; then
        timeout 120 "$out/$1/sim" --slow "$6" | grep -A1 '^FAILED' >"$log" 2>&1
    else
        [[ ${5:-} != [0-9]* ]] || seeds=$5
        timeout 120 "$out/$1/sim" --seed 1 -n "$seeds" --max-failures 1 --out "$out/$1" >"$log" 2>&1
    fi
    seed=$(sed -n 's/^FAILED  sim --\(seed\|tm\|cm\|slow\|net\) \([0-9]*[^ ]*\).*/\2/p' "$log" | head -n 1)
    seen=$(sed -n '/^FAILED/{n;s/^ *//p;q}' "$log" | cut -c 1-110)
    : >"$log.cases"
    if [ "${5:-}" = case ] || [ -n "${COUNT:-}" ]; then
        timeout 120 "$out/$1/sim" -n 0 --max-failures "${COUNT:-1}" --out "$out/$1" >"$log.cases" 2>/dev/null
        cases=$(sed -n 's/^FAILED  sim --case \([a-z0-9-]*\).*/\1/p' "$log.cases" | sort -u | wc -l)
    fi
    if [ -z "$seed" ] && { [ "${5:-}" != case ] || [ "$cases" -eq 0 ]; }; then
        seed=MISSED
    fi
    [ -n "$seen" ] || seen=$(sed -n '/^FAILED/{n;s/^ *//p;q}' "$log.cases" | cut -c 1-110)
    printf '%-14s %-10s %-12s %s\n' "$1" "${seed:--}" "$cases" "$seen"
    rm -rf "${out:?}/$1"
    [ "$seed" != MISSED ]
}

mkdir -p "$out"
: >"$out/missed"
$texts || printf '%-14s %-10s %-12s %s\n' fault "at seed" "cases failed" "what was seen"

fault ACCESS memory/key.c '(k->init.access & access) == access' 'true'
fault CREDIT_LIMIT requester/credits.c 'c->begun == c->done : req_credits_left(c) > 0' 'c->begun == c->done : true'
fault CREDIT_FIRST requester/credits.c 'c->begun == c->done : req_credits_left(c) > 0' 'true : req_credits_left(c) > 0'
fault CREDIT_WRITE qp/requester_state.h 'w->wr.opcode == WR_SEND_WITH_INV ||
           w->wr.opcode == WR_RDMA_WRITE_WITH_IMM' 'w->wr.opcode == WR_SEND_WITH_INV'
fault CREDIT_CODE responder/recv_queue.c 'aeth_credit_code(queue_used(rq))' 'aeth_credit_code(queue_used(rq) + 1)'
fault CREDIT_SRQ responder/recv_queue.c 'qp->type != QPT_RC || !qp_has_rq(qp)' 'false'
fault CREDIT_TOLD responder/recv_queue.c 'qp->resp->ack_pending = true;' '' case
fault CREDIT_REPEAT responder/recv_queue.c 'r->ack_deadline = now + ((uint64_t)CREDIT_REPEAT_NS' 'if (false) r->ack_deadline = now + ((uint64_t)CREDIT_REPEAT_NS' case
fault CREDIT_ASK requester/retry.c 'r->credits.wait_until ? r->credits.wait_until : NEVER' 'NEVER' case
fault CREDIT_NONE requester/credits.c 'c->state = CREDITS_UNLIMITED;
        c->wait_until' 'c->wait_until' case
fault DEREGISTER memory/key.c 'k->kind = KEY_NONE;' ''
fault ROOM qp/event_queue.c 'return e->done_mask + 1 - (e->done_tail - e->done_head);' 'return e != NULL;'
fault PSN_WRAP base/psn.h '? (int32_t)d - 0x1000000 : (int32_t)d' '? (int32_t)d : (int32_t)d'
fault STRANGER rx.c 'memcmp(meta->src_gid, qp->attr.av.dgid, 16) != 0' 'false'
fault STRANGER_TO rx.c 'memcmp(meta->dst_gid, qp->e->cfg.gids[qp->attr.av.sgid_index], 16) != 0' 'false'
fault TIME_WAIT rx.c 'if (time_wait_rx(&e->time_wait, p, meta))' 'if (time_wait_rx(&(struct time_wait_ring){0}, p, meta))'
fault FENCE requester/send.c '&& w->wr.flags & SEND_FENCE && r->rd_count' '&& false'
fault DRAIN requester/send.c 'return qp->attr.state == QPS_SQD && ' 'return false && ' case
fault INFLIGHT requester/ack.c 'qp_release(qp, released);' 'qp_release(qp, released / 16);'
fault RNR_RESTART requester/ack.c 'req_loss(qp, RETRANS_RNR, r->una_psn, now)' \
    'req_loss(qp, RETRANS_RNR, psn_diff(r->next_psn, r->una_psn) > 1 ? psn_add(r->una_psn, 1) : r->una_psn, now)'
fault NAK_RESTART requester/retry.c 'if (!again)
        r->progress_at' 'r->progress_at' case
fault FLUSH_LOST requester/retire.c 'complete(qp, req_wqe(r, r->sq.head), status,' \
    'if (status != WC_WR_FLUSH_ERR || req_wqe(r, r->sq.head)->wr.flags & SEND_SIGNALED) complete(qp, req_wqe(r, r->sq.head), status,'
fault NAK_TIMER requester/retry.c 'uint64_t d = r->timer_at' 'if (r->rewound_at && r->cause == RETRANS_FAST) return NEVER; uint64_t d = r->timer_at'
fault PROBE_TIMER requester/retry.h 'r->progress_at = r->timer_at = now;' 'r->progress_at = now;' slow 1:4:write,4096,1,65536
fault KARN requester/retry.h 'if (qp->peer->congestion.sampled_at > r->fired_at)' '' slow 1:1:write,4096,1,65536
fault BACKOFF requester/retry.h 'if (!in_vain && now - r->fired_at < congestion_rto(&qp->peer->congestion))' 'if (false)' case
fault SINGLE requester/window.c 'req_is_unanswered(r) ? 1 : ' '' slow 1:16:read,4096,1,65536
fault TRUST requester/retry.h 'r->trusted < (rtt ? TRUSTED_MOST : TRUSTED_MOST_UNKNOWN) && ++r->trusted' 'true' case
fault CWND_FLOOR path/congestion.c 'least = CWND_LEAST_PKTS * packet;' 'least = 147456;' slow 1:1:write,4096,1,65536
fault CWND_TIMEOUT path/congestion.c 'c->cwnd = min64(CWND_LEAST_PKTS * packet, cfg->peer_window_bytes);' '' slow 1:100:read,4096,1,65536
fault PACE path/congestion.h 'if (ahead && ahead >= burst)' 'if (false)' slow 1:1:write,1024,1,1048576
fault CWND_QUEUE path/congestion.c 'return c->queue || ' 'return ' slow 10:16:write,4096,1,65536
fault CWND_TIGHT path/congestion.c 'c->tight == TIGHT_LOSSES' 'false' slow 100:4:write,4096,1,65536
fault CWND_SHARE path/congestion.c '? REDUCED_TENTHS_LONG' '? REDUCED_TENTHS + 2' slow 1:16:read,4096,1,65536
fault RETRY_COUNT requester/retry.c 'if (r->retries_left == 0)' 'if (r->retries_left <= 1)'
fault REFILL responder/recv_queue.c 'qp->e->owner.ops->refill && qp_has_rq(qp)' 'false'
fault INVALIDATE responder/message.c '!(window = mw_find_bound(&qp->e->keys, qp->qpn, p->inv_rkey))' 'false'
fault ATOMIC_TWICE responder/receive.c 'struct resource *res = resp_find_resource(qp, p->psn, operation);' 'struct sge_iter where; struct mem_segment segment; uint64_t old;
        resp_remote_iter(qp, &where, qp->pd, p->atomic.rkey, p->atomic.va, 8, ACCESS_REMOTE_ATOMIC);
        if (operation == OP_FETCH_ADD && sge_iter_segments(&where, &segment, 1) == 1)
            qp->e->mem.ops->atomic(qp->e->mem.ctx, &segment, MEM_FETCH_ADD, p->atomic.swap_add, 0, &old);
        struct resource *res = resp_find_resource(qp, p->psn, operation);'
fault WRITE_TWICE responder/receive.c 'qp->resp->ack_pending = true;' 'struct sge_iter to; qp->resp->ack_pending = true;
        resp_remote_iter(qp, &to, qp->pd, p->reth.rkey, p->reth.va, p->payload_len, ACCESS_REMOTE_WRITE);
        if (operation == OP_WRITE_ONLY)
            sge_iter_write(&to, &qp->e->mem, qp->qpn, p->payload, p->payload_len);'
fault AWRITE_TWICE responder/receive.c 'struct resource *res = resp_find_resource(qp, p->psn, operation);' 'struct sge_iter to;
        resp_remote_iter(qp, &to, qp->resp->pd, p->reth.rkey, p->reth.va, 8, ACCESS_REMOTE_WRITE);
        if (operation == OP_ATOMIC_WRITE)
            sge_iter_write(&to, &qp->e->mem, qp->qpn, p->payload, 8);
        struct resource *res = resp_find_resource(qp, p->psn, operation);'
fault FLUSH_KEY responder/atomic_flush.c 'if (range ? !key_open' 'if (false ? !key_open'
fault WINDOW_TAG memory/key.c 'k && k->tag == (key & 0xff)' 'k'
fault WINDOW_RANGE memory/key.c 'return off <= k->init.length && len <= k->init.length - off ? k : NULL;' \
    'return k->kind != KEY_REGION || (off <= k->init.length && len <= k->init.length - off) ? k : NULL;'
fault WINDOW_FREE memory/key.c 'if (!k || (k->kind != KEY_REGION && k->mw.region == 0))' 'if (!k)'
fault WINDOW_QP memory/key.c 'return k->kind == KEY_WINDOW_2 && k->mw.qpn != qpn ? NULL : k;' 'return k;'
fault WINDOW_SRQ responder/message.c 'if (window)
            mw_unbind' 'if (window && !qp->srqn)
            mw_unbind'
fault WINDOW_COUNT memory/mw.c 'else
        t->entry[mw->mw.region].windows--;' ''
fault BIND_AGAIN requester/send.c 'r->cur++; /* the operation was carried out before the QP went back */' '{
#include "daemon/core/memory/mw.h"
            uint8_t cause;
            struct mw_binder by = {.qpn = qp->qpn, .pd = qp->pd, .windows = &qp->windows};
            if (w->wr.opcode == WR_BIND_MW && !mw_bind(&qp->e->keys, &by, &w->wr.bind, &cause))
                w->local_error = WC_MW_BIND_ERR;
            else
                r->cur++;
        }'
fault INV_AGAIN responder/receive.c 'qp->resp->ack_pending = true;' 'qp->resp->ack_pending = true;
#include "daemon/core/memory/mw.h"
        struct mkey *window = op_table[p->opcode].headers & OP_HAS_IETH ? mw_find_bound(&qp->e->keys, qp->qpn, p->inv_rkey) : NULL;
        if (window)
            mw_unbind(&qp->e->keys, window);'
fault READ_GONE responder/reply.c 'if (res->again) {' 'if (false) {'
fault MSN responder/receive.c 'if (props & (OP_IS_LAST | OP_IS_ONLY))
        r->msn' 'if (props & (OP_IS_LAST | OP_IS_ONLY) && !(props & OP_IS_READ))
        r->msn'
fault ACK_PSN responder/reply.c 'AETH_ACK | credits, r->plain_psn' 'AETH_ACK | credits, r->epsn'
fault READ_LATE responder/read_first.h 'return qp->resp->res_unread == 0 ||' 'return true ||'
fault READ_AGAIN responder/read_first.c 'if (res->length > READ_SMALL && !res->copied)' 'if (res->again || (res->length > READ_SMALL && !res->copied))'
fault ACK_READ responder/reply.c 'AETH_ACK | credits, r->plain_psn' 'AETH_ACK | credits, psn_add(r->epsn, PSN_MASK)'
fault ACK_MSN responder/reply.c 'r->plain_psn, r->plain_msn' 'r->plain_psn, r->msn'
fault READ_RESUME responder/read_first.c 'return gather(qp, res, off, buf, n, bytes);' 'return gather(qp, res, off - (res->start_pkt ? qp->mtu : 0), buf, n, bytes);'
fault CNTR_QUIET requester/retire.c '(qp->cntr_ops, 0) && !w->offload' '(qp->cntr_ops, 0) && w->wr.flags & SEND_SIGNALED'
fault CNTR_AGAIN responder/reply.c '&& !res->counted' ''
fault CNTR_REFUSED responder/execute.c 'qp_count_op(qp, CNTR_REMOTE_WRITE, false, 0);' 'qp_count_op(qp, CNTR_REMOTE_WRITE, true, 0);'
fault CNTR_UNDO qp/comp_cntr.c 'cntr->done -= cntr->bytes ? bytes : 1;' '' case
fault FAULTY_READ engine.c 'resp_drop_responses(qp);' '' case

fault SRQ_ORDER responder/srq.c 'queue_at(&srq->rq, srq->rq.head++)' 'queue_at(&srq->rq, --srq->rq.tail)'
fault SRQ_WAIT responder/srq.c 'bool found = queue_used(&srq->rq) > 0;' 'bool found = queue_used(&srq->rq) > 0 && list_empty(&srq->takers);'
fault SRQ_PUT_BACK responder/srq.c 'copy(&srq->rq, --srq->rq.head,' 'own->head++; if (false) copy(&srq->rq, --srq->rq.head,'
fault SRQ_LIMIT responder/srq.c 'srq->limit = 0;' ''
fault SRQ_LIMIT_RING responder/srq.c 'srq_ask_owner(srq);
    if (queue_used(&srq->rq) >= srq->limit)' 'if (queue_used(&srq->rq) >= srq->limit)'
fault SRQ_RESIZE responder/srq.c 'to->e->srqs[to->number & to->e->srq_mask] = to;' 'to->rq.tail -= used > 1;'
fault SRQ_PD responder/recv_queue.c 'return srq ? srq->pd : qp->pd;' 'return srq && srq->xrcd ? srq->pd : qp->pd;'
fault SRQ_LAST_WQE responder/recv_queue.c 'qp->last_wqe_reported = true;' ''
fault XRC_DOMAIN responder/xrc.c '!srq || srq->xrcd != qp->xrcd' '!srq'
fault XRC_SPLIT responder/xrc.c 'r->message && p->srqn != r->srqn' 'false' 40000
fault XRC_WAIT responder/srq.c 'bool found = queue_used(&srq->rq) > 0;' 'bool found = queue_used(&srq->rq) > 0;
    for (uint32_t i = 0; i <= srq->e->srq_mask && srq->xrcd; i++)
        found = found && (!srq->e->srqs[i] || srq->e->srqs[i]->xrcd != srq->xrcd || queue_used(&srq->e->srqs[i]->rq) > 0);'
fault XRC_KEPT responder/receive.c 'if (r->message != OP_IS_SEND)
        srq_put_back(qp);' ''
fault XRC_PD responder/xrc.c 'r->pd = srq->pd;' 'r->pd = r->pd ? r->pd : srq->pd;'
fault XRC_READ_PD responder/read_first.c 'resp_remote_iter(qp, &from, res->pd, res->rkey, res->va + off' 'resp_remote_iter(qp, &from, qp->resp->pd, res->rkey, res->va + off'
fault XRC_CQ responder/srq.c 'if (srq->cq)' 'if (false)'
fault PSN_FAR responder/receive.c 'if (__builtin_expect(!is_plausible(qp, ahead), 0)) {' 'if (false) {'
fault XRC_ETH requester/burst.c 'p->srqn = w->wr.srqn;' 'p->srqn = off ? 0 : w->wr.srqn;'
fault UC_GAP responder/uc.c 'if (begins || ahead != 0)' 'if (begins)'
fault UC_SRQ_HELD responder/uc.c 'qp->resp->message = 0;
    srq_put_back(qp);' 'qp->resp->message = 0;'
fault UD_SRQ_SHORT responder/ud.c 'report_drop(qp->e, DROP_REFUSED, p, meta);
        srq_put_back(qp);' 'report_drop(qp->e, DROP_REFUSED, p, meta);'
fault UD_SRQ_PD responder/recv_queue.c 'sge_iter_sgl(s, &qp->e->keys, recv_pd(qp)' 'sge_iter_sgl(s, &qp->e->keys, qp_is_reliable(qp) ? recv_pd(qp) : qp->pd'
fault UC_SRQ_CQ responder/srq.c 'c->srq_owner = srq->owner;' 'c->srq_owner = qp_is_reliable(qp) ? srq->owner : NULL;'
fault UD_QKEY responder/ud.c 'p->deth.qkey != qp->attr.qkey' 'false'
fault UD_GRH responder/ud.c 'memcpy(g.dst, meta->dst_gid, sizeof(g.dst));' 'memcpy(g.dst, meta->src_gid, sizeof(g.dst));'
fault SQE_FLUSH requester/retire.c 'r->unsent_psn = r->next_psn;' 'qp->attr.state = qp->attr.state == QPS_SQE ? QPS_RTS : qp->attr.state;'
fault MCAST_SELF rx.c '(own && m->qp->qpn == p->deth.src_qpn) || ' ''
fault RUN_GAP responder/receive.c 'r->first.psn != qp->resp->epsn || ' ''
fault RUN_ACK responder/receive.c 'i + 1 == r->n && r->last.ackreq' 'false'
fault RUN_READS responder/receive.c '!read_first(qp, &r->first) ||' ''
fault RUN_END responder/execute.c 'all->psn = r->first.psn;' 'all->psn = r->first.psn; all->solicited = false;'
fault RUN_AGAIN requester/burst.c 'psn_diff(psn_add(w->first_psn, off), s->sent0) >= 0' 'true'
fault RUN_MIDWAY requester/burst.c '!asks_midway(qp, done + n - 1)' 'true'
fault RUN_CREDITS requester/ack.c 'if (tells && req_credits_received(qp, p))' 'if (false && p)'
fault RUN_COUNT rx.c 'COUNT_N(qp, rcvd_pkts, r->n);' 'COUNT(qp, rcvd_pkts);'
fault RUN_ROOM base/tx_batch.c 'op_table[pkt_run_opcode(r, n)].header_len + len' 'len'
fault RUN_SINGLE base/tx_batch.c 'plain->payload_len = payload_len;' 'plain->payload_len = payload_len + pkt_pad(payload_len);'
fault FLOW_WINDOW path/peer_window.h 'return p->inflight < window_bytes ? window_bytes - p->inflight : 0;' 'return p ? window_bytes : 0;'
fault FLOW_ANSWER path/datagram_flow.c 'uint64_t mark = f->probe[i].mark;' 'uint64_t mark = f->charged;'
fault CNP_IDLE rx.c 'if (!awaits_cnp(qp, now)) {' 'if (false) {' case
fault CNP_RATE path/dcqcn.c 'if (c->rate < lowest(cfg))' 'c->rate = c->target; if (c->rate < lowest(cfg))' case
fault CNP_STEP path/dcqcn.c 'c->rose && now - c->cut_at < c->step_ns' 'false' net 'incast with ECN, 2'
fault CNP_BURST path/dcqcn.h '#define DCQCN_BURST_MOST 8192u' '#define DCQCN_BURST_MOST 65536u' net '10 Gbit/s, 2'
fault CNP_LOWEST path/dcqcn.c '#define MIN_DIVISOR 4000u' '#define MIN_DIVISOR 500u' net '100 Mbit/s, 2'

fault TM_INFLIGHT tm/state.h '&& tm->inflight == 0;' ';' tm
fault TM_PENDING tm/match.c 'if (e && tm_list_active(&tm->list, e))' 'if (e)' tm
fault TM_ORDER tm/match_list.c 'e->seq < first->seq' 'e->seq > first->seq' tm
fault TM_DEATH tm/match.c 'tm->inflight--;
    trace_end' 'tm->inflight--, tm->hw_cnt++;
    trace_end' tm
fault TM_RNR responder/tm_receive.c 'tm_refuse(qp->tm, &d, now);
        return v;' 'tm_refuse(qp->tm, &d, now);
        if (v == V_RNR && !d.entry)
            tm_commit(qp->tm, &d, &qp->resp->tm_rx, now), tm_done(qp->tm, &qp->resp->tm_rx, now);
        return v;' tm
fault TM_DETACHED qp/tm_entry.c 'list_append(&qp->e->detached, &e->job);' '' tm
fault TM_FORGET qp/event_queue.c '|| c->of != OF_REQUEST' '' tm
fault TM_FIN_EARLY requester/rendezvous.c 'queue_read(qp, e);
            continue;' 'queue_read(qp, e);
            queue_fin(qp, &e->rx);
            continue;' tm
fault TM_FIN_LOST requester/rendezvous.c 'queue_fin(qp, &rx);
        tm_done' 'tm_done' tm
fault CM_REPEAT cm/retry.c 'message_repeat(id);
    if (id->retries' 'if (id->retries' cm
fault CM_TIMER cm/retry.c 'cm_id_set_timer(id, CM_TIMER_RETRY, now + id->interval);' '' cm
fault CM_RTU_AGAIN cm/connect.c 'id->state == CM_ID_ESTABLISHED || id->state == CM_ID_DISCONNECTED' 'id->state == CM_ID_DISCONNECTED' cm
fault CM_REQ_AGAIN cm/accept.c 'if (n) {
        answer_again' 'if (false) {
        answer_again' cm
fault CM_REJ_AGAIN cm/disconnect.c 'comm_table_insert(&id->cm->comm, &id->by_remote, &key);' '' cm
fault CM_REP_GONE cm/connect.c 'if (id && !id->passive && id->remote_comm_id == p->local_comm_id) {' 'if (!id || id->remote_comm_id == p->local_comm_id) {
        if (!id)
            return;' cm
fault CM_PSN cm/connect.c 'id->sq_psn = p->starting_psn;' 'id->sq_psn = p->starting_psn + 1;' cm
fault CM_READS cm/connect.c 'id->initiator_depth = p->responder_resources;' 'id->initiator_depth = p->initiator_depth;' cm
fault CM_MRA cm/reject.c 'retry_wait_longer(id, service + cm_time_ns(id->ack_timeout_code), r->now);' '' cm
fault CM_DREP cm/disconnect.c 'message_answer(r, &m);' '' cm
fault CM_TIME_WAIT cm/disconnect.c 'cm_id_set_timer(id, CM_TIMER_TIME_WAIT, now + cm_time_ns(id->ack_timeout_code));' '' cm
fault CM_TWICE cm/disconnect.c 'id->disconnected = true;' '' cm
fault CM_LEAK cm/cm_id.c 'comm_table_remove(&cm->comm, &id->by_local);' '' cm
fault CM_SIDR_AGAIN cm/sidr.c 'retry_answer_again(cm_id_of_remote(n), r->now);' '' cm
fault CM_OVERTAKE cm/reject.c '|| id->state == CM_ID_REQ_SENT' '' cm
fault HELD_EARLY responder/receive.c 'if (ahead > 0)
            return;
        reorder_drop_first(&qp->e->reorder, &r->held);
        if (ahead == 0)' 'reorder_drop_first(&qp->e->reorder, &r->held);
        if (ahead >= 0)'
fault HELD_REUSE base/reorder.c 'list_append(&pool->spent, l);' 'list_prepend(&pool->unused, l); pool->free++;'
fault SACK_ASK path/peer_sacks.c 'return p->features.sacks;' 'return true;'
fault SACK_GAP selective/held_requests.c 's->end = h->end;' 's->end = psn_add(h->p.psn, 1); if (psn_diff(h->end, s->end) > 0) s->end = h->end + 1;'
fault SACK_ALONE selective/scoreboard.c '(all || !m.repeated || was_lost_again(b, &m, s))' '(all || !m.repeated || (0 && was_lost_again(b, &m, s)))' case
fault SACK_AGAIN selective/scoreboard.c '(all || !m.repeated || was_lost_again(b, &m, s))' '(was_lost_again(b, &m, s) || true)' case
fault SACK_WAIT selective/scoreboard.c 'now - m->since >= window' 'now >= m->since + 0 * window' case
fault SACK_TWICE selective/held_requests.c '.twice = qp->resp->twice' '.twice = 0' case
fault SACK_BACK requester/ack.c 'req_skip(qp, s->end);' 'return false;' case
fault HOLD_NONE selective/held_responses.c 'held_allowed(qp, now) ? keep(qp, p)' 'false ? keep(qp, p)' case
fault HOLD_TAKE requester/ack.c 'if (__builtin_expect(r->behind, 0))
        take_held' 'if (false)
        take_held' case
fault HOLD_ACK requester/ack.c 'if (!plain || !held_allowed(qp, now))' 'if (true)' case
fault HOLD_WHOLE requester/send.c 'if (responses)
        return min32(req_chunk_left' 'if (false)
        return min32(req_chunk_left' case
fault HOLD_OLDEST requester/send.c 'wqe_is_read(w) && is_oldest(r, m)' 'false' case
fault HOLD_TWICE selective/held_responses.c 'reordering_unneeded(&qp->peer' 'if (false) reordering_unneeded(&qp->peer' case
fault HOLD_PARTS qp/resource.c 'res->repeats < REPEATS_MOST' 'false' case
fault HOLD_ROUND qp/resource.c 'if (left == 0)' 'if (true)' case
fault LAYOUT_ITEM memory/layout.c 'c->byte = p.in % e->length;' 'c->byte = 0;'
fault LAYOUT_TURN memory/layout.c 'p->round = off / l->round_bytes;' 'p->round = 0;'
fault LAYOUT_INNER memory/sge_iter.c 'layout_walk_push(&s->walk, &k->shape->layout, p.addr, p.len)' 'layout_walk_push(&s->walk, &k->shape->layout, 0, p.len)'

if $texts; then
    [ $missed -eq 0 ] && echo "the text of each fault is in the engine once"
    exit $((missed != 0))
fi
wait
missed=$(wc -l <"$out/missed")
if [ "$missed" -ne 0 ]; then
    echo "$missed faults were not caught within $SEEDS seeds"
    exit 1
fi
echo "all caught within $SEEDS seeds"
