// SPDX-License-Identifier: BSD-2-Clause
/* The senders: eager messages, rendezvous requests, and messages without a tag. They wait for FINs. */
#include "tests/sim/tag_matching/tm.h"

#include <string.h>

#define DATA_OFF 512u /* of a rendezvous' data in the region of the message */
#define FIN_REGION (TMS_BUF_AREA) /* buffers for FINs */

/* A tag has the connection in bits 8 and up, and a small number below. */
void tms_draw_messages(struct tms *s)
{
    s->start = prng_pick(&s->rng, 0, 20000, 300000);
    s->small = prng_chance(&s->rng, 300);
    uint32_t max_eager = s->small ? 40 : 3 * s->mtu + 50;
    s->msgs = (int)prng_range(&s->rng, 1, TMS_MSGS);
    for (int m = 0; m < s->msgs; m++) {
        struct tms_msg *msg = &s->msg[m];
        *msg = (struct tms_msg){.recv = TMS_NONE};
        msg->qp = (int)prng_range(&s->rng, 0, (uint64_t)s->conns - 1);
        msg->opcode = (uint8_t)prng_pick(&s->rng, TMH_EAGER, TMH_EAGER, TMH_EAGER, TMH_RNDV, TMH_RNDV, TMH_NO_TAG);
        msg->tag = (uint64_t)msg->qp << 8 | prng_range(&s->rng, 0, 2);
        msg->len = (uint32_t)prng_range(&s->rng, 0, max_eager < 6000 ? max_eager : 6000);
        if (msg->opcode == TMH_RNDV) {
            msg->len = prng_chance(&s->rng, 100) ? 0 : (uint32_t)prng_range(&s->rng, 1, 6000);
            msg->meta = (uint32_t)prng_range(&s->rng, 0, 32);
        }
        msg->with_imm = prng_chance(&s->rng, 200);
        struct tms_conn *c = &s->conn[msg->qp];
        c->order[c->count++] = m;
    }
}

/* Writes message m to its region and returns its length. */
static uint32_t compose(struct tms *s, int m, uint8_t *at)
{
    const struct tms_msg *msg = &s->msg[m];
    const struct tms_host *h = &s->host[s->conn[msg->qp].host];
    struct tmh tmh = {.opcode = msg->opcode, .reserved = {1, 2, (uint8_t)m}, .app_ctx = (uint32_t)m, .tag = msg->tag};
    tmh_encode(&tmh, at);
    uint8_t *data = at + TMH_LEN;
    uint32_t len = TMH_LEN + msg->len;
    if (msg->opcode == TMH_RNDV) {
        struct rvh rvh = {.va = tms_va(s, s->conn[msg->qp].host, m) + DATA_OFF, .rkey = h->key, .len = msg->len};
        rvh_encode(&rvh, at + TMH_LEN);
        data = at + DATA_OFF;
        len = TMH_LEN + RVH_LEN + msg->meta;
    }
    for (uint32_t i = 0; i < msg->len; i++)
        data[i] = tms_byte(m, i);
    return len;
}

static bool post(struct tms *s, struct tms_conn *c, int m)
{
    struct tms_msg *msg = &s->msg[m];
    struct sge sge = {.addr = tms_va(s, c->host, m), .lkey = s->host[c->host].key};
    struct send_wr wr = {.wr_id = (uint64_t)m, .opcode = WR_SEND, .flags = SEND_SIGNALED, .num_sge = 1};
    if (qp_send_room(c->from) == 0)
        return false;
    sge.length = compose(s, m, tms_bytes(s, c->host, m));
    if (msg->with_imm) {
        wr.opcode = WR_SEND_WITH_IMM;
        wr.imm[0] = (uint8_t)m;
    }
    if (qp_post_send(c->from, &wr, &sge, NULL) != 0)
        tms_fail(s, "message %d can't be posted", m);
    tms_say(s, "QP %d sends message %d: operation %u, tag %llx, %u bytes", msg->qp, m, msg->opcode,
            (unsigned long long)msg->tag, msg->len);
    return msg->posted = true;
}

void tms_send_step(struct tms *s, int host)
{
    if (s->now < s->start)
        return;
    for (int i = 0; i < s->conns; i++) {
        struct tms_conn *c = &s->conn[i];
        if (c->host != host)
            continue;
        while (c->fin_bufs < 4 && prng_chance(&s->rng, 500) && qp_recv_room(c->from)) {
            struct recv_wr wr = {.wr_id = (uint64_t)i, .num_sge = 1};
            struct sge sge = {tms_va(s, host, FIN_REGION + i), 64, s->host[host].key};
            if (qp_post_recv(c->from, &wr, &sge) != 0)
                tms_fail(s, "a receive request can't be posted");
            c->fin_bufs++;
        }
        while (c->next < c->count && prng_chance(&s->rng, 600) && post(s, c, c->order[c->next]))
            c->next++;
    }
}

static void got_fin(struct tms *s, int i, const struct completion *c)
{
    struct tmh tmh;
    struct rvh rvh;
    const uint8_t *at = c->inline_len ? c->data : tms_bytes(s, s->conn[i].host, FIN_REGION + i);
    if (c->byte_len != TMH_LEN + RVH_LEN) {
        tms_fail(s, "a FIN of %u bytes", c->byte_len);
        return;
    }
    tmh_decode(at, TMH_LEN, &tmh);
    rvh_decode(at + TMH_LEN, RVH_LEN, &rvh);
    int m = (int)tmh.app_ctx;
    if (tmh.opcode != TMH_FIN || m >= s->msgs || s->msg[m].qp != i || s->msg[m].opcode != TMH_RNDV || s->msg[m].fin ||
        tmh.tag != s->msg[m].tag || tmh.reserved[2] != (uint8_t)m || rvh.len != s->msg[m].len) {
        tms_fail(s, "QP %d: a FIN that fits no rendezvous, or came twice", i);
        return;
    }
    s->msg[m].fin = true;
    tms_say(s, "QP %d: FIN of message %d", i, m);
}

void tms_send_completion(struct tms *s, const struct completion *c)
{
    struct tms_conn *conn = c->qp_owner;
    int i = (int)(conn - s->conn);
    if (c->status != WC_SUCCESS && !conn->dead) {
        tms_fail(s, "QP %d: status %u of a sender's request", i, c->status);
        return;
    }
    if (!c->is_recv) {
        s->msg[c->wr_id].sent_done = true;
        conn->completed++;
        return;
    }
    conn->fin_bufs--;
    if (c->status == WC_SUCCESS)
        got_fin(s, i, c);
}
