// SPDX-License-Identifier: BSD-2-Clause
/* Shared by the programs about tag matching: a receiver with a TM-SRQ and two QPs, and a sender with one QP to each. */
#ifndef PUMICE_TESTS_VERBS_TAG_MATCHING_TAGS_H
#define PUMICE_TESTS_VERBS_TAG_MATCHING_TAGS_H

#include <endian.h>
#include <infiniband/tm_types.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "pumice/abi.h"
#include "tests/verbs/ends.h"

#define TM_BUF (4u << 20)
#define TM_QPS 2
#define EXACT UINT64_MAX
#define BOTH (IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID)

/* Sets the faults of a daemon. spec "": no faults. */
static inline void tm_fault_at(const char *path, const char *spec)
{
    struct {
        struct pm_request head;
        struct pm_fault_req fault;
    } m = {.head = {PM_OP_FAULT, sizeof(m.fault)}, .fault.seed = 7};
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    struct pm_reply r;
    int sock = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    strncpy(to.sun_path, path, sizeof(to.sun_path) - 1);
    strncpy(m.fault.spec, spec, sizeof(m.fault.spec) - 1);
    double end = vt_now() + 5;
    need(sock >= 0);
    while (connect(sock, (struct sockaddr *)&to, sizeof(to)) != 0)
        need(errno == ECONNREFUSED && vt_now() < end); /* it will listen soon */
    need(send(sock, &m, sizeof(m), 0) == (ssize_t)sizeof(m));
    need(recv(sock, &r, sizeof(r), 0) >= (ssize_t)sizeof(r) && r.status == 0);
    close(sock);
}
static const char *tm_faults = ""; /* faults of all packets while a test runs */
static inline bool tm_lossy(void)
{
    return *tm_faults != 0;
}
/* Sets the faults of both daemons. */
static inline void tm_fault(const char *spec)
{
    if (getenv("PUMICE_SOCKET"))
        tm_fault_at(getenv("PUMICE_SOCKET"), spec);
    if (getenv("VT_PEER_SOCKET"))
        tm_fault_at(getenv("VT_PEER_SOCKET"), spec);
}

/* Adds a rule before the faults of the test. "": removes it again. */
static inline void tm_strike(const char *rule)
{
    char spec[256];
    need(snprintf(spec, sizeof(spec), "%s%s%s", rule, *rule && tm_lossy() ? ";" : "", tm_faults) < (int)sizeof(spec));
    tm_fault(spec);
}

struct tm_side {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_cq_ex *cq; /* receiver: of the SRQ; sender: of everything */
    struct ibv_cq *other; /* receiver: both CQs of the QPs; no completion may come to it */
    struct ibv_srq *srq;
    struct ibv_qp *qp[TM_QPS];
    uint8_t *buf; /* TM_BUF bytes */
    struct ibv_mr *mr;
    union ibv_gid gid;
};
struct tm_pair {
    struct tm_side r, s;
};

/* Is the device as strict as the adapters are (tm_profile = mlx5)? */
static inline bool tm_strict(struct ibv_context *ctx)
{
    struct ibv_device_attr_ex a;
    need(ibv_query_device_ex(ctx, NULL, &a) == 0);
    return a.tm_caps.max_sge == 1;
}

static inline struct ibv_cq_ex *tm_cq(struct ibv_context *ctx, uint32_t cqe)
{
    struct ibv_cq_init_attr_ex a = {.cqe = cqe, .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_TM_INFO};
    return ibv_create_cq_ex(ctx, &a);
}

static inline void tm_side_open(struct tm_side *e, struct ibv_context *ctx)
{
    *e = (struct tm_side){.ctx = ctx};
    vt_needs(ctx, VT_TAG_MATCHING);
    e->gid = vt_gid(ctx);
    need((e->pd = ibv_alloc_pd(ctx)));
    need((e->cq = tm_cq(ctx, 4096)) && (e->other = ibv_create_cq(ctx, 16, NULL, NULL, 0)));
    need((e->buf = aligned_alloc(4096, TM_BUF)));
    memset(e->buf, 0, TM_BUF);
    need((e->mr = ibv_reg_mr(e->pd, e->buf, TM_BUF, VT_ALL_ACCESS)));
}

static inline struct ibv_srq *tm_srq(struct tm_side *e, uint32_t max_num_tags, uint32_t max_ops)
{
    struct ibv_srq_init_attr_ex a = {.attr = {.max_wr = 256, .max_sge = 2},
                                     .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ |
                                                  IBV_SRQ_INIT_ATTR_TM,
                                     .srq_type = IBV_SRQT_TM,
                                     .pd = e->pd,
                                     .cq = ibv_cq_ex_to_cq(e->cq),
                                     .tm_cap = {max_num_tags, max_ops}};
    return ibv_create_srq_ex(e->ctx, &a);
}

/* The attributes of the receiver's QPs. */
struct tm_how {
    uint32_t own_sends; /* max_send_wr */
    uint8_t max_rd_atomic, rnr_retry, timeout, retry_cnt;
    bool unprimed; /* a strict device does not get its first buffers */
};
static const struct tm_how tm_usual = {.max_rd_atomic = 4, .rnr_retry = 7, .timeout = 14, .retry_cnt = 7};

static inline void tm_link(struct ibv_qp *r, const union ibv_gid *r_gid, struct ibv_qp *s, const union ibv_gid *s_gid,
                           const struct tm_how *how)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTS,
                            .timeout = how->timeout,
                            .retry_cnt = how->retry_cnt,
                            .rnr_retry = how->rnr_retry,
                            .sq_psn = 1,
                            .max_rd_atomic = how->max_rd_atomic};
    need(vt_to_init(r) == 0 && vt_to_init(s) == 0);
    need(vt_to_rtr_at(r, s->qp_num, s_gid) == 0 && vt_to_rtr_at(s, r->qp_num, r_gid) == 0);
    need(vt_to_rts(s) == 0 && ibv_modify_qp(r, &a,
                                            IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                                IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC) == 0);
}
/* Makes a QP on each side. The receiver's QP usually has no send or receive requests of its own. */
static inline void tm_connect(struct tm_pair *p, struct ibv_qp **r, struct ibv_qp **s, const struct tm_how *how)
{
    struct ibv_cq *cq = ibv_cq_ex_to_cq(p->s.cq);
    struct ibv_qp_init_attr ra = {.send_cq = p->r.other,
                                  .recv_cq = p->r.other,
                                  .srq = p->r.srq,
                                  .cap = {.max_send_wr = how->own_sends, .max_send_sge = how->own_sends != 0},
                                  .qp_type = IBV_QPT_RC,
                                  /* This affects neither the offload nor list operations. */
                                  .sq_sig_all = 1};
    struct ibv_qp_init_attr sa = {.send_cq = cq, .recv_cq = cq, .cap = {64, 64, 2, 2, 64}, .qp_type = IBV_QPT_RC};
    need((*r = ibv_create_qp(p->r.pd, &ra)) && (*s = ibv_create_qp(p->s.pd, &sa)));
    tm_link(*r, &p->r.gid, *s, &p->s.gid, how);
}

static inline void tm_prime(struct tm_pair *p);
static inline void tm_open_as(struct tm_pair *p, struct ibv_context *a, struct ibv_context *b, const struct tm_how *how)
{
    tm_side_open(&p->r, a);
    tm_side_open(&p->s, b);
    need((p->r.srq = tm_srq(&p->r, 64, 128)));
    for (int i = 0; i < TM_QPS; i++)
        tm_connect(p, &p->r.qp[i], &p->s.qp[i], how);
    if (!how->unprimed)
        tm_prime(p);
}
static inline void tm_open(struct tm_pair *p, struct ibv_context *a, struct ibv_context *b)
{
    tm_open_as(p, a, b, &tm_usual);
}
/* Replaces a pair of QPs after one of them failed. */
static inline void tm_replace(struct tm_pair *p, int i, const struct tm_how *how)
{
    need(!p->r.qp[i] || ibv_destroy_qp(p->r.qp[i]) == 0);
    need(!p->s.qp[i] || ibv_destroy_qp(p->s.qp[i]) == 0);
    tm_connect(p, &p->r.qp[i], &p->s.qp[i], how);
}

static inline int tm_side_close(struct tm_side *e)
{
    int rc = 0;
    for (int i = 0; i < TM_QPS; i++)
        rc |= e->qp[i] ? ibv_destroy_qp(e->qp[i]) : 0;
    rc |= e->srq ? ibv_destroy_srq(e->srq) : 0;
    rc |= ibv_dereg_mr(e->mr) | ibv_destroy_cq(ibv_cq_ex_to_cq(e->cq)) | ibv_destroy_cq(e->other);
    rc |= ibv_dealloc_pd(e->pd);
    free(e->buf);
    return rc;
}
/* Do all decisions on this device's lists, as far as their traces reach, follow the rules of tag matching? */
static inline bool tm_rules_kept(void)
{
    char command[512];
    const char *build = getenv("VT_BUILD");
    need(build && snprintf(command, sizeof(command), "env -u LD_PRELOAD %s/bin/pumice tm replay --check", build) > 0);
    fflush(stdout);
    return system(command) == 0;
}
static inline void tm_close(struct tm_pair *p)
{
    ok(tm_rules_kept(), "all decisions follow from the rules");
    ok(vt_quiet(p->r.other), "nothing came to the CQs of the QPs");
    ok(vt_quiet(ibv_cq_ex_to_cq(p->r.cq)), "nothing is left in the SRQ's CQ");
    ok((tm_side_close(&p->s) | tm_side_close(&p->r)) == 0, "all is destroyed");
}

/* --- the receiver */

static inline struct ibv_sge tm_at(const struct tm_side *e, uint32_t at, uint32_t len)
{
    return (struct ibv_sge){.addr = (uintptr_t)e->buf + at, .length = len, .lkey = e->mr->lkey};
}

static inline void tm_buffer(struct tm_side *e, uint64_t id, uint32_t at, uint32_t len)
{
    struct ibv_sge s = tm_at(e, at, len);
    struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &s, .num_sge = 1}, *bad;
    need(ibv_post_srq_recv(e->srq, &wr, &bad) == 0);
}

struct tm_add {
    uint64_t id, tag, mask; /* id: of the operation; the id of the buffer is id + 1000 */
    uint32_t at, len;
    int flags; /* enum ibv_ops_flags */
    uint32_t count;
};
/* Returns 0 or an errno value. *handle, if not NULL: of the entry. */
static inline int tm_try_add(struct tm_side *e, const struct tm_add *a, uint32_t *handle)
{
    struct ibv_sge s = tm_at(e, a->at, a->len);
    struct ibv_ops_wr wr = {.wr_id = a->id, .opcode = IBV_WR_TAG_ADD, .flags = a->flags}, *bad;
    wr.tm.unexpected_cnt = a->count;
    wr.tm.add.recv_wr_id = a->id + 1000;
    wr.tm.add.sg_list = &s;
    wr.tm.add.num_sge = a->len != 0;
    wr.tm.add.tag = a->tag;
    wr.tm.add.mask = a->mask;
    int rc = ibv_post_srq_ops(e->srq, &wr, &bad);
    if (handle)
        *handle = wr.tm.handle;
    return rc;
}
/* Adds an unsignaled entry with an exact tag. */
static inline uint32_t tm_add(struct tm_side *e, uint64_t id, uint64_t tag, uint32_t at, uint32_t len)
{
    struct tm_add a = {.id = id, .tag = tag, .mask = EXACT, .at = at, .len = len};
    uint32_t handle;
    need(tm_try_add(e, &a, &handle) == 0);
    return handle;
}
static inline int tm_op(struct tm_side *e, uint64_t id, enum ibv_ops_wr_opcode opcode, int flags, uint32_t handle,
                        uint32_t count)
{
    struct ibv_ops_wr wr = {.wr_id = id, .opcode = opcode, .flags = flags}, *bad;
    wr.tm.handle = handle;
    wr.tm.unexpected_cnt = count;
    return ibv_post_srq_ops(e->srq, &wr, &bad);
}

/* As tm_op. While the queue of operations is full of those that the device has not carried out yet, it waits. */
static inline int tm_op_when_room(struct tm_side *e, uint64_t id, enum ibv_ops_wr_opcode opcode, int flags,
                                  uint32_t handle, uint32_t count)
{
    double end = vt_now() + 20;
    int rc;
    while ((rc = tm_op(e, id, opcode, flags, handle, count)) == ENOMEM && vt_now() < end)
        ;
    return rc;
}

/* --- completions */

struct tm_wc {
    uint64_t wr_id, tag;
    uint32_t byte_len, qpn, priv, imm;
    int status, opcode; /* status -1: no completion came */
    unsigned flags;
};
static inline bool tm_poll(struct ibv_cq_ex *cq, struct tm_wc *wc)
{
    struct ibv_poll_cq_attr attr = {0};
    struct ibv_wc_tm_info info;
    if (ibv_start_poll(cq, &attr) != 0)
        return false;
    *wc = (struct tm_wc){.wr_id = cq->wr_id,
                         .status = cq->status,
                         .opcode = ibv_wc_read_opcode(cq),
                         .flags = ibv_wc_read_wc_flags(cq),
                         .byte_len = ibv_wc_read_byte_len(cq),
                         .qpn = ibv_wc_read_qp_num(cq),
                         .imm = ibv_wc_read_imm_data(cq)};
    ibv_wc_read_tm_info(cq, &info);
    wc->tag = info.tag;
    wc->priv = info.priv;
    ibv_end_poll(cq);
    return true;
}
static inline struct tm_wc tm_next(struct tm_side *e)
{
    struct tm_wc wc = {.status = -1};
    double end = vt_now() + 20;
    while (!tm_poll(e->cq, &wc) && vt_now() < end)
        ;
    return wc;
}
/* Is it a successful completion of this kind? If not, prints it. */
static inline bool tm_is(const struct tm_wc *wc, enum ibv_wc_opcode opcode, uint64_t wr_id, unsigned flags)
{
    bool is = wc->status == IBV_WC_SUCCESS && wc->opcode == (int)opcode && wc->wr_id == wr_id && wc->flags == flags;
    if (!is)
        printf("#   got status %d, opcode %d, wr_id %llu, flags 0x%x, byte_len %u, tag %llx\n", wc->status, wc->opcode,
               (unsigned long long)wc->wr_id, wc->flags, wc->byte_len, (unsigned long long)wc->tag);
    return is;
}
static inline bool tm_got(struct tm_side *e, enum ibv_wc_opcode opcode, uint64_t wr_id, unsigned flags)
{
    struct tm_wc wc = tm_next(e);
    return tm_is(&wc, opcode, wr_id, flags);
}
/* A whole eager message came and matched the entry made by tm_add(id). */
static inline bool tm_matched(struct tm_side *e, uint64_t id, uint64_t tag, uint32_t len)
{
    struct tm_wc wc = tm_next(e);
    return tm_is(&wc, IBV_WC_TM_RECV, id + 1000, BOTH) && wc.tag == tag && wc.byte_len == len;
}

/* Waits until all operations posted so far are executed, and reports the count. */
static inline bool tm_sync(struct tm_side *e, uint32_t count)
{
    return tm_op_when_room(e, 77, IBV_WR_TAG_SYNC, IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC, 0, count) == 0 &&
           tm_got(e, IBV_WC_TM_SYNC, 77, 0);
}

/* --- the sender */

/* Writes a header at the start of the sender's buffer. The payload is the content of the buffer after it. */
static inline void tm_header(struct tm_side *s, uint8_t op, uint64_t tag, uint32_t priv)
{
    struct ibv_tmh h = {.opcode = op, .app_ctx = htobe32(priv), .tag = htobe64(tag)};
    memcpy(s->buf, &h, sizeof(h));
}
static inline void tm_rvh(struct tm_side *s, uint32_t at, uint32_t len, uint32_t rkey)
{
    struct ibv_rvh v = {.va = htobe64((uintptr_t)s->buf + at), .rkey = htobe32(rkey), .len = htobe32(len)};
    memcpy(s->buf + sizeof(struct ibv_tmh), &v, sizeof(v));
}
/* Sends the first len bytes of the buffer; with immediate data if imm is not NULL. */
static inline void tm_post(struct tm_side *s, int qp, uint32_t len, const uint32_t *imm)
{
    struct ibv_sge sge = tm_at(s, 0, len);
    struct ibv_send_wr wr = {.wr_id = 5,
                             .sg_list = &sge,
                             .num_sge = len != 0,
                             .opcode = imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    wr.imm_data = imm ? *imm : 0;
    need(ibv_post_send(s->qp[qp], &wr, &bad) == 0);
}
/* Posts a receive request of the sender, for len bytes at `at`. */
static inline void tm_recv(struct tm_side *s, int qp, uint64_t id, uint32_t at, uint32_t len)
{
    struct ibv_sge sge = tm_at(s, at, len);
    struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;
    need(ibv_post_recv(s->qp[qp], &wr, &bad) == 0);
}
/* Waits for the completion and returns its status. */
static inline int tm_sent(struct tm_side *s)
{
    struct tm_wc wc = tm_next(s);
    return wc.opcode == IBV_WC_SEND || wc.status ? wc.status : -1;
}
/* Sends an eager message with len bytes after the header. It is delivered when the function returns. */
static inline bool tm_eager(struct tm_side *s, int qp, uint64_t tag, uint32_t len)
{
    tm_header(s, IBV_TMH_EAGER, tag, (uint32_t)tag + 3);
    for (uint32_t i = 0; i < len; i++)
        s->buf[sizeof(struct ibv_tmh) + i] = (uint8_t)(i * 7 + tag);
    tm_post(s, qp, len + (uint32_t)sizeof(struct ibv_tmh), NULL);
    return tm_sent(s) == IBV_WC_SUCCESS;
}
/* Does the receiver have the data of such a message at `at`? */
static inline bool tm_data(const struct tm_side *r, uint32_t at, uint64_t tag, uint32_t len)
{
    for (uint32_t i = 0; i < len; i++)
        if (r->buf[at + i] != (uint8_t)(i * 7 + tag))
            return false;
    return true;
}

/* A strict device needs 33 untagged buffers before it takes the first message. This uses them up at once, so that the
 * test works the same way on every device. */
static inline void tm_prime(struct tm_pair *p)
{
    for (uint64_t i = 0; i < 33 && tm_strict(p->r.ctx); i++)
        tm_buffer(&p->r, i, 0, 16);
    for (uint64_t i = 0; i < 33 && tm_strict(p->r.ctx); i++) {
        tm_header(&p->s, IBV_TMH_NO_TAG, 0, 0);
        tm_post(&p->s, 0, 1, NULL);
        need(tm_sent(&p->s) == 0 && tm_got(&p->r, IBV_WC_TM_NO_TAG, i, 0));
    }
}

/* Runs a test within one device and between two hosts, without and with losses. (Only a daemon of the test can lose
 * packets on demand.) */
static inline int tm_everywhere(void (*test)(struct ibv_context *a, struct ibv_context *b))
{
    static const char *const faults[] = {"", "loss=5%"};
    for (int i = 0; i < (vt_chosen() ? 1 : 2); i++) {
        printf("# %s\n", i ? faults[i] : "clean");
        tm_faults = faults[i];
        tm_strike("");
        vt_both(test);
    }
    tm_faults = "";
    tm_strike("");
    return vt_failed;
}

#endif
