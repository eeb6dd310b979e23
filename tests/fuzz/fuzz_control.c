// SPDX-License-Identifier: BSD-2-Clause
/* libFuzzer target: a hostile client of the daemon. The input is a program for the client: control messages with any
 * payload, stores to any place of its rings, pages and doorbells, and passes of the loop in between. The daemon must
 * not crash, hang or confuse the owners of objects. At the end all objects must be gone, and the user must be charged for
 * nothing. The input also chooses the user's quotas. */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

#include "daemon/base/log.h"
#include "daemon/session/segment_guard.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/fuzz_user.h"

#define STEPS_MAX 200
#define SEGMENTS_MAX 16

static uint8_t memory[8192];

/* The client's mappings, and the handles that it got, so that messages hit objects. */
struct client {
    struct session *session;
    struct {
        uint8_t *p;
        size_t size;
    } segment[SEGMENTS_MAX];
    unsigned segments;
    uint32_t number[16];
    unsigned numbers;
    struct tags { /* of start_tags */
        struct pm_srq_page *page; /* NULL: there are none */
        uint8_t *ring, *sends;
        uint32_t stride, mask, lkey;
    } tags;
};

static void learn(struct client *c, uint32_t number)
{
    c->number[c->numbers++ % 16] = number;
}

/* Maps what came with a reply. */
static void receive(struct fixture *f, struct client *c, uint32_t op)
{
    size_t size = 0;

    if (f->rp.status == 0 && f->rp.len >= 4)
        learn(c, *(uint32_t *)(void *)f->rp.payload);
    if (f->rp.status == 0 && op == PM_OP_CREATE_QP)
        size = ((struct pm_create_qp_rep *)(void *)f->rp.payload)->size;
    if (f->rp.status == 0 && op == PM_OP_CREATE_CQ)
        size = ((struct pm_create_cq_rep *)(void *)f->rp.payload)->size;
    if (f->rp.status == 0 && op == PM_OP_CREATE_SRQ)
        size = ((struct pm_create_srq_rep *)(void *)f->rp.payload)->size;
    if (size && c->segments < SEGMENTS_MAX) {
        c->segment[c->segments].p = fixture_map(f, size);
        c->segment[c->segments].size = size;
        c->segments += c->segment[c->segments].p != NULL;
    }
    fixture_close_fds(f);
}

#define FILE_FIELDS (sizeof(struct pm_reg_mr_req) - offsetof(struct pm_reg_mr_req, file_offset))
/* The request brings the file of its region. The file has pages for some regions, and is too short for others. It may become
 * shorter later, when the daemon has mapped it. */
static void bring_file(struct fixture *f, struct client *c, struct pm_reg_mr_req *r, struct input *in)
{
    static int file = -1;
    struct stat st;

    if (file < 0)
        file = memfd_create("region", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, (off_t)(take(in, 1) % 8 * 2048)) != 0 || fstat(file, &st) != 0)
        abort();
    c->session->client_mem->path = PM_MEMORY_PROCESS_VM; /* as if the client were of the daemon's user */
    r->file_offset = take(in, 1) * 64u;
    r->file_dev = st.st_dev;
    r->file_ino = st.st_ino;
    f->rq.fd[0] = dup(file);
    f->rq.fds = 1;
}

/* A message whose payload is of the right length now and then, with known numbers at its words. */
static void message(struct fixture *f, struct client *c, struct input *in)
{
    static const uint16_t lengths[PM_OP_MAX_] = {
        [PM_OP_QUERY_GID] = 4,
        [PM_OP_DEALLOC_PD] = 4,
        [PM_OP_REG_MR] = sizeof(struct pm_reg_mr_req),
        [PM_OP_REREG_MR] = sizeof(struct pm_rereg_mr_req),
        [PM_OP_DEREG_MR] = 4,
        [PM_OP_DESTROY_CHANNEL] = 4,
        [PM_OP_CREATE_CQ] = 16,
        [PM_OP_RESIZE_CQ] = 8,
        [PM_OP_SWITCH_CQ] = 4,
        [PM_OP_DESTROY_CQ] = 4,
        [PM_OP_CREATE_QP] = sizeof(struct pm_create_qp_req),
        [PM_OP_MODIFY_QP] = sizeof(struct pm_modify_qp_req),
        [PM_OP_QUERY_QP] = 4,
        [PM_OP_DESTROY_QP] = 4,
        [PM_OP_CREATE_SRQ] = sizeof(struct pm_create_srq_req),
        [PM_OP_MODIFY_SRQ] = 8,
        [PM_OP_RESIZE_SRQ] = 8,
        [PM_OP_SWITCH_SRQ] = 4,
        [PM_OP_QUERY_SRQ] = 4,
        [PM_OP_DESTROY_SRQ] = 4,
        [PM_OP_OPEN_XRCD] = sizeof(struct pm_open_xrcd_req),
        [PM_OP_CLOSE_XRCD] = 4,
        [PM_OP_OPEN_QP] = sizeof(struct pm_open_qp_req),
        [PM_OP_ALLOC_MW] = 12,
        [PM_OP_DEALLOC_MW] = 4,
        [PM_OP_ATTACH_MCAST] = sizeof(struct pm_mcast_req),
        [PM_OP_DETACH_MCAST] = sizeof(struct pm_mcast_req),
        [PM_OP_MODIFY_CQ] = sizeof(struct pm_modify_cq_req),
        [PM_OP_TM] = sizeof(struct pm_tm_req),
        [PM_OP_CREATE_COMP_CNTR] = 4,
        [PM_OP_DESTROY_COMP_CNTR] = 4,
        [PM_OP_MODIFY_COMP_CNTR] = sizeof(struct pm_modify_comp_cntr_req),
        [PM_OP_ATTACH_COMP_CNTR] = sizeof(struct pm_attach_comp_cntr_req),
    };
    uint32_t op = take(in, 1) % (PM_OP_MAX_ + 2);
    uint32_t known = take(in, 2), len;

    len = op < PM_OP_MAX_ && (known & 0x8000) == 0 ? lengths[op] : take(in, 1);
    f->rq.op = op;
    f->rq.len = len;
    f->rq.fds = op == PM_OP_OPEN_XRCD && known & 1;
    f->rq.fd[0] = f->rq.fds ? dup(known & 2 ? STDIN_FILENO : STDERR_FILENO) : -1;
    memset(f->rq.payload, 0, len);
    /* bring_file fills in the fields of the file. */
    bool region = (op == PM_OP_REG_MR || op == PM_OP_REREG_MR) && len == lengths[op];
    uint32_t drawn = region ? len - FILE_FIELDS : len;
    for (uint32_t i = 0; i + 4 <= drawn; i += 4) {
        uint32_t word = i / 4 < 15 && known & 1u << (i / 4) ? c->number[take(in, 1) % 16] : take(in, 1 + (i % 8 == 0));

        memcpy(f->rq.payload + i, &word, 4);
    }
    if (op == PM_OP_REG_MR && take(in, 1) & 1) {
        struct pm_reg_mr_req *r = (struct pm_reg_mr_req *)(void *)f->rq.payload;

        r->va = r->iova = (uintptr_t)memory;
        r->length = sizeof(memory);
    }
    if (region && known & 0x2000)
        bring_file(f, c,
                   op == PM_OP_REG_MR ? (struct pm_reg_mr_req *)(void *)f->rq.payload
                                      : &((struct pm_rereg_mr_req *)(void *)f->rq.payload)->mr,
                   in);
    if ((op == PM_OP_ATTACH_MCAST || op == PM_OP_DETACH_MCAST) && known & 0x4000) { /* few groups, so that they meet */
        struct pm_mcast_req *r = (struct pm_mcast_req *)(void *)f->rq.payload;

        memcpy(r->gid, (uint8_t[16]){[10] = 0xff, [11] = 0xff, [12] = 239}, 16);
        r->gid[15] = take(in, 1) & 3;
    }
    control_dispatch(c->session, &f->rq, &f->rp);
    control_request_fini(&f->rq);
    if (f->rp.status > 0 || (f->rp.status < 0 && f->rp.fds))
        abort();
    receive(f, c, op);
}

static void store(struct client *c, struct input *in)
{
    unsigned which = take(in, 1);
    uint8_t *p = (uint8_t *)c->session->page;
    size_t size = sizeof(*c->session->page), at;

    if (c->segments && which & 1) {
        p = c->segment[which / 2 % c->segments].p;
        size = c->segment[which / 2 % c->segments].size;
    }
    at = take(in, 2) * (which & 0x80 ? 64u : 4u) % (size - 64);
    if (which & 0x40) {
        uint32_t word = take(in, 4);

        memcpy(p + (at & ~3ul), &word, sizeof(word));
    } else {
        for (unsigned n = take(in, 1) % 64; n--; at++)
            p[at] = (uint8_t)take(in, 1);
    }
}

/* Rings the first doorbells, so that the daemon reads what was stored. */
static void ring(struct session *s)
{
    atomic_store(&s->page->bits[0], UINT64_MAX);
    atomic_store(&s->page->summary[0], UINT64_MAX);
}

static void connect_pair(struct fixture *f, struct client *c, struct input *in)
{
    uint32_t a = c->number[take(in, 1) % 16], b = c->number[take(in, 1) % 16];

    fixture_connect(f, c->session, a, b);
    fixture_connect(f, c->session, b, a);
}

/* Two connected queue pairs, so that short inputs get at their rings. */
static void start_pair(struct fixture *f, struct client *c)
{
    struct fixture_cq cq;
    struct fixture_qp qp[2];
    uint32_t pd = fixture_pd(f, c->session);

    learn(c, pd);
    learn(c, fixture_mr(f, c->session, pd, memory, sizeof(memory), 15));
    if (fixture_cq(f, c->session, 16, 0, &cq) != 0)
        abort();
    learn(c, cq.rep.handle);
    c->segment[0].p = (uint8_t *)cq.page;
    c->segment[0].size = cq.rep.size;
    for (int i = 0; i < 2; i++) {
        if (fixture_qp(f, c->session, pd, cq.rep.handle, 8, &qp[i]) != 0)
            abort();
        learn(c, qp[i].rep.qpn);
        c->segment[1 + i].p = qp[i].base;
        c->segment[1 + i].size = qp[i].rep.size;
    }
    c->segments = 3;
    if (fixture_connect(f, c->session, qp[0].rep.qpn, qp[1].rep.qpn) != 0 ||
        fixture_connect(f, c->session, qp[1].rep.qpn, qp[0].rep.qpn) != 0)
        abort();
}

static void map(struct client *c, void *p, size_t size)
{
    if (c->segments == SEGMENTS_MAX)
        abort();
    c->segment[c->segments].p = p;
    c->segment[c->segments++].size = size;
}

/* A datagram queue pair that can send to itself, in a group, fed by an SRQ. */
static void start_datagrams(struct fixture *f, struct client *c)
{
    struct pm_modify_qp_req m = {.attr = {.port_num = 1, .qkey = 1}};
    struct pm_mcast_req g = {.gid = {[10] = 0xff, [11] = 0xff, [12] = 239}};
    uint32_t pd = fixture_pd(f, c->session);
    struct fixture_srq srq;
    struct fixture_cq cq;
    struct fixture_qp qp;

    if (fixture_cq(f, c->session, 16, 0, &cq) != 0 || fixture_srq(f, c->session, pd, 8, &srq) != 0 ||
        fixture_qp_typed(f, c->session, pd, cq.rep.handle, QPT_UD, srq.rep.handle, 8, &qp) != 0)
        abort();
    map(c, cq.page, cq.rep.size);
    map(c, srq.page, srq.rep.size);
    map(c, qp.page, qp.rep.size);
    learn(c, pd);
    learn(c, cq.rep.handle);
    learn(c, srq.rep.handle);
    learn(c, qp.rep.qpn);
    learn(c, fixture_mr(f, c->session, pd, memory, sizeof(memory), 15));
    m.qpn = g.qpn = qp.rep.qpn;
    for (uint8_t state = QPS_INIT; state <= QPS_RTS; state++) {
        static const uint32_t masks[] = {0, QPA_PKEY_INDEX | QPA_PORT | QPA_QKEY, 0, QPA_SQ_PSN};

        m.attr.qp_state = state;
        m.mask = QPA_STATE | masks[state];
        if (fixture_call(f, c->session, PM_OP_MODIFY_QP, &m, sizeof(m), NULL, 0) != 0)
            abort();
    }
    if (fixture_call(f, c->session, PM_OP_ATTACH_MCAST, &g, sizeof(g), NULL, 0) != 0)
        abort();
}

/* An XRC domain with a target and an SRQ, and the initiator that sends to it. */
static void start_xrc(struct fixture *f, struct client *c)
{
    struct pm_open_xrcd_req open = {.oflags = O_CREAT};
    struct pm_create_qp_req target = {.type = QPT_XRC_RECV};
    struct pm_create_srq_req shared = {.type = 1, .max_wr = 8, .max_sge = 1};
    struct pm_create_qp_rep target_rep;
    struct pm_create_srq_rep srq;
    struct fixture_cq cq;
    struct fixture_qp qp;
    struct pm_handle h;

    if (fixture_call(f, c->session, PM_OP_OPEN_XRCD, &open, sizeof(open), &h, sizeof(h)) != 0 ||
        fixture_cq(f, c->session, 16, 0, &cq) != 0)
        abort();
    learn(c, h.handle);
    target.xrcd = shared.xrcd = h.handle;
    shared.pd = fixture_pd(f, c->session);
    shared.cq = cq.rep.handle;
    if (fixture_call(f, c->session, PM_OP_CREATE_QP, &target, sizeof(target), &target_rep, sizeof(target_rep)) != 0)
        abort();
    fixture_close_fds(f);
    if (fixture_call(f, c->session, PM_OP_CREATE_SRQ, &shared, sizeof(shared), &srq, sizeof(srq)) != 0)
        abort();
    map(c, fixture_map(f, srq.size), srq.size);
    if (fixture_qp_typed(f, c->session, shared.pd, cq.rep.handle, QPT_XRC_SEND, 0, 8, &qp) != 0)
        abort();
    map(c, cq.page, cq.rep.size);
    map(c, qp.page, qp.rep.size);
    learn(c, target_rep.qpn);
    learn(c, srq.handle);
    learn(c, qp.rep.qpn);
}

/* A TM-SRQ with some entries in its list, and a pair of queue pairs whose messages it matches. */
static void start_tags(struct fixture *f, struct client *c)
{
    uint32_t pd = fixture_pd(f, c->session);
    struct pm_create_srq_req rq = {
        .pd = pd, .type = IBV_SRQT_TM, .max_wr = 8, .max_sge = 2, .max_num_tags = 8, .max_ops = 16};
    struct pm_create_srq_rep rep;
    struct fixture_cq cq;

    if (fixture_cq(f, c->session, 64, 0, &cq) != 0)
        abort();
    rq.cq = cq.rep.handle;
    if (fixture_call(f, c->session, PM_OP_CREATE_SRQ, &rq, sizeof(rq), &rep, sizeof(rep)) != 0)
        abort();
    c->segment[0].size = rep.size;
    c->segment[0].p = fixture_map(f, rep.size);
    fixture_close_fds(f);
    c->segment[1].p = (uint8_t *)cq.page;
    c->segment[1].size = cq.rep.size;
    c->segments = 2;
    learn(c, pd);
    learn(c, cq.rep.handle);
    learn(c, rep.handle);
    learn(c, fixture_mr(f, c->session, pd, memory, sizeof(memory), 15));
    for (int i = 0; i < 2; i++) {
        struct pm_create_qp_req qr = {.pd = pd,
                                      .send_cq = cq.rep.handle,
                                      .recv_cq = cq.rep.handle,
                                      .srq = i ? rep.handle : 0,
                                      .type = IBV_QPT_RC,
                                      .max_send_wr = 8,
                                      .max_send_sge = 2,
                                      .max_inline = 64};
        struct pm_create_qp_rep qp;

        if (fixture_call(f, c->session, PM_OP_CREATE_QP, &qr, sizeof(qr), &qp, sizeof(qp)) != 0)
            abort();
        c->segment[c->segments].size = qp.size;
        c->segment[c->segments++].p = fixture_map(f, qp.size);
        fixture_close_fds(f);
        learn(c, qp.qpn);
    }
    if (fixture_connect(f, c->session, c->number[4], c->number[5]) != 0 ||
        fixture_connect(f, c->session, c->number[5], c->number[4]) != 0)
        abort();
    c->tags = (struct tags){.page = (struct pm_srq_page *)(void *)c->segment[0].p,
                            .ring = c->segment[0].p + rep.ops_offset,
                            .stride = rep.ops_stride,
                            .mask = rep.ops_slots - 1,
                            .sends = c->segment[2].p,
                            .lkey = c->number[3]};
}

/* An operation that may be right, or nearly. */
static void tag_op(struct client *c, struct input *in)
{
    struct tags *t = &c->tags;
    uint32_t at = atomic_load(&t->page->ops_tail), kind = take(in, 1);
    struct pm_tm_op op = {.wr_id = at,
                          .tag = take(in, 1) % 4,
                          .mask = kind & 64 ? UINT64_MAX : kind & 1,
                          .handle = take(in, 1) % 10 | (take(in, 1) & 3) << PM_TM_SLOT_BITS,
                          .unexpected_cnt = take(in, 1),
                          .opcode = (uint8_t)(kind % 4),
                          .flags = (uint8_t)(kind >> 2),
                          .num_sge = (uint8_t)(kind & 128 ? take(in, 1) : 1)};
    struct pm_sge sge = {(uintptr_t)memory, take(in, 1), t->lkey};

    memcpy(t->ring + (size_t)(at & t->mask) * t->stride, &op, sizeof(op));
    memcpy(t->ring + (size_t)(at & t->mask) * t->stride + sizeof(op), &sge, sizeof(sge));
    atomic_store(&t->page->ops_tail, at + 1);
}

/* A message to the list: inline data with a header in front. */
static void tag_message(struct client *c, struct input *in)
{
    struct pm_qp_page *page = (struct pm_qp_page *)(void *)c->tags.sends;
    uint32_t at = atomic_load(&page->sq_tail), len = take(in, 1) % 65;
    uint8_t *slot = c->tags.sends + ((sizeof(*page) + 63) & ~63ul) + (at & 7) * 128;
    struct pm_send_wqe w = {
        .wr_id = at, .inline_len = len, .opcode = IBV_WR_SEND, .flags = PM_SEND_INLINE | PM_SEND_SIGNALED};
    uint8_t data[64] = {[0] = (uint8_t)take(in, 1), [15] = (uint8_t)(take(in, 1) % 4), [31] = (uint8_t)take(in, 1)};
    uint64_t va = htobe64((uintptr_t)memory);

    memcpy(data + 16, &va, sizeof(va));
    memcpy(slot, &w, sizeof(w));
    memcpy(slot + sizeof(w), data, sizeof(data));
    atomic_store(&page->sq_tail, at + 1);
}

static void tag_step(struct client *c, struct input *in)
{
    if (take(in, 1) & 1)
        tag_op(c, in);
    else
        tag_message(c, in);
    ring(c->session);
}

/* Limits that a short input reaches, or none. Objects of the start may be beyond them. */
static void limit(struct quota *q, unsigned setup)
{
    static const char *const texts[] = {
        "all=none",
        "all=3,bytes=1M",
        "all=none,bytes=200K",
        "all=none,mappings=12",
        "all=none,descriptors=8",
        "all=none,qps=4,cqs=2,mrs=2",
        "all=none,pds=1,srqs=1,mws=1,channels=1,xrcds=1",
        "all=0",
    };
    struct quota_limits limits;

    if (quota_limits_parse(texts[setup % 8], &limits) != 0)
        abort();
    quota_set_limits(q, &limits);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static struct fixture f;
    static struct quota quota;
    struct input in = {data, len};
    struct client c = {0};
    uint64_t now = clock_ns();

    log_set_level(LOG_LEVEL_ERROR);
    segment_guard_install();
    if (!fixture_start(&f))
        abort();
    fuzz_quota_start(&f, &quota);
    c.session = fuzz_session(&f, FUZZ_UID);
    uint32_t setup = take(&in, 1);
    if (setup & 8)
        start_tags(&f, &c); /* in place of a pair */
    else if (setup & 1)
        start_pair(&f, &c);
    if (setup & 2)
        start_datagrams(&f, &c);
    if (setup & 4)
        start_xrc(&f, &c);
    limit(&quota, setup >> 4);
    for (unsigned step = 0; in.len && step < STEPS_MAX; step++) {
        switch (take(&in, 1) % 8) {
        case 0:
        case 1:
        case 2:
            message(&f, &c, &in);
            break;
        case 3:
        case 4:
            store(&c, &in);
            break;
        case 5:
            ring(c.session);
            break;
        case 6:
            if (c.tags.page)
                tag_step(&c, &in);
            else
                connect_pair(&f, &c, &in);
            break;
        default:
            now += take(&in, 1) * NS_PER_MS;
            for (int i = 0; i < 4; i++)
                device_pass(f.device, now);
        }
    }
    device_pass(f.device, now);
    session_close(c.session);
    fuzz_must_be_empty(f.device);
    fuzz_quota_end(&f, &quota);
    for (unsigned i = 0; i < c.segments; i++)
        munmap(c.segment[i].p, c.segment[i].size);
    fixture_end(&f);
    return 0;
}
