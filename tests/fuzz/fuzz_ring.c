// SPDX-License-Identifier: BSD-2-Clause
/* libFuzzer target: the shared memory of a hostile client, beside a bystander of another user. The input is a program that
 * writes whole requests, nearly right ones and any bytes to the rings, sets their indexes and rings doorbells, with
 * passes of the loop in between. The hostile client knows the bystander's numbers, keys and addresses. In the end the
 * bystander's memory must be as it was, its own WRITE must succeed, and it has no other completion. */
#include <infiniband/verbs.h>

#include "daemon/base/log.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/fuzz_user.h"

#define BYSTANDER_UID 65531
#define STEPS_MAX 300
#define WR 8u
#define MEMORY 8192u
#define WRITTEN 3000u /* bytes of the bystander's WRITE */
/* Passes of an eighth of a millisecond in which it must complete. Steps are up to 32 ms long, so the round trips that the
 * engine sees are, too. The bystander waits for a few of them if packets of the hostile client fill the window. */
#define PASSES_MAX 4000u

static uint8_t memory[MEMORY], other_memory[MEMORY];

enum { QPS = 5 }; /* two RC connected to each other, UC to itself, UD with an SRQ, RC of a matching list */

struct client {
    struct session *session;
    uint32_t pd, key;
    struct fixture_cq cq;
    struct fixture_qp qp[QPS];
    struct fixture_srq srq[2]; /* basic, with a matching list */
};

/* The number and the key of a QP and a region of the bystander, which the hostile client knows. */
struct secrets {
    uint32_t qpn, key;
};

/* --- setting up -------------------------------------------------------------------------------- */

static void must(bool condition)
{
    if (!condition)
        abort();
}

static void open_client(struct fixture *f, struct client *c, uid_t uid, uint8_t *p)
{
    c->session = fuzz_session(f, uid);
    c->pd = fixture_pd(f, c->session);
    c->key = fixture_mr(f, c->session, c->pd, p, MEMORY, 15);
    must(fixture_cq(f, c->session, 64, 0, &c->cq) == 0);
}

static void make_list(struct fixture *f, struct client *c)
{
    struct pm_create_srq_req rq = {.pd = c->pd,
                                   .type = IBV_SRQT_TM,
                                   .cq = c->cq.rep.handle,
                                   .max_wr = WR,
                                   .max_sge = 2,
                                   .max_num_tags = 8,
                                   .max_ops = 16};

    must(fixture_call(f, c->session, PM_OP_CREATE_SRQ, &rq, sizeof(rq), &c->srq[1].rep, sizeof(c->srq[1].rep)) == 0);
    c->srq[1].page = fixture_map(f, c->srq[1].rep.size);
    c->srq[1].base = (uint8_t *)c->srq[1].page;
}

static void start_datagrams(struct fixture *f, struct client *c, uint32_t qpn)
{
    static const uint32_t masks[] = {0, QPA_PKEY_INDEX | QPA_PORT | QPA_QKEY, 0, QPA_SQ_PSN};
    struct pm_modify_qp_req m = {.qpn = qpn, .attr = {.port_num = 1, .qkey = 1}};

    for (uint8_t state = QPS_INIT; state <= QPS_RTS; state++) {
        m.attr.qp_state = state;
        m.mask = QPA_STATE | masks[state];
        fixture_call(f, c->session, PM_OP_MODIFY_QP, &m, sizeof(m), NULL, 0);
    }
}

/* Moves all QPs to RTS from any state. Those whose rings broke begin again. */
static void connect_all(struct fixture *f, struct client *c)
{
    static const uint8_t peer[QPS] = {1, 0, 2, 3, 4};

    for (unsigned i = 0; i < QPS; i++)
        fixture_state(f, c->session, c->qp[i].rep.qpn, QPS_RESET);
    for (unsigned i = 0; i < QPS; i++) {
        if (i == 3)
            start_datagrams(f, c, c->qp[i].rep.qpn);
        else
            fixture_connect(f, c->session, c->qp[i].rep.qpn, c->qp[peer[i]].rep.qpn);
    }
}

static void start_hostile(struct fixture *f, struct client *c)
{
    static const uint32_t types[QPS] = {QPT_RC, QPT_RC, QPT_UC, QPT_UD, QPT_RC};

    open_client(f, c, FUZZ_UID, memory);
    must(fixture_srq(f, c->session, c->pd, WR, &c->srq[0]) == 0);
    make_list(f, c);
    for (unsigned i = 0; i < QPS; i++) {
        uint32_t srq = i < 3 ? 0 : c->srq[i - 3].rep.handle;

        must(fixture_qp_typed(f, c->session, c->pd, c->cq.rep.handle, types[i], srq, WR, &c->qp[i]) == 0);
    }
    connect_all(f, c);
}

static void start_bystander(struct fixture *f, struct client *c)
{
    open_client(f, c, BYSTANDER_UID, other_memory);
    for (unsigned i = 0; i < 2; i++)
        must(fixture_qp(f, c->session, c->pd, c->cq.rep.handle, WR, &c->qp[i]) == 0);
    must(fixture_connect_both(f, c->session, &c->qp[0], &c->qp[1]) == 0);
    for (unsigned i = 0; i < MEMORY; i++)
        other_memory[i] = (uint8_t)(i * 7);
}

static void unmap(struct client *c)
{
    munmap(c->cq.page, c->cq.rep.size);
    for (unsigned i = 0; i < QPS; i++) {
        if (c->qp[i].page)
            munmap(c->qp[i].page, c->qp[i].rep.size);
    }
    for (unsigned i = 0; i < 2; i++) {
        if (c->srq[i].page)
            munmap(c->srq[i].page, c->srq[i].rep.size);
    }
}

/* --- steps ------------------------------------------------------------------------------------- */

/* Usually its own; sometimes the bystander's, or anything. */
static uint32_t key(const struct client *c, const struct secrets *s, struct input *in)
{
    uint32_t kind = take(in, 1);

    return kind < 192 ? c->key : kind < 240 ? s->key : take(in, 4);
}

static uint64_t address(struct input *in)
{
    uint32_t kind = take(in, 1), at = take(in, 2);

    if (kind < 192)
        return (uintptr_t)memory + at % MEMORY;
    return kind < 240 ? (uintptr_t)other_memory + at % MEMORY : (uint64_t)at << 48 | take(in, 4);
}

static struct pm_sge sge(const struct client *c, const struct secrets *s, struct input *in)
{
    uint64_t at = address(in);
    uint32_t length = take(in, 2);

    return (struct pm_sge){at, length == 0xffff ? UINT32_MAX : length % 5000, key(c, s, in)};
}

static void send_request(struct client *c, const struct secrets *s, struct input *in)
{
    struct fixture_qp *qp = &c->qp[take(in, 1) % QPS];
    struct pm_send_wqe *w = fixture_send_slot(qp);
    uint8_t *body = (uint8_t *)(w + 1);
    uint32_t shape = take(in, 1);

    *w = (struct pm_send_wqe){.wr_id = qp->tail,
                              .remote_addr = address(in),
                              .compare_add = take(in, 2),
                              .rkey = key(c, s, in),
                              .remote_qpn = shape & 1 ? s->qpn : c->qp[3].rep.qpn,
                              .remote_qkey = shape & 2 ? take(in, 4) : 1,
                              .mr_key = key(c, s, in),
                              .opcode = (uint8_t)(take(in, 1) % 18),
                              .flags = (uint8_t)(take(in, 1) % 16),
                              .num_sge = (uint8_t)(shape & 4 ? take(in, 1) : shape >> 6),
                              .inline_len = shape & 8 ? take(in, 4) : take(in, 1) % 65};
    if (w->opcode == IBV_WR_BIND_MW)
        w->srqn = take(in, 4);
    if (qp == &c->qp[3]) {
        struct pm_av av = {.sgid_index = (uint8_t)(shape & 16 ? take(in, 1) : 0), .hop_limit = 64};

        memcpy(av.dgid, c->session->device->gid, sizeof(av.dgid));
        memcpy(body, &av, sizeof(av));
        body += sizeof(av);
    }
    struct pm_sge list[2] = {sge(c, s, in), sge(c, s, in)};

    if ((size_t)(body - (uint8_t *)w) + sizeof(list) <= qp->rep.sq_stride)
        memcpy(body, list, sizeof(list));
    atomic_store(&qp->page->sq_tail, ++qp->tail);
    fixture_ring(c->session, qp);
}

static void recv_request(struct client *c, const struct secrets *s, struct input *in)
{
    unsigned which = take(in, 1) % 5;
    struct pm_recv_wqe *w = which < 3 ? fixture_recv_slot(&c->qp[which]) : fixture_srq_slot(&c->srq[which - 3]);
    uint32_t shape = take(in, 1);

    *w = (struct pm_recv_wqe){
        .wr_id = shape, .num_sge = shape < 240 ? shape % 3 : take(in, 4), .wqe_index = take(in, 1)};
    struct pm_sge list[2] = {sge(c, s, in), sge(c, s, in)};

    memcpy(w + 1, list, sizeof(list));
    if (which < 3)
        fixture_post_recv(c->session, &c->qp[which]);
    else
        fixture_post_srq(c->session, &c->srq[which - 3]);
}

static void list_operation(struct client *c, const struct secrets *s, struct input *in)
{
    const struct pm_create_srq_rep *rep = &c->srq[1].rep;
    struct pm_srq_page *page = c->srq[1].page;
    uint32_t at = atomic_load(&page->ops_tail), kind = take(in, 1);
    uint8_t *slot = c->srq[1].base + rep->ops_offset + (size_t)(at & (rep->ops_slots - 1)) * rep->ops_stride;
    struct pm_tm_op op = {.wr_id = at,
                          .tag = take(in, 1) % 4,
                          .mask = kind & 64 ? UINT64_MAX : kind & 1,
                          .handle = take(in, 1) % 10 | (take(in, 1) & 3) << PM_TM_SLOT_BITS,
                          .unexpected_cnt = take(in, 1),
                          .opcode = (uint8_t)(kind % 4),
                          .flags = (uint8_t)(kind >> 2),
                          .num_sge = (uint8_t)(kind & 128 ? take(in, 1) : 1)};
    struct pm_sge list = sge(c, s, in);

    memcpy(slot, &op, sizeof(op));
    memcpy(slot + sizeof(op), &list, sizeof(list));
    atomic_store(&page->ops_tail, at + 1);
    fixture_ring_bell(c->session, rep->doorbell);
}

/* Any value, or one that is not far from the present one. */
static void set_index(struct client *c, struct input *in)
{
    _Atomic uint32_t *const index[] = {
        &c->qp[0].page->sq_tail, &c->qp[1].page->sq_tail,     &c->qp[2].page->sq_tail,    &c->qp[3].page->sq_tail,
        &c->qp[4].page->sq_tail, &c->qp[0].page->rq_tail,     &c->qp[2].page->rq_tail,    &c->srq[0].page->tail,
        &c->srq[1].page->tail,   &c->srq[1].page->ops_tail,   &c->srq[1].page->ops_head,  &c->cq.page->consumer,
        &c->cq.page->arm,        &c->session->page->sleeping, &c->session->page->waiting, &c->qp[0].page->rq_notify,
    };
    _Atomic uint32_t *i = index[take(in, 1) % (sizeof(index) / sizeof(index[0]))];
    uint32_t how = take(in, 1);

    atomic_store(i, how < 128 ? atomic_load(i) + how - 64 : take(in, 4));
}

static void store(struct client *c, struct input *in)
{
    unsigned which = take(in, 1) % (QPS + 4);
    uint8_t *p = (uint8_t *)c->session->page;
    size_t size = sizeof(*c->session->page);

    if (which < QPS) {
        p = c->qp[which].base;
        size = c->qp[which].rep.size;
    } else if (which < QPS + 2) {
        p = c->srq[which - QPS].base;
        size = c->srq[which - QPS].rep.size;
    } else if (which == QPS + 2) {
        p = (uint8_t *)c->cq.page;
        size = c->cq.rep.size;
    }
    size_t at = take(in, 2) * 4u % (size - 64);
    for (unsigned n = take(in, 1) % 64; n--; at++)
        p[at] = (uint8_t)take(in, 1);
}

static void ring_all(struct session *s)
{
    atomic_store(&s->page->bits[0], UINT64_MAX);
    atomic_store(&s->page->summary[0], UINT64_MAX);
}

static uint64_t step(struct fixture *f, struct client *c, const struct secrets *s, struct input *in, uint64_t now)
{
    switch (take(in, 1) % 16) {
    case 0 ... 3:
        send_request(c, s, in);
        break;
    case 4 ... 5:
        recv_request(c, s, in);
        break;
    case 6 ... 7:
        list_operation(c, s, in);
        break;
    case 8:
        set_index(c, in);
        break;
    case 9:
        store(c, in);
        break;
    case 10:
        ring_all(c->session);
        break;
    case 11:
        connect_all(f, c);
        break;
    default:
        now += take(in, 1) * NS_PER_MS / 8;
        for (int i = 0; i < 4; i++)
            device_pass(f->device, now);
    }
    return now;
}

/* --- the bystander ----------------------------------------------------------------------------- */

static void check_bystander(struct fixture *f, struct client *c, uint64_t now)
{
    struct pm_cqe e = {.status = 255};

    must(!fixture_poll(&c->cq, &e));
    for (unsigned i = 0; i < MEMORY; i++)
        must(other_memory[i] == (uint8_t)(i * 7));
    fixture_wqe(&c->qp[0], IBV_WR_RDMA_WRITE, c->key, other_memory, other_memory + MEMORY / 2, WRITTEN);
    fixture_post_send(c->session, &c->qp[0]);
    for (unsigned i = 0; i < PASSES_MAX && !fixture_poll(&c->cq, &e); i++)
        device_pass(f->device, now += NS_PER_MS / 8);
    must(e.status == IBV_WC_SUCCESS && e.wr_id == 1000);
    must(memcmp(other_memory, other_memory + MEMORY / 2, WRITTEN) == 0);
    for (unsigned i = MEMORY / 2 + WRITTEN; i < MEMORY; i++)
        must(other_memory[i] == (uint8_t)(i * 7));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static struct fixture f;
    static struct quota quota;
    struct input in = {data, len};
    struct client hostile = {0}, bystander = {0};
    uint64_t now = clock_ns();

    log_set_level(LOG_LEVEL_ERROR);
    must(fixture_start(&f));
    fuzz_quota_start(&f, &quota);
    start_bystander(&f, &bystander);
    start_hostile(&f, &hostile);
    const struct secrets s = {bystander.qp[1].rep.qpn, bystander.key};

    for (unsigned i = 0; in.len && i < STEPS_MAX; i++)
        now = step(&f, &hostile, &s, &in, now);
    check_bystander(&f, &bystander, now);
    session_close(hostile.session);
    session_close(bystander.session);
    fuzz_must_be_empty(f.device);
    fuzz_quota_end(&f, &quota);
    unmap(&hostile);
    unmap(&bystander);
    fixture_end(&f);
    return 0;
}
