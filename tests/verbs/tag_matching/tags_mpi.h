// SPDX-License-Identifier: BSD-2-Clause
/* A program that receives as MPI does, following the tag-matching proposal. It has its own list of receives and its
 * own queue of unexpected messages beside the device's list, and the count that keeps both in sync. Its messages are
 * eager. Each has a number, which travels in app_ctx. While messages are sent one at a time, a reference model of the
 * device predicts every completion. */
#ifndef PUMICE_TESTS_VERBS_TAG_MATCHING_TAGS_MPI_H
#define PUMICE_TESTS_VERBS_TAG_MATCHING_TAGS_MPI_H

#include "tests/unit/core/tm_model.h"
#include "tests/verbs/tag_matching/tags.h"

#define MPI_MAX 4096 /* the most messages, and the most receives, of one program */
#define MPI_BUFS 64 /* untagged buffers */
#define MPI_BUF_LEN 4096u
#define MPI_BUF_AT (1u << 20) /* place of the untagged buffers; the receives share the memory before it */
#define MPI_LISTED 48 /* the most receives without a message at a time; the model has room for 64 entries */
#define NOBODY (-1)

struct mpi_recv {
    uint64_t tag, mask;
    uint32_t handle;
    int msg; /* the message that it got; NOBODY */
    bool done; /* the whole message is there */
};
/* A completion that the model predicts. */
struct mpi_due {
    int recv; /* the matching receive; NOBODY: unexpected */
    int msg;
    bool one; /* a message of one packet has one completion */
};
struct mpi {
    struct tm_pair *p;
    struct mpi_recv recv[MPI_MAX];
    int posted, waiting; /* receives; those of them without a message */
    struct {
        int msg;
        uint64_t tag;
    } queue[MPI_MAX];
    int queued;
    uint32_t count; /* number of unexpected messages polled */
    /* Messages that have a receive or a place in the queue; those of them that were unexpected. */
    int taken, unexpected;
    bool strange; /* a completion that must not come */
    bool exact; /* the model is in use */
    struct model model;
    struct mpi_due due[MPI_MAX];
    int due_head, due_tail;
};

static inline void mpi_buffer(struct mpi *m, uint64_t id)
{
    tm_buffer(&m->p->r, id, MPI_BUF_AT + (uint32_t)id * MPI_BUF_LEN, MPI_BUF_LEN);
}
static inline void mpi_begin(struct mpi *m, struct tm_pair *p, bool exact)
{
    memset(m, 0, sizeof(*m));
    m->p = p;
    m->exact = exact;
    for (uint64_t i = 0; i < MPI_BUFS; i++)
        mpi_buffer(m, i);
}

static inline int mpi_wrong(struct mpi *m, const char *what, int is, int should)
{
    printf("# %s: %d, not %d\n", what, is, should);
    m->strange = true;
    return 0;
}
#define MPI_SAME(m, what, is, should) ((int)(is) == (int)(should) ? 0 : mpi_wrong(m, what, (int)(is), (int)(should)))

/* --- receives */

static inline void mpi_delete(struct mpi *m, uint32_t handle)
{
    need(tm_op_when_room(&m->p->r, 1, IBV_WR_TAG_DEL, IBV_OPS_TM_SYNC, handle, m->count) == 0);
    model_report(&m->model, m->count);
    int i = model_index(&m->model, handle);
    if (m->exact && i < 0)
        mpi_wrong(m, "deleted entry", (int)handle, 0);
    else if (m->exact)
        model_remove(&m->model, i);
}

/* Does a message in the queue match the receive? Then the receive takes the oldest such message. */
static inline bool mpi_take_queued(struct mpi *m, struct mpi_recv *r)
{
    for (int i = 0; i < m->queued; i++) {
        if ((m->queue[i].tag & r->mask) == r->tag) {
            r->msg = m->queue[i].msg;
            r->done = true;
            memmove(&m->queue[i], &m->queue[i + 1], (size_t)(--m->queued - i) * sizeof(m->queue[0]));
            return true;
        }
    }
    return false;
}

#define MPI_SLOT_SECONDS 5

static inline bool mpi_poll(struct mpi *m);

/* Posts a receive. A message in the queue comes first; otherwise the device gets the receive. The slot of an entry is in
 * use until the last completion of its message is polled. So a program without a free slot has to poll. */
static inline int mpi_post(struct mpi *m, uint64_t tag, uint64_t mask)
{
    double end = vt_now() + MPI_SLOT_SECONDS;
    struct mpi_recv r = {.tag = tag, .mask = mask, .msg = NOBODY};
    int rc = 0;
    do {
        if (rc)
            mpi_poll(m); /* may put a message into the queue */
        if (mpi_take_queued(m, &r)) {
            m->recv[m->posted] = r;
            return m->posted++;
        }
        struct tm_add a = {.id = (uint64_t)m->posted,
                           .tag = tag,
                           .mask = mask,
                           .len = MPI_BUF_LEN,
                           .flags = IBV_OPS_TM_SYNC,
                           .count = m->count};
        rc = tm_try_add(&m->p->r, &a, &r.handle);
    } while (rc == ENOMEM && vt_now() < end);
    if (rc)
        printf("# no slot for a receive: error %d\n", rc);
    need(rc == 0);
    m->recv[m->posted] = r;
    m->waiting++;
    if (m->exact) {
        model_report(&m->model, m->count);
        model_add(&m->model, r.handle, tag, mask);
    }
    return m->posted++;
}

/* --- completions */

static inline void mpi_matched(struct mpi *m, const struct tm_wc *wc)
{
    int n = (int)wc->wr_id - 1000;
    if (n < 0 || n >= m->posted || m->recv[n].done) {
        mpi_wrong(m, "a completion of receive", n, m->posted);
        return;
    }
    struct mpi_recv *r = &m->recv[n];
    if (wc->flags & IBV_WC_TM_MATCH) {
        MPI_SAME(m, "message of a receive that had one", r->msg, NOBODY);
        MPI_SAME(m, "tag matches", (wc->tag & r->mask) == r->tag, true);
        r->msg = (int)wc->priv;
        m->waiting--;
        m->taken++;
    }
    r->done = wc->flags & IBV_WC_TM_DATA_VALID;
}
static inline void mpi_unexpected(struct mpi *m, const struct tm_wc *wc)
{
    const struct ibv_tmh *h = (const void *)(m->p->r.buf + MPI_BUF_AT + wc->wr_id * MPI_BUF_LEN);
    uint64_t tag = be64toh(h->tag);
    int msg = (int)be32toh(h->app_ctx);
    m->count++;
    m->taken++;
    m->unexpected++;
    mpi_buffer(m, wc->wr_id);
    for (int n = 0; n < m->posted; n++) {
        struct mpi_recv *r = &m->recv[n];
        if (r->msg == NOBODY && (tag & r->mask) == r->tag) {
            r->msg = msg;
            r->done = true;
            m->waiting--;
            mpi_delete(m, r->handle);
            return;
        }
    }
    m->queue[m->queued].msg = msg;
    m->queue[m->queued++].tag = tag;
}

/* Does the completion agree with the model's prediction? */
static inline void mpi_compare(struct mpi *m, const struct tm_wc *wc)
{
    if (m->due_head == m->due_tail) {
        mpi_wrong(m, "a completion too many, of", (int)wc->wr_id, 0);
        return;
    }
    struct mpi_due *d = &m->due[m->due_head % MPI_MAX];
    unsigned flags = d->recv == NOBODY ? 0 : d->one ? BOTH : d->msg >= 0 ? IBV_WC_TM_MATCH : IBV_WC_TM_DATA_VALID;
    MPI_SAME(m, "flags", wc->flags, flags);
    if (d->recv != NOBODY)
        MPI_SAME(m, "receive", (int)wc->wr_id - 1000, d->recv);
    if (flags & IBV_WC_TM_MATCH)
        MPI_SAME(m, "message", wc->priv, d->msg);
    m->due_head++;
}

/* Polls one completion. False: there is none yet. */
static inline bool mpi_poll(struct mpi *m)
{
    struct tm_wc wc;
    if (!tm_poll(m->p->r.cq, &wc))
        return false;
    if (wc.status != IBV_WC_SUCCESS || wc.opcode != IBV_WC_TM_RECV) {
        mpi_wrong(m, "status", wc.status, 0);
        return true;
    }
    if (m->exact)
        mpi_compare(m, &wc);
    if (wc.flags & BOTH)
        mpi_matched(m, &wc);
    else
        mpi_unexpected(m, &wc);
    return true;
}
/* Polls all completions that the model has predicted. */
static inline void mpi_poll_due(struct mpi *m)
{
    double end = vt_now() + 10;
    while (m->due_head != m->due_tail && !m->strange && vt_now() < end)
        mpi_poll(m);
    MPI_SAME(m, "completions that are missing", m->due_tail - m->due_head, 0);
}

/* --- messages */

/* Posts message number msg, with len bytes after the header. */
static inline void mpi_send(struct mpi *m, struct ibv_qp *qp, int msg, uint64_t tag, uint32_t len)
{
    struct tm_side *s = &m->p->s;
    uint32_t at = (uint32_t)msg % 1024 * 4096;
    struct ibv_tmh h = {.opcode = IBV_TMH_EAGER, .app_ctx = htobe32((uint32_t)msg), .tag = htobe64(tag)};
    struct ibv_sge sge = tm_at(s, at, len + (uint32_t)sizeof(h));
    struct ibv_send_wr wr = {.wr_id = 5,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    memcpy(s->buf + at, &h, sizeof(h));
    need(ibv_post_send(qp, &wr, &bad) == 0);
}
/* Sends the message, and lets the model predict its completion. */
static inline void mpi_send_exact(struct mpi *m, struct ibv_qp *qp, int msg, uint64_t tag, uint32_t len)
{
    struct model *model = &m->model;
    int i = model_match(model, tag), recv = NOBODY;
    bool one = len + sizeof(struct ibv_tmh) <= 1024;
    /* the latest receive with this handle */
    for (int n = 0; i >= 0 && n < m->posted; n++)
        if (m->recv[n].handle == model->list[i].handle)
            recv = n;
    if (i >= 0) {
        model_remove(model, i);
    } else {
        model->inflight++;
        model_end(model, true);
    }
    m->due[m->due_tail++ % MPI_MAX] = (struct mpi_due){recv, msg, one || i < 0};
    if (i >= 0 && !one)
        m->due[m->due_tail++ % MPI_MAX] = (struct mpi_due){recv, NOBODY, false};
    mpi_send(m, qp, msg, tag, len);
    need(tm_sent(&m->p->s) == IBV_WC_SUCCESS);
}

#endif
