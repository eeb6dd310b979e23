// SPDX-License-Identifier: BSD-2-Clause
#include "src/check/objects/records.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/check/base/finding.h"
#include "src/check/base/inside.h"
#include "src/check/objects/async_events.h"

static struct record *table[KINDS];
static struct record *latest[KINDS]; /* found most recently; NULL: none */
static struct qp_record *by_number, *latest_qp; /* latest_qp: found by its number */
static struct mr_record *by_key, *last_mr; /* last_mr: found most recently */
static unsigned generation;
static _Atomic unsigned regions;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const char *const names[KINDS][2] = {
    [KIND_CONTEXT] = {"device context", "device contexts"},
    [KIND_PD] = {"protection domain", "protection domains"},
    [KIND_CHANNEL] = {"completion channel", "completion channels"},
    [KIND_CQ] = {"completion queue", "completion queues"},
    [KIND_SRQ] = {"shared receive queue", "shared receive queues"},
    [KIND_QP] = {"queue pair", "queue pairs"},
    [KIND_MR] = {"memory region", "memory regions"},
    [KIND_AH] = {"address handle", "address handles"},
    [KIND_TD] = {"thread domain", "thread domains"},
};

void records_lock(void)
{
    inside_enter();
    pthread_mutex_lock(&lock);
}

void records_unlock(void)
{
    pthread_mutex_unlock(&lock);
    inside_leave();
}

void records_forked(void)
{
    pthread_mutex_init(&lock, NULL);
    generation++;
    async_events_forked();
}

void *record_find(enum kind kind, const void *object, const void *caller)
{
    struct record *r = latest[kind];

    if (!r || r->object != object)
        HASH_FIND_PTR(table[kind], &object, r);
    latest[kind] = r;
    if (r && r->generation != generation && rule_is_on(RULE_FORK))
        finding_add(RULE_FORK, FINDING_AT(trace_of(caller, NULL)),
                    "a child process uses a %s that its parent made; objects stay with the process that makes them",
                    names[kind][0]);
    return r && r->generation == generation ? r : NULL;
}

static void drop(struct record *r)
{
    HASH_DEL(table[r->kind], r);
    latest[r->kind] = NULL;
    if (r->kind == KIND_QP) {
        HASH_DELETE(by_number, by_number, (struct qp_record *)r);
        latest_qp = NULL;
        request_remove_all(&((struct qp_record *)r)->sends);
        request_remove_all(&((struct qp_record *)r)->receives);
    }
    if (r->kind == KIND_MR) {
        HASH_DELETE(by_key, by_key, (struct mr_record *)r);
        last_mr = NULL;
        atomic_fetch_sub(&regions, 1);
    }
    if (r->kind == KIND_SRQ)
        request_remove_all(&((struct srq_record *)r)->queue);
    free(r);
}

void *record_add(enum kind kind, const void *object, size_t size, const struct trace *where)
{
    struct record *r, *old;

    if (!object)
        return NULL;
    HASH_FIND_PTR(table[kind], &object, old);
    if (old) /* of the parent, or of an object that another way destroyed */
        drop(old);
    r = calloc(1, size);
    if (!r)
        return NULL;
    r->object = object;
    r->kind = kind;
    r->generation = generation;
    r->where = where;
    HASH_ADD_PTR(table[kind], object, r);
    return r;
}

void record_destroyed(struct record *r, int rc, const struct trace *where)
{
    if (rc == 0) {
        drop(r);
    } else if (rc == EBUSY || rc == -EBUSY) {
        r->busy = true;
        r->where = where;
    }
}

void records_each(enum kind kind, void (*fn)(void *record, void *arg), void *arg)
{
    for (struct record *r = table[kind]; r; r = r->hh.next) {
        if (r->generation == generation)
            fn(r, arg);
    }
}

struct qp_record *record_add_qp(struct ibv_qp *qp, const struct trace *where)
{
    struct qp_record *q = qp ? record_of_qpn(qp->context, qp->qp_num) : NULL;

    if (q && q->qp != qp) /* the number is free again: another way destroyed that QP */
        drop(&q->r);
    q = record_add(KIND_QP, qp, sizeof(*q), where);
    if (!q)
        return NULL;
    q->qp = qp;
    q->number = (struct qp_number){qp->context, qp->qp_num};
    TAILQ_INIT(&q->sends);
    TAILQ_INIT(&q->receives);
    HASH_ADD(by_number, by_number, number, sizeof(q->number), q);
    return q;
}

bool qp_is_done(const struct qp_record *q)
{
    return q->failed || q->qp->state == IBV_QPS_ERR || q->qp->state == IBV_QPS_RESET;
}

struct qp_record *record_of_qpn(const struct ibv_context *context, uint32_t qpn)
{
    const struct qp_number number = {context, qpn};
    struct qp_record *q = latest_qp;

    if (!q || q->number.context != context || q->number.qpn != qpn)
        HASH_FIND(by_number, by_number, &number, sizeof(number), q);
    latest_qp = q;
    return q && q->r.generation == generation ? q : NULL;
}

bool regions_any(void)
{
    return atomic_load_explicit(&regions, memory_order_relaxed) > 0;
}

struct mr_record *record_add_mr(struct ibv_mr *mr, const struct trace *where)
{
    struct mr_record *r;

    if (!mr)
        return NULL;
    r = (struct mr_record *)record_of_lkey(mr->context, mr->lkey);
    if (r && r->r.object != mr) /* the key is free again: another way destroyed that region */
        drop(&r->r);
    r = record_add(KIND_MR, mr, sizeof(*r), where);
    if (!r)
        return NULL;
    r->key = (struct mr_key){mr->context, mr->lkey};
    r->rkey = mr->rkey;
    HASH_ADD(by_key, by_key, key, sizeof(r->key), r);
    atomic_fetch_add(&regions, 1);
    return r;
}

const struct mr_record *record_of_lkey(const struct ibv_context *context, uint32_t lkey)
{
    const struct mr_key key = {context, lkey};
    struct mr_record *r = last_mr;

    if (!r || r->key.context != context || r->key.lkey != lkey) {
        HASH_FIND(by_key, by_key, &key, sizeof(key), r);
        last_mr = r;
    }
    return r && r->r.generation == generation ? r : NULL;
}

/* Events that the program never acknowledged. */
static void end_events(void)
{
    const struct trace *where = NULL;
    unsigned n = async_events_open(NULL, &where);

    for (struct record *r = table[KIND_CQ]; r && rule_is_on(RULE_UNACKED); r = r->hh.next) {
        const struct cq_record *cq = (const struct cq_record *)r;

        if (r->generation == generation && cq->events < cq->acked)
            finding_add(RULE_UNACKED, FINDING_AT(cq->event_at),
                        "at the end of the process, %u events of a CQ were acknowledged (ibv_ack_cq_events), but only "
                        "%u were taken: the CQ could not be destroyed",
                        cq->acked, cq->events);
        else if (r->generation == generation && cq->events != cq->acked)
            finding_add(RULE_UNACKED, FINDING_AT(cq->event_at),
                        "at the end of the process, %u of the %u events of a CQ were never acknowledged "
                        "(ibv_ack_cq_events): the CQ could not be destroyed",
                        cq->events - cq->acked, cq->events);
    }
    if (n && rule_is_on(RULE_UNACKED))
        finding_add(RULE_UNACKED, FINDING_AT(where),
                    "at the end of the process, %u asynchronous event%s never acknowledged (ibv_ack_async_event)", n,
                    n == 1 ? " was" : "s were");
}

/* The objects of one kind that are left. One finding for all, because one mistake mostly leaves several. */
static void end(enum kind kind)
{
    const struct trace *where = NULL;
    unsigned n = 0;

    for (struct record *r = table[kind]; r; r = r->hh.next) {
        if (r->generation != generation)
            continue;
        if (r->busy && rule_is_on(RULE_BUSY))
            finding_add(RULE_BUSY, FINDING_AT(r->where),
                        "the %s was in use when it was to be destroyed (EBUSY), and the call was not repeated",
                        names[kind][0]);
        if (n++ == 0)
            where = r->where;
    }
    if (n && rule_is_on(RULE_LEFT))
        finding_add(RULE_LEFT, FINDING_AT(where), "at the end of the process, %u %s left", n,
                    n == 1 ? names[kind][0] : names[kind][1]);
}

void records_end(void)
{
    records_lock();
    for (enum kind kind = KIND_CONTEXT; kind < KINDS; kind++)
        end(kind);
    end_events();
    records_unlock();
}
