// SPDX-License-Identifier: BSD-2-Clause
/* The receiving program. It keeps the list of its receives and the queue of unexpected messages, and lets the device
 * match what it can. It never waits for the device: operations reach the device later, in order, and completions
 * reach the program later. */
#include "tests/sim/tag_matching/tm.h"

#include <string.h>

/* The wr_id of a FIN is this plus the receive's number. The wr_id of a READ is the receive's number. */
#define FIN_WR 1000u
#define OPS (sizeof(((struct tms *)0)->op) / sizeof(struct tm_op))

void tms_draw_receives(struct tms *s)
{
    s->planned = (int)prng_range(&s->rng, 0, (uint64_t)s->msgs * 2);
    s->slots = (uint32_t)prng_range(&s->rng, 2, 32);
    for (int r = 0; r < TMS_RECVS; r++) {
        struct tms_recv *recv = &s->recv[r];
        uint64_t tag = prng_range(&s->rng, 0, (uint64_t)s->conns - 1) << 8 | prng_range(&s->rng, 0, 2);
        *recv = (struct tms_recv){.msg = TMS_NONE, .cap = TMS_REGION};
        recv->mask = prng_pick(&s->rng, UINT64_MAX, UINT64_MAX, UINT64_MAX, 0xff, 0xff00, 0);
        if (r >= s->planned)
            recv->mask = 0; /* matches all remaining messages */
        recv->tag = tag & recv->mask;
        if (s->small && prng_chance(&s->rng, 200))
            recv->cap = (uint32_t)prng_range(&s->rng, 40, 100);
    }
    for (uint32_t i = 0; i < s->slots; i++)
        s->slot_owner[i] = TMS_NONE;
    for (int i = 0; i < TMS_BUFS; i++)
        s->free_buf[s->num_free_buf++] = i;
}

/* --- operations -------------------------------------------------------------------------------- */

static struct tm_op *new_op(struct tms *s, uint8_t opcode)
{
    if (s->op_tail - s->op_head == OPS)
        tms_fail(s, "too many operations");
    struct tm_op *op = &s->op[s->op_tail++ % OPS];
    *op = (struct tm_op){.opcode = opcode, .flags = TM_OP_SYNC, .unexpected_cnt = s->count};
    return op;
}

static void process_ops(struct tms *s)
{
    while (s->op_head != s->op_tail && prng_chance(&s->rng, 600)) {
        if (srq_post_op(s->srq, &s->op[s->op_head % OPS], s->now) != 0)
            return; /* no room for the completion */
        s->op_head++;
    }
}

static void free_slot(struct tms *s, struct tms_recv *r)
{
    if (!r->add_pending && r->final && r->listed) {
        s->slot_owner[TM_SLOT(r->handle)] = TMS_NONE;
        r->listed = false;
    }
}

static void delete (struct tms *s, int r, bool signaled)
{
    struct tm_op *op = new_op(s, TM_DEL);
    op->handle = s->recv[r].handle;
    op->wr_id = (uint64_t)r;
    op->flags |= signaled ? TM_OP_SIGNALED : 0;
    if (!signaled) {
        s->recv[r].final = true;
        free_slot(s, &s->recv[r]);
    }
}

/* --- a receive gets a message ------------------------------------------------------------------ */

static void check_data(struct tms *s, int r, const uint8_t *data, uint32_t len)
{
    int m = s->recv[r].msg;
    if (len != s->msg[m].len) {
        tms_fail(s, "receive %d: %u bytes of message %d, which has %u", r, len, m, s->msg[m].len);
        return;
    }
    for (uint32_t i = 0; i < len; i++)
        if (data[i] != tms_byte(m, i)) {
            tms_fail(s, "receive %d: byte %u of message %d is wrong", r, i, m);
            return;
        }
    s->msg[m].received = true;
}

static void matched(struct tms *s, int r, int m)
{
    struct tms_recv *recv = &s->recv[r];
    if (m < 0 || m >= s->msgs || recv->msg != TMS_NONE || s->msg[m].recv != TMS_NONE ||
        (s->msg[m].tag & recv->mask) != recv->tag) {
        tms_fail(s, "receive %d got message %d", r, m);
        return;
    }
    recv->msg = m;
    s->msg[m].recv = r;
    s->match_log[s->matches++] = r;
    tms_say(s, "receive %d gets message %d", r, m);
}

static void failed(struct tms *s, int r)
{
    struct tms_recv *recv = &s->recv[r];
    if (recv->msg == TMS_NONE || !s->conn[s->msg[recv->msg].qp].dead)
        tms_fail(s, "receive %d failed", r);
    recv->state = RECV_FAILED;
    s->dead_entries++;
}

static void post_fin(struct tms *s, int r)
{
    const struct tms_msg *msg = &s->msg[s->recv[r].msg];
    const struct tms_conn *c = &s->conn[msg->qp];
    uint8_t bytes[TMH_LEN + RVH_LEN];
    struct tmh tmh = {.opcode = TMH_FIN,
                      .reserved = {0, 0, (uint8_t)s->recv[r].msg},
                      .app_ctx = (uint32_t)s->recv[r].msg,
                      .tag = msg->tag};
    struct rvh rvh = {.len = msg->len};
    struct send_wr wr = {.wr_id = FIN_WR + (uint64_t)r, .opcode = WR_SEND, .flags = SEND_INLINE, .inline_len = 32};
    tmh_encode(&tmh, bytes);
    rvh_encode(&rvh, bytes + TMH_LEN);
    if (c->gone || qp_post_send(c->to, &wr, NULL, bytes) != 0)
        if (!c->dead)
            tms_fail(s, "a FIN can't be posted");
}

/* Reads the data of a rendezvous. The program does this itself. */
static void fetch(struct tms *s, int r, const uint8_t *request)
{
    struct tms_recv *recv = &s->recv[r];
    const struct tms_conn *c = &s->conn[s->msg[recv->msg].qp];
    struct rvh rvh;
    rvh_decode(request + TMH_LEN, RVH_LEN, &rvh);
    struct sge sge = {tms_va(s, 0, TMS_RECV_AREA + r), rvh.len, s->host[0].key};
    struct send_wr wr = {.wr_id = (uint64_t)r,
                         .opcode = WR_RDMA_READ,
                         .flags = SEND_SIGNALED,
                         .num_sge = 1,
                         .remote_addr = rvh.va,
                         .rkey = rvh.rkey};
    recv->state = RECV_READING;
    if (c->gone || qp_post_send(c->to, &wr, &sge, NULL) != 0)
        failed(s, r);
}

static void take_unexpected(struct tms *s, int r, int m, int buf)
{
    const uint8_t *at = tms_bytes(s, 0, TMS_BUF_AREA + buf);
    matched(s, r, m);
    s->sw_matches++;
    if (s->msg[m].opcode == TMH_RNDV) {
        fetch(s, r, at);
    } else {
        check_data(s, r, at + TMH_LEN, s->msg[m].len);
        s->recv[r].state = RECV_DONE;
    }
    s->free_buf[s->num_free_buf++] = buf;
}

/* --- posting ----------------------------------------------------------------------------------- */

static bool from_queue(struct tms *s, int r)
{
    for (int i = 0; i < s->num_unexpected; i++) {
        int m = s->unexpected[i], buf = s->unexpected_buf[i];
        if ((s->msg[m].tag & s->recv[r].mask) != s->recv[r].tag)
            continue;
        s->num_unexpected--;
        for (int k = i; k < s->num_unexpected; k++) {
            s->unexpected[k] = s->unexpected[k + 1];
            s->unexpected_buf[k] = s->unexpected_buf[k + 1];
        }
        take_unexpected(s, r, m, buf);
        return true;
    }
    return false;
}

static bool post_receive(struct tms *s)
{
    uint32_t slot = 0;
    int r = s->recvs;
    struct tms_recv *recv = &s->recv[r];
    while (slot < s->slots && s->slot_owner[slot] != TMS_NONE)
        slot++;
    if (slot == s->slots || r == TMS_RECVS)
        return false;
    s->recvs++;
    recv->order = r;
    recv->state = RECV_POSTED;
    if (from_queue(s, r))
        return true;
    s->slot_owner[slot] = r;
    recv->handle = ++s->generation[slot] << TM_SLOT_BITS | slot;
    recv->listed = true;
    struct sge *sge = s->op_sge[s->op_tail % OPS];
    uint32_t first = recv->cap / 3;
    sge[0] = (struct sge){tms_va(s, 0, TMS_RECV_AREA + r), first, s->host[0].key};
    sge[1] = (struct sge){sge[0].addr + first, recv->cap - first, s->host[0].key};
    struct tm_op *op = new_op(s, TM_ADD);
    op->tag = recv->tag;
    op->mask = recv->mask;
    op->handle = recv->handle;
    op->recv_wr_id = op->wr_id = (uint64_t)r;
    op->num_sge = 2;
    op->sge = sge;
    recv->add_pending = prng_chance(&s->rng, 300);
    op->flags |= recv->add_pending ? TM_OP_SIGNALED : 0;
    tms_say(s, "receive %d: tag %llx, mask %llx, handle %x", r, (unsigned long long)recv->tag,
            (unsigned long long)recv->mask, recv->handle);
    return true;
}

static void cancel(struct tms *s)
{
    int r = s->recvs ? (int)prng_range(&s->rng, 0, (uint64_t)s->recvs - 1) : 0;
    struct tms_recv *recv = &s->recv[r];
    if (r >= s->recvs || r >= s->planned || recv->state != RECV_POSTED || recv->canceling)
        return;
    recv->canceling = true;
    delete (s, r, true);
}

/* Receives that match everything are posted after all planned ones: as many as there are messages without a receive. */
static int wanted(const struct tms *s)
{
    int n = 0;
    if (s->recvs < s->planned)
        return s->planned;
    for (int m = 0; m < s->msgs; m++)
        n += s->msg[m].opcode != TMH_NO_TAG && s->msg[m].recv == TMS_NONE;
    for (int r = s->planned; r < s->recvs; r++)
        n -= s->recv[r].state == RECV_POSTED;
    return n > 0 && s->recvs < TMS_RECVS ? s->recvs + 1 : 0;
}

void tms_recv_step(struct tms *s)
{
    while (s->num_free_buf && prng_chance(&s->rng, 500)) {
        int buf = s->free_buf[--s->num_free_buf];
        struct recv_wr wr = {.slot = (uint32_t)buf, .num_sge = 1};
        struct sge sge = {tms_va(s, 0, TMS_BUF_AREA + buf), TMS_REGION, s->host[0].key};
        if (srq_post_recv(s->srq, &wr, &sge) != 0)
            tms_fail(s, "an untagged buffer can't be posted");
    }
    bool posted = true;
    while (posted && s->recvs < wanted(s) && prng_chance(&s->rng, s->recvs < s->planned ? 500 : 100))
        posted = post_receive(s);
    if (prng_chance(&s->rng, posted ? 20 : 300)) /* more often when slots are needed */
        cancel(s);
    if (prng_chance(&s->rng, 150))
        new_op(s, TM_SYNC);
    process_ops(s);
}

/* --- completions ------------------------------------------------------------------------------- */

static void op_done(struct tms *s, const struct completion *c)
{
    struct tms_recv *recv = &s->recv[c->wr_id];
    if (c->opcode == WC_TM_ADD) {
        if (c->status != WC_SUCCESS || !recv->add_pending)
            tms_fail(s, "receive %u: its addition has status %u", (unsigned)c->wr_id, c->status);
        recv->add_pending = false;
    } else if (c->opcode == WC_TM_DEL) {
        if (c->status == WC_SUCCESS) {
            recv->final = true;
            s->cancels += recv->canceling;
            if (recv->state == RECV_POSTED)
                recv->state = RECV_CANCELED;
        } else {
            s->late_cancels++;
            if (!recv->canceling)
                tms_fail(s, "receive %u was matched twice", (unsigned)c->wr_id);
        }
        recv->canceling = false;
    }
    if (c->flags & WC_TM_SYNC_REQ)
        new_op(s, TM_SYNC);
    free_slot(s, recv);
}

static void entry_done(struct tms *s, const struct completion *c)
{
    int r = c->slot < s->slots ? s->slot_owner[c->slot] : TMS_NONE;
    if (r == TMS_NONE || c->wr_id != (uint64_t)r || s->recv[r].final) {
        tms_fail(s, "a completion for slot %u, where nothing is expected", c->slot);
        return;
    }
    struct tms_recv *recv = &s->recv[r];
    const uint8_t *at = tms_bytes(s, 0, TMS_RECV_AREA + r);
    if (c->flags & WC_TM_MATCH) {
        matched(s, r, (int)c->tm_priv);
        s->hw_matches++;
        recv->state = RECV_MATCHED;
        if (c->tm_tag != s->msg[c->tm_priv].tag)
            tms_fail(s, "receive %d: tag %llx", r, (unsigned long long)c->tm_tag);
    }
    if (recv->state != RECV_MATCHED && c->status == WC_SUCCESS)
        tms_fail(s, "receive %d: data without a match", r);
    recv->final = c->status != WC_SUCCESS || c->flags & WC_TM_DATA_VALID;
    if (c->status == WC_TM_RNDV_INCOMPLETE) {
        s->incompletes++;
        fetch(s, r, at);
    } else if (c->status != WC_SUCCESS) {
        failed(s, r);
    } else if (c->flags & WC_TM_DATA_VALID) {
        const struct tms_msg *msg = &s->msg[recv->msg];
        check_data(s, r, at, c->byte_len);
        if (msg->opcode == TMH_EAGER && msg->with_imm != ((c->flags & WC_WITH_IMM) != 0))
            tms_fail(s, "receive %d: immediate data", r);
        recv->state = RECV_DONE;
    }
    free_slot(s, recv);
}

/* Finds the receive of an unexpected message. */
static int find_receive(const struct tms *s, uint64_t tag)
{
    for (int r = 0; r < s->recvs; r++) {
        const struct tms_recv *recv = &s->recv[r];
        if (recv->state == RECV_POSTED && recv->listed && !recv->canceling && (tag & recv->mask) == recv->tag)
            return r;
    }
    return TMS_NONE;
}

static void buffer_done(struct tms *s, const struct completion *c)
{
    int buf = (int)c->slot;
    uint8_t *at = tms_bytes(s, 0, TMS_BUF_AREA + buf);
    struct tmh tmh;
    if (c->inline_len)
        memcpy(at, c->data, c->inline_len);
    if (c->status != WC_SUCCESS) {
        s->free_buf[s->num_free_buf++] = buf;
        return;
    }
    tmh_decode(at, TMH_LEN, &tmh);
    int m = (int)tmh.app_ctx;
    bool tagged = c->opcode == WC_TM_RECV;
    if (m >= s->msgs || s->msg[m].received || s->msg[m].recv != TMS_NONE ||
        tagged == (s->msg[m].opcode == TMH_NO_TAG) || s->msg[m].with_imm != ((c->flags & WC_WITH_IMM) != 0)) {
        tms_fail(s, "an untagged buffer with message %d, again or not as it was sent", m);
        return;
    }
    if (!tagged) {
        s->msg[m].received = true;
        s->free_buf[s->num_free_buf++] = buf;
        return;
    }
    s->count++;
    int r = find_receive(s, tmh.tag);
    tms_say(s, "message %d is unexpected", m);
    if (r == TMS_NONE) {
        s->unexpected[s->num_unexpected] = m;
        s->unexpected_buf[s->num_unexpected++] = buf;
        return;
    }
    take_unexpected(s, r, m, buf);
    delete (s, r, prng_chance(&s->rng, 500));
}

static void request_done(struct tms *s, const struct completion *c)
{
    int r = (int)(c->wr_id % FIN_WR);
    struct tms_recv *recv = &s->recv[r];
    if (c->wr_id >= FIN_WR) {
        if (!s->conn[s->msg[recv->msg].qp].dead)
            tms_fail(s, "the FIN of receive %d failed", r);
    } else if (recv->state != RECV_READING) {
        if (recv->state != RECV_FAILED)
            tms_fail(s, "receive %d: a READ that nobody waits for", r);
    } else if (c->status != WC_SUCCESS) {
        failed(s, r);
    } else {
        check_data(s, r, tms_bytes(s, 0, TMS_RECV_AREA + r), c->byte_len);
        recv->state = RECV_DONE;
        post_fin(s, r);
    }
}

void tms_recv_requests_vanish(struct tms *s, int conn)
{
    for (int r = 0; r < s->recvs; r++)
        if (s->recv[r].state == RECV_READING && s->msg[s->recv[r].msg].qp == conn)
            failed(s, r);
}

void tms_recv_completion(struct tms *s, const struct completion *c)
{
    switch (c->of) {
    case OF_TM_OP:
        op_done(s, c);
        break;
    case OF_TM_ENTRY:
        entry_done(s, c);
        break;
    case OF_TM_BUFFER:
    case OF_TM_UNEXPECTED:
        buffer_done(s, c);
        break;
    default:
        request_done(s, c);
        break;
    }
}
