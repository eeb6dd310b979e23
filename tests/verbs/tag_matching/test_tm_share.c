// SPDX-License-Identifier: BSD-2-Clause
/* The send queue of a QP is shared by its program and by the offload. The program keeps its part of the queue full of
 * WRITEs, and many rendezvous wait meanwhile: neither waits for the end of the other. */
#include "tests/verbs/tag_matching/tags.h"

#define MANY 48u /* rendezvous, more than the offload has in the queue at a time */
#define OWN 16u /* max_send_wr of the receiver's QP */
#define DATA (1u << 20)
#define EACH 32768u
#define INBOX 65536u
#define HEAD ((uint32_t)(sizeof(struct ibv_tmh) + sizeof(struct ibv_rvh)))
/* The READ of a rendezvous waits for the requests before it, and so does its FIN. Both ends are polled in turn, so the
 * counts may be behind. */
#define BETWEEN_MOST (8 * OWN)

static const struct tm_how shared = {
    .own_sends = OWN, .max_rd_atomic = 4, .rnr_retry = 7, .timeout = 14, .retry_cnt = 7};

static void request(struct tm_side *s, uint32_t i)
{
    struct ibv_tmh h = {.opcode = IBV_TMH_RNDV, .tag = htobe64(200 + i)};
    struct ibv_rvh v = {
        .va = htobe64((uintptr_t)s->buf + DATA + i * EACH), .rkey = htobe32(s->mr->rkey), .len = htobe32(EACH)};
    memcpy(s->buf + i * 64, &h, sizeof(h));
    memcpy(s->buf + i * 64 + sizeof(h), &v, sizeof(v));
    struct ibv_sge sge = tm_at(s, i * 64, HEAD);
    struct ibv_send_wr wr = {.wr_id = 5, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
    need(ibv_post_send(s->qp[0], &wr, &bad) == 0);
}

/* A WRITE of the receiver's program to the sender. */
static void write_own(struct tm_pair *p)
{
    struct ibv_sge sge = tm_at(&p->r, TM_BUF - EACH, EACH);
    struct ibv_send_wr wr = {.wr_id = 9,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .wr.rdma = {(uintptr_t)p->s.buf + TM_BUF - EACH, p->s.mr->rkey}},
                       *bad;
    need(ibv_post_send(p->r.qp[0], &wr, &bad) == 0);
}

/* How often the exchange may be repeated until the program has posted WRITEs in time. While this process does not run, it posts none, but
 * the rendezvous go on. */
#define TRIES 100

/* Returns whether a WRITE was complete, and posts the next one. */
static bool next_own(struct tm_pair *p, bool more)
{
    struct ibv_wc wc;
    if (ibv_poll_cq(p->r.other, 1, &wc) != 1)
        return false;
    need(wc.status == IBV_WC_SUCCESS && wc.wr_id == 9);
    if (more)
        write_own(p);
    return true;
}

/* Returns how many WRITEs of the program were complete before the last rendezvous was. */
static uint32_t exchange(struct ibv_context *a, struct ibv_context *b)
{
    struct tm_pair p;
    struct tm_wc wc;
    uint32_t fins = 0, writes = 0, since_fin = 0, since_write = 0, most_writes = 0, most_fins = 0, drained = 0;
    bool right = true;
    double end = vt_now() + 60;
    tm_open_as(&p, a, b, &shared);
    for (uint32_t i = 0; i < MANY; i++) {
        memset(p.s.buf + DATA + i * EACH, (int)i + 1, EACH);
        tm_add(&p.r, i, 200 + i, DATA + i * EACH, EACH);
        tm_recv(&p.s, 0, i, INBOX + i * 64, 64);
    }
    for (uint32_t i = 0; i < OWN; i++)
        write_own(&p);
    for (uint32_t i = 0; i < MANY; i++)
        request(&p.s, i);
    while (fins < MANY && vt_now() < end) {
        if (next_own(&p, true)) {
            writes++;
            most_fins = since_write > most_fins ? since_write : most_fins;
            since_write = 0;
            since_fin++;
        }
        if (tm_poll(p.s.cq, &wc)) {
            right &= tm_is(&wc, IBV_WC_RECV, fins++, 0);
            most_writes = since_fin > most_writes ? since_fin : most_writes;
            since_fin = 0;
            since_write++;
        }
    }
    printf("# %u WRITEs; at most %u between two FINs, at most %u FINs between two WRITEs\n", writes, most_writes,
           most_fins);
    ok(right && fins == MANY, "all rendezvous end while the program keeps its queue full");
    ok(most_writes <= BETWEEN_MOST, "none of them waits for more than some WRITEs");
    while (drained < OWN && vt_now() < end)
        drained += next_own(&p, false);
    for (uint32_t i = 0; i < 2 * MANY; i++)
        right &= tm_next(&p.r).status == IBV_WC_SUCCESS;
    for (uint32_t i = 0; i < MANY; i++)
        right &= p.r.buf[DATA + i * EACH] == i + 1 && p.r.buf[DATA + (i + 1) * EACH - 1] == i + 1;
    ok(right && drained == OWN, "all data are there");
    tm_close(&p);
    return writes;
}

static void test(struct ibv_context *a, struct ibv_context *b)
{
    uint32_t writes = 0;
    if (tm_strict(a)) {
        ok(true, "a device as strict as the adapters has no requests of its own in the queue");
        return;
    }
    /* The first WRITEs were there before the rendezvous, so there must be more. */
    for (int i = 0; i < TRIES && writes < 2 * OWN; i++) {
        writes = exchange(a, b);
        usleep(1000 * (i % 10)); /* so that they do not all begin at the same moment of a time slice */
    }
    ok(writes >= 2 * OWN, "and the WRITEs that the program posts meanwhile go on");
}

int main(void)
{
    return tm_everywhere(test);
}
