// SPDX-License-Identifier: BSD-2-Clause
/* The checks at the end of an exchange. */
#include "tests/sim/tag_matching/tm.h"

static bool conn_settled(const struct tms *s, int i)
{
    const struct tms_conn *c = &s->conn[i];
    if (c->next < c->count || c->completed < c->next)
        return false;
    for (int k = 0; k < c->count && !c->dead; k++) {
        const struct tms_msg *m = &s->msg[c->order[k]];
        if (!m->received || (m->opcode == TMH_RNDV && !m->fin))
            return false;
    }
    return true;
}

bool tms_settled(const struct tms *s)
{
    if (s->op_head != s->op_tail || engine_peek_completion(s->host[0].e) ||
        (s->kill != TMS_NONE && !s->conn[s->kill].dead))
        return false;
    for (int i = 0; i < s->conns; i++)
        if (!conn_settled(s, i))
            return false;
    for (int r = 0; r < s->recvs; r++)
        if (s->recv[r].state == RECV_MATCHED || s->recv[r].state == RECV_READING || s->recv[r].canceling)
            return false;
    return true;
}

void tms_unsettled(struct tms *s)
{
    for (int i = 0; i < s->conns; i++) {
        const struct tms_conn *c = &s->conn[i];
        struct qp_info info = {0};
        if (!c->gone)
            qp_info(c->to, &info);
        if (!conn_settled(s, i))
            tms_fail(s, "no end: QP %d%s in state %u has posted %d of %d messages, %d are completed", i,
                     c->dead ? ", dead," : "", info.state, c->next, c->count, c->completed);
    }
    for (int m = 0; m < s->msgs; m++)
        if (!s->msg[m].received && !s->conn[s->msg[m].qp].dead)
            tms_fail(s, "no end: message %d is missing", m);
    for (int r = 0; r < s->recvs; r++)
        if (s->recv[r].state == RECV_MATCHED || s->recv[r].state == RECV_READING || s->recv[r].canceling)
            tms_fail(s, "no end: receive %d is in state %u", r, s->recv[r].state);
    tms_fail(s, "no end: %u operations wait, connection %d was to be killed", s->op_tail - s->op_head, s->kill);
}

/* If two messages of one sender both match a receive, the earlier message must not have a later receive than the
 * later message. */
static void check_order(struct tms *s, int a, int b)
{
    const struct tms_msg *first = &s->msg[a], *second = &s->msg[b];
    if (second->recv == TMS_NONE || second->opcode == TMH_NO_TAG || first->opcode == TMH_NO_TAG)
        return;
    const struct tms_recv *has = &s->recv[second->recv];
    if ((first->tag & has->mask) != has->tag)
        return;
    if (first->recv == TMS_NONE)
        tms_fail(s, "message %d overtook message %d", b, a);
    else if (s->recv[first->recv].order > has->order)
        tms_fail(s, "message %d got receive %d, and %d before it receive %d", b, second->recv, a, first->recv);
}

/* If two receives both match a message, the receive that was posted earlier must have got its own message before. */
static void check_receives(struct tms *s)
{
    for (int i = 0; i < s->matches; i++) {
        const struct tms_recv *late = &s->recv[s->match_log[i]];
        const struct tms_msg *m = &s->msg[late->msg];
        for (int r = 0; r < s->recvs; r++) {
            const struct tms_recv *early = &s->recv[r];
            if (early->order >= late->order || (m->tag & early->mask) != early->tag || early->state == RECV_IDLE ||
                early->state == RECV_CANCELED)
                continue;
            bool before = false;
            for (int k = 0; k < i; k++)
                before |= s->match_log[k] == r;
            if (!before)
                tms_fail(s, "message %d went to receive %d, although %d was posted earlier", late->msg, s->match_log[i],
                         r);
        }
    }
}

void tms_check(struct tms *s)
{
    struct tm_info info;
    struct tm_op op = {.opcode = TM_SYNC, .unexpected_cnt = s->count};
    srq_post_op(s->srq, &op, s->now);
    tm_info(s->tm, &info);
    if (info.consumed || info.inflight)
        tms_fail(s, "%u entries and %u unexpected messages are still under way", info.consumed, info.inflight);
    if (info.hw_cnt != (uint16_t)s->count)
        tms_fail(s, "the device counts %u unexpected messages, the program %u", info.hw_cnt, s->count);
    if (!info.in_sync || info.pending)
        tms_fail(s, "device and program do not agree: %u pending entries", info.pending);
    uint32_t listed = 0;
    for (int r = 0; r < s->recvs; r++)
        listed += s->recv[r].state == RECV_POSTED;
    if (info.active != listed)
        tms_fail(s, "%u entries, but %u receives are posted", info.active, listed);
    for (int i = 0; i < s->conns; i++)
        for (int a = 0; a < s->conn[i].count; a++)
            for (int b = a + 1; b < s->conn[i].count; b++)
                check_order(s, s->conn[i].order[a], s->conn[i].order[b]);
    check_receives(s);
}
