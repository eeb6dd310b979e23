// SPDX-License-Identifier: BSD-2-Clause
#include "src/check/requests/wr.h"

#include <stdlib.h>
#include <string.h>

#include "src/check/base/trace.h"
#include "src/check/requests/post.h"
#include "src/check/requests/thread_domain.h"

/* A request that is being built. */
struct built {
    struct ibv_send_wr wr;
    struct ibv_sge *list; /* owned */
    const struct trace *where;
};

/* The requests between ibv_wr_start and ibv_wr_complete, and the functions of the library. Only one thread builds at a time: the
 * library has a lock for that. */
static struct wr_building {
    const struct ibv_qp_ex *qp;
    struct ibv_qp_ex next; /* its functions */
    struct built *built; /* [room], owned */
    unsigned n, room;
    UT_hash_handle hh;
} * table; /* by qp; under the lock of records.h */

static struct wr_building *find(const struct ibv_qp_ex *qp)
{
    struct wr_building *b;

    HASH_FIND_PTR(table, &qp, b);
    return b;
}

static struct wr_building *building(const struct ibv_qp_ex *qp)
{
    records_lock();
    struct wr_building *b = find(qp);
    records_unlock();
    if (!b)
        abort(); /* the functions of the queue pair are replaced, so there is one */
    return b;
}

/* --- noting ------------------------------------------------------------------------------------ */

static void clear(struct wr_building *b)
{
    for (unsigned i = 0; i < b->n; i++)
        free(b->built[i].list);
    b->n = 0;
}

/* Gives what was noted to the caller, without the lists. Another thread may build as soon as this one has completed. */
static struct built *take(struct wr_building *b)
{
    struct built *built = b->built;

    clear(b);
    b->built = NULL;
    b->room = 0;
    return built;
}

static void note_remote(struct wr_building *b, uint32_t rkey, uint64_t addr)
{
    struct ibv_send_wr *wr = b->n ? &b->built[b->n - 1].wr : NULL;

    if (!wr)
        return;
    if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr->wr.atomic.rkey = rkey;
        wr->wr.atomic.remote_addr = addr;
    } else {
        wr->wr.rdma.rkey = rkey;
        wr->wr.rdma.remote_addr = addr;
    }
}

static void note(struct wr_building *b, const struct ibv_qp_ex *qp, enum ibv_wr_opcode opcode,
                 const struct trace *where)
{
    if (b->n == b->room) {
        struct built *more = realloc(b->built, (b->room * 2 + 8) * sizeof(*more));

        if (!more)
            return;
        b->built = more;
        b->room = b->room * 2 + 8;
    }
    b->built[b->n++] =
        (struct built){.wr = {.wr_id = qp->wr_id, .opcode = opcode, .send_flags = qp->wr_flags}, .where = where};
}

static void note_list(struct wr_building *b, size_t n, const struct ibv_sge *list)
{
    struct built *last = b->n ? &b->built[b->n - 1] : NULL;

    if (!last || last->list)
        return;
    last->list = malloc(n ? n * sizeof(*list) : 1);
    if (!last->list)
        return;
    if (n)
        memcpy(last->list, list, n * sizeof(*list));
    last->wr.sg_list = last->list;
    last->wr.num_sge = (int)n;
}

/* Data that the library has copied. */
static void note_inline(struct wr_building *b)
{
    if (b->n)
        b->built[b->n - 1].wr.send_flags |= IBV_SEND_INLINE;
}

/* --- the functions of a queue pair -------------------------------------------------------------- */

static void wr_send(struct ibv_qp_ex *qp)
{
    struct wr_building *b = building(qp);

    note(b, qp, IBV_WR_SEND, TRACE_HERE);
    b->next.wr_send(qp);
}

static void wr_rdma_read(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr)
{
    struct wr_building *b = building(qp);

    note(b, qp, IBV_WR_RDMA_READ, TRACE_HERE);
    note_remote(b, rkey, remote_addr);
    b->next.wr_rdma_read(qp, rkey, remote_addr);
}

static void wr_rdma_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr)
{
    struct wr_building *b = building(qp);

    note(b, qp, IBV_WR_RDMA_WRITE, TRACE_HERE);
    note_remote(b, rkey, remote_addr);
    b->next.wr_rdma_write(qp, rkey, remote_addr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, __be32 imm)
{
    struct wr_building *b = building(qp);

    note(b, qp, IBV_WR_RDMA_WRITE_WITH_IMM, TRACE_HERE);
    note_remote(b, rkey, remote_addr);
    b->next.wr_rdma_write_imm(qp, rkey, remote_addr, imm);
}

static void wr_send_imm(struct ibv_qp_ex *qp, __be32 imm)
{
    struct wr_building *b = building(qp);

    note(b, qp, IBV_WR_SEND_WITH_IMM, TRACE_HERE);
    b->next.wr_send_imm(qp, imm);
}

static void wr_send_inv(struct ibv_qp_ex *qp, uint32_t rkey)
{
    struct wr_building *b = building(qp);

    note(b, qp, IBV_WR_SEND_WITH_INV, TRACE_HERE);
    b->next.wr_send_inv(qp, rkey);
}

static void wr_local_inv(struct ibv_qp_ex *qp, uint32_t rkey)
{
    struct wr_building *b = building(qp);

    note(b, qp, IBV_WR_LOCAL_INV, TRACE_HERE);
    b->next.wr_local_inv(qp, rkey);
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, uint64_t compare,
                              uint64_t swap)
{
    struct wr_building *b = building(qp);

    note(b, qp, IBV_WR_ATOMIC_CMP_AND_SWP, TRACE_HERE);
    note_remote(b, rkey, remote_addr);
    b->next.wr_atomic_cmp_swp(qp, rkey, remote_addr, compare, swap);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, uint64_t add)
{
    struct wr_building *b = building(qp);

    note(b, qp, IBV_WR_ATOMIC_FETCH_AND_ADD, TRACE_HERE);
    note_remote(b, rkey, remote_addr);
    b->next.wr_atomic_fetch_add(qp, rkey, remote_addr, add);
}

static void wr_bind_mw(struct ibv_qp_ex *qp, struct ibv_mw *mw, uint32_t rkey, const struct ibv_mw_bind_info *info)
{
    struct wr_building *b = building(qp);

    note(b, qp, IBV_WR_BIND_MW, TRACE_HERE);
    b->next.wr_bind_mw(qp, mw, rkey, info);
}

static void wr_set_sge(struct ibv_qp_ex *qp, uint32_t lkey, uint64_t addr, uint32_t length)
{
    const struct ibv_sge sge = {addr, length, lkey};
    struct wr_building *b = building(qp);

    note_list(b, 1, &sge);
    b->next.wr_set_sge(qp, lkey, addr, length);
}

static void wr_set_sge_list(struct ibv_qp_ex *qp, size_t n, const struct ibv_sge *list)
{
    struct wr_building *b = building(qp);

    note_list(b, n, list);
    b->next.wr_set_sge_list(qp, n, list);
}

static void wr_set_inline_data(struct ibv_qp_ex *qp, void *addr, size_t length)
{
    struct wr_building *b = building(qp);

    note_inline(b);
    b->next.wr_set_inline_data(qp, addr, length);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *qp, size_t n, const struct ibv_data_buf *list)
{
    struct wr_building *b = building(qp);

    note_inline(b);
    b->next.wr_set_inline_data_list(qp, n, list);
}

static void wr_start(struct ibv_qp_ex *qp)
{
    struct wr_building *b = building(qp);
    const struct trace *where = TRACE_HERE;

    records_lock();
    const struct qp_record *q = record_find(KIND_QP, &qp->qp_base, __builtin_return_address(0));
    thread_domain_enter(q ? q->td : NULL, where);
    records_unlock();
    b->next.wr_start(qp); /* takes the lock of the queue */
    clear(b);
}

static void wr_abort(struct ibv_qp_ex *qp)
{
    struct wr_building *b = building(qp);

    clear(b);
    b->next.wr_abort(qp);
    records_lock();
    const struct qp_record *q = record_find(KIND_QP, &qp->qp_base, __builtin_return_address(0));
    thread_domain_leave(q ? q->td : NULL);
    records_unlock();
}

static int wr_complete(struct ibv_qp_ex *qp)
{
    struct wr_building *b = building(qp);
    unsigned n = b->n;

    records_lock();
    struct qp_record *q = record_find(KIND_QP, &qp->qp_base, __builtin_return_address(0));
    for (unsigned i = 0; q && i < n; i++)
        post_sends(q, &b->built[i].wr, b->built[i].where);
    records_unlock();
    struct built *built = take(b);
    int rc = b->next.wr_complete(qp); /* gives the lock back */
    records_lock();
    thread_domain_leave(q ? q->td : NULL);
    for (unsigned i = 0; q && rc == 0 && i < n; i++)
        post_sends_taken(q, &built[i].wr, NULL, built[i].where);
    if (rc && q)
        post_last_refused(q, n, rc, TRACE_HERE);
    records_unlock();
    free(built);
    return rc;
}

/* --- new and old queue pairs ------------------------------------------------------------------- */

void wr_replace(struct ibv_qp *ibqp)
{
    struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(ibqp);
    struct wr_building *b = qp ? calloc(1, sizeof(*b)) : NULL;

    wr_forget(ibqp); /* of a queue pair that another way destroyed */
    if (!b)
        return;
    b->qp = qp;
    b->next = *qp;
    HASH_ADD_PTR(table, qp, b);
#define REPLACE(function)                                                                                              \
    if (qp->function)                                                                                                  \
    qp->function = function
    REPLACE(wr_send);
    REPLACE(wr_rdma_read);
    REPLACE(wr_rdma_write);
    REPLACE(wr_rdma_write_imm);
    REPLACE(wr_send_imm);
    REPLACE(wr_send_inv);
    REPLACE(wr_local_inv);
    REPLACE(wr_atomic_cmp_swp);
    REPLACE(wr_atomic_fetch_add);
    REPLACE(wr_bind_mw);
    REPLACE(wr_set_sge);
    REPLACE(wr_set_sge_list);
    REPLACE(wr_set_inline_data);
    REPLACE(wr_set_inline_data_list);
    REPLACE(wr_start);
    REPLACE(wr_complete);
    REPLACE(wr_abort);
#undef REPLACE
}

void wr_forget(const struct ibv_qp *ibqp)
{
    struct wr_building *b = find((const struct ibv_qp_ex *)ibqp); /* its first member */

    if (!b)
        return;
    HASH_DEL(table, b);
    clear(b);
    free(b->built);
    free(b);
}
