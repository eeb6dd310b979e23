// SPDX-License-Identifier: BSD-2-Clause
/* The order of FINs: many rendezvous of one QP, long and short ones, are under way at once. Their FINs come in the order in
 * which their READs complete, which is that of the requests, and each comes after its data. */
#include "tests/verbs/tag_matching/tags.h"

#define MANY 24u /* more than max_rd_atomic (4) */
#define DATA (1u << 20)
#define EACH 65536u
#define INBOX 8192u
#define HEAD ((uint32_t)(sizeof(struct ibv_tmh) + sizeof(struct ibv_rvh)))

/* Short ones behind long ones. */
static uint32_t length(uint32_t i)
{
    return i % 3 == 0 ? EACH : i % 3 == 1 ? 1 : 3000;
}

/* Each request has a header of its own, so that all are posted at once. */
static void request(struct tm_side *s, uint32_t i)
{
    struct ibv_tmh h = {.opcode = IBV_TMH_RNDV, .tag = htobe64(200 + i)};
    struct ibv_rvh v = {
        .va = htobe64((uintptr_t)s->buf + DATA + i * EACH), .rkey = htobe32(s->mr->rkey), .len = htobe32(length(i))};
    memcpy(s->buf + i * 64, &h, sizeof(h));
    memcpy(s->buf + i * 64 + sizeof(h), &v, sizeof(v));
    struct ibv_sge sge = tm_at(s, i * 64, HEAD);
    struct ibv_send_wr wr = {.wr_id = 5, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
    need(ibv_post_send(s->qp[0], &wr, &bad) == 0);
}

static uint64_t tag_of_fin(const struct tm_side *s, uint32_t i)
{
    struct ibv_tmh h;
    memcpy(&h, s->buf + INBOX + i * 64, sizeof(h));
    return h.opcode == IBV_TMH_FIN ? be64toh(h.tag) : 0;
}

static void test(struct ibv_context *a, struct ibv_context *b)
{
    struct tm_pair p;
    struct tm_wc wc;
    bool order = true, matches = true, data = true, first = true;
    tm_open(&p, a, b);
    for (uint32_t i = 0; i < MANY; i++) {
        memset(p.s.buf + DATA + i * EACH, (int)i + 1, EACH);
        tm_add(&p.r, i, 200 + i, DATA + i * EACH, EACH);
        tm_recv(&p.s, 0, i, INBOX + i * 64, 64);
    }
    for (uint32_t i = 0; i < MANY; i++)
        request(&p.s, i);
    for (uint32_t i = 0; i < MANY; i++) {
        wc = tm_next(&p.s);
        order &= tm_is(&wc, IBV_WC_RECV, i, 0) && wc.byte_len == HEAD && tag_of_fin(&p.s, i) == 200 + i;
        first &= p.r.buf[DATA + i * EACH] == i + 1 && p.r.buf[DATA + i * EACH + length(i) - 1] == i + 1;
    }
    ok(order, "FINs come in the order of the requests");
    ok(first, "each comes after its data are in the receiver's memory");
    uint32_t matched = 0, done = 0;
    for (uint32_t i = 0; i < 2 * MANY; i++) {
        wc = tm_next(&p.r);
        matches &= wc.status == 0 && (wc.flags != IBV_WC_TM_MATCH || wc.wr_id == 1000 + matched++);
        data &= wc.status == 0 &&
                (wc.flags != IBV_WC_TM_DATA_VALID || (wc.wr_id == 1000 + done && wc.byte_len == length(done++)));
    }
    ok(matches && matched == MANY, "the matches have the order of the requests");
    ok(data && done == MANY, "so have the completions of the data");
    tm_close(&p);
}

int main(void)
{
    return tm_everywhere(test);
}
