// SPDX-License-Identifier: BSD-2-Clause
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/soak/hostile/attacks.h"
#include "tests/soak/hostile/effort.h"
#include "tests/soak/hostile/raw.h"

/* --- garbage ----------------------------------------------------------------------------------- */

enum { GARBAGE_QPS = 16, GARBAGE_WR = 64 };

/* A request that is right, nearly right, or anything. */
static void write_request(struct raw_session *s, struct raw_qp *qp, uint32_t index)
{
    uint8_t *slot = qp->base + qp->rep.sq_offset + (size_t)(index & (qp->rep.sq_slots - 1)) * qp->rep.sq_stride;
    struct pm_send_wqe w = {.wr_id = index,
                            .remote_addr = (uintptr_t)s->memory + rnd(RAW_MEMORY),
                            .rkey = s->key,
                            .opcode = (uint8_t)rnd(rnd(4) ? 3 : 32),
                            .flags = (uint8_t)rnd(16) & (rnd(4) ? 7 : 15),
                            .num_sge = (uint8_t)rnd(rnd(8) ? 2 : 256)};
    struct pm_sge sge = {(uintptr_t)s->memory, (uint32_t)rnd(rnd(4) ? 4096 : UINT32_MAX), s->key};
    memcpy(slot, &w, sizeof(w));
    memcpy(slot + sizeof(w), &sge, sizeof(sge));
    if (rnd(4) == 0)
        rnd_fill(slot + rnd(64), 1 + rnd(32));
}

static void spoil(struct raw_session *s, struct raw_qp *qp)
{
    struct pm_qp_page *page = (struct pm_qp_page *)(void *)qp->base;
    uint32_t tail = atomic_load(&page->sq_tail), n = (uint32_t)rnd(8);
    for (uint32_t i = 0; i < n; i++)
        write_request(s, qp, tail + i);
    switch (rnd(64)) {
    case 0:
        atomic_store(&page->sq_tail, (uint32_t)rnd(UINT32_MAX));
        break;
    case 1:
        atomic_store(&page->rq_tail, (uint32_t)rnd(UINT32_MAX));
        break;
    case 2:
        rnd_fill(qp->base + rnd(qp->rep.size - 64), 64);
        break;
    default:
        atomic_store(&page->sq_tail, tail + n);
        atomic_fetch_add(&page->rq_tail, (uint32_t)rnd(3));
    }
    switch (rnd(16)) {
    case 0:
        atomic_store(&s->cq_page->consumer, (uint32_t)rnd(UINT32_MAX));
        break;
    case 1:
        atomic_store(&s->cq_page->arm, (uint32_t)rnd(5));
        break;
    default:
        atomic_fetch_add(&s->cq_page->consumer, n);
    }
    raw_ring(s, qp->rep.doorbell);
}

void attack_garbage(void)
{
    while (effort_goes_on()) {
        struct raw_qp qp[GARBAGE_QPS];
        struct raw_session s;
        unsigned n = 0;
        if (!raw_open(&s, (uint32_t)rnd(2)))
            continue;
        while (n < GARBAGE_QPS && raw_qp(&s, GARBAGE_WR, true, &qp[n]))
            n++;
        for (unsigned round = 0; n > 1 && round < 100 && effort_goes_on(); round++) {
            for (unsigned i = 0; i < n; i++) /* those that broke begin again */
                raw_connect_qp(&s, qp[i].rep.qpn, qp[i ^ 1].rep.qpn);
            for (unsigned i = 0; i < 5000; i++)
                spoil(&s, &qp[rnd(n)]);
        }
        raw_close(&s);
    }
}

/* --- doorbells --------------------------------------------------------------------------------- */

enum { DOORBELL_QPS = 8192 };

void attack_doorbells(void)
{
    struct raw_session s;
    struct raw_qp qp;
    uint32_t top = 0;
    if (!raw_open(&s, 0))
        return;
    /* Queue pairs that can send: the daemon looks at the ring of each. */
    for (unsigned n = 0; n < DOORBELL_QPS && raw_qp(&s, 1, false, &qp); n++)
        top = qp.rep.doorbell;
    while (effort_goes_on()) {
        for (uint32_t w = 0; w <= top / 64; w++)
            atomic_store_explicit(&s.page->bits[w], UINT64_MAX, memory_order_relaxed);
        for (uint32_t w = 0; w <= top / 64 / 64; w++)
            atomic_store(&s.page->summary[w], UINT64_MAX);
        raw_ring(&s, top);
    }
    raw_close(&s);
}
