// SPDX-License-Identifier: BSD-2-Clause
#include "src/check/verbs/free_calls.h"

#include <inttypes.h>
#include <malloc.h>

#include "src/check/base/finding.h"
#include "src/check/base/inside.h"
#include "src/check/base/next.h"
#include "src/check/base/trace.h"
#include "src/check/objects/lent.h"
#include "src/check/objects/records.h"
#include "src/check/verbs/export.h"

LIBC_FIND(free)
LIBC_FIND(realloc)
LIBC_FIND(munmap)
LIBC_FIND(mprotect)

#define MAPPED                                                                                                         \
    (128u << 10) /* the C library maps memory of this size and more on its own, if the program does not change it */

/* Memory that is given back. */
struct gone {
    uint64_t from, to;
    const char *how;
    const void *caller;
    const struct trace *where; /* NULL: not looked for yet */
};

/* Without a region, the device can't touch the memory any more. */
static bool is_registered(const struct ibv_context *context, const struct ibv_sge *s)
{
    const struct mr_record *mr = record_of_lkey(context, s->lkey);

    return mr && s->addr >= mr->memory && s->addr - mr->memory < mr->length;
}

/* needs: the device may still use it for the request. */
static bool has(const struct request *r, const struct ibv_context *context, const struct gone *g, bool *needs)
{
    bool found = false;

    *needs = false;
    for (unsigned i = 0; i < r->num_sge; i++) {
        const struct ibv_sge *s = &r->sge[i];

        if (!s->addr || !s->length || s->addr >= g->to || s->addr + s->length <= g->from)
            continue;
        found = true;
        *needs |= is_registered(context, s);
    }
    return found;
}

static void look(const struct request_queue *queue, const struct ibv_context *context, const struct qp_record *q,
                 struct gone *g)
{
    struct request *r;
    bool needs;

    TAILQ_FOREACH (r, queue, link) {
        /* A datagram without a completion is never sent again, so the program may know otherwise that it was sent. */
        bool may_be_sent = q && q->qp->qp_type == IBV_QPT_UD && r->opcode != OPCODE_RECV && !r->signaled;

        if (!has(r, context, g, &needs))
            continue;
        request_forget_memory(r); /* soon somebody else has it */
        if (!needs || may_be_sent || (q && qp_is_done(q)))
            continue;
        if (!g->where)
            g->where = trace_of(g->caller, NULL);
        if (rule_is_on(RULE_FREED))
            finding_add(RULE_FREED,
                        &(const struct finding_place){.where = g->where, .other = r->where, .whose = "the request"},
                        "%s of memory that the %s with wr_id %" PRIu64 " needs, which has no completion yet", g->how,
                        request_kind(r->opcode), r->wr_id);
    }
}

static void look_in_qp(void *record, void *arg)
{
    const struct qp_record *q = record;

    look(&q->sends, q->qp->context, q, arg);
    look(&q->receives, q->qp->context, q, arg);
}

static void look_in_srq(void *record, void *arg)
{
    const struct srq_record *s = record;
    const struct ibv_srq *srq = s->r.object;

    look(&s->queue, srq->context, NULL, arg);
}

static void give_back(const char *how, const void *memory, size_t length, const void *caller)
{
    struct gone g = {(uintptr_t)memory, (uintptr_t)memory + length, how, caller, NULL};

    records_lock();
    records_each(KIND_QP, look_in_qp, &g);
    records_each(KIND_SRQ, look_in_srq, &g);
    records_unlock();
}

/* A region of memory that is not there. The library still takes requests with it, but the checker can't look. */
static void forget_memory(void *record, void *arg)
{
    struct mr_record *mr = record;
    const struct gone *g = arg;

    if (mr->memory && mr->memory < g->to && mr->memory + mr->length > g->from)
        mr->memory = 0;
}

static void unmapped(const void *memory, size_t length)
{
    struct gone g = {(uintptr_t)memory, (uintptr_t)memory + length, NULL, NULL, NULL};

    records_lock();
    records_each(KIND_MR, forget_memory, &g);
    records_unlock();
}

/* Mostly no: then the call costs little. */
static bool may_be_needed(void *memory, size_t *length)
{
    if (!memory || !lent_any() || inside_is())
        return false;
    *length = malloc_usable_size(memory);
    return lent_may_begin_in((uintptr_t)memory, (uintptr_t)memory + *length);
}

/* The C library unmaps such memory when it is freed or moved, not through the function below. */
static void may_unmap(void *memory)
{
    size_t length = memory && regions_any() && !inside_is() ? malloc_usable_size(memory) : 0;

    if (length >= MAPPED)
        unmapped(memory, length);
}

EXPORT void free(void *memory)
{
    size_t length;

    if (may_be_needed(memory, &length))
        give_back("free", memory, length, __builtin_return_address(0));
    may_unmap(memory);
    LIBC_NEXT(free, memory);
}

/* Only memory that moves is given back. It is compared before, because another thread may then get it. */
EXPORT void *realloc(void *memory, size_t size)
{
    size_t length;

    if (may_be_needed(memory, &length) && size > length)
        give_back("realloc", memory, length, __builtin_return_address(0));
    may_unmap(memory);
    return LIBC_NEXT(realloc, memory, size);
}

EXPORT int munmap(void *memory, size_t length)
{
    if (lent_any() && !inside_is())
        give_back("munmap", memory, length, __builtin_return_address(0));
    if (regions_any() && !inside_is())
        unmapped(memory, length);
    return LIBC_NEXT(munmap, memory, length);
}

EXPORT int mprotect(void *memory, size_t length, int rights)
{
    if (!(rights & PROT_READ) && regions_any() && !inside_is())
        unmapped(memory, length);
    return LIBC_NEXT(mprotect, memory, length, rights);
}
