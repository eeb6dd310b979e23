// SPDX-License-Identifier: BSD-2-Clause
#include "src/check/requests/thread_domain.h"

#include "src/check/base/finding.h"

static __thread char here; /* its address names the thread */
static unsigned count;

void thread_domain_made(struct ibv_td *td, const struct trace *where)
{
    if (record_add(KIND_TD, td, sizeof(struct td_record), where))
        count++;
}

/* The objects of the thread domain go on without. */
static void forget_in_pd(void *record, void *arg)
{
    struct pd_record *pd = record;

    if (pd->td == arg)
        pd->td = NULL;
}

static void forget_in_qp(void *record, void *arg)
{
    struct qp_record *q = record;

    if (q->td == arg)
        q->td = NULL;
}

static void forget_in_cq(void *record, void *arg)
{
    struct cq_record *cq = record;

    if (cq->td == arg)
        cq->td = NULL;
}

void thread_domain_destroyed(const struct ibv_td *td, int rc, const struct trace *where)
{
    struct td_record *r = record_find(KIND_TD, td, where ? where->at[0] : NULL);

    if (!r)
        return;
    if (rc == 0) {
        count--;
        records_each(KIND_PD, forget_in_pd, r);
        records_each(KIND_QP, forget_in_qp, r);
        records_each(KIND_CQ, forget_in_cq, r);
    }
    record_destroyed(&r->r, rc, where);
}

void thread_domain_has_parent(struct ibv_pd *pd, const struct ibv_td *td, const struct trace *where)
{
    struct pd_record *r = record_add(KIND_PD, pd, sizeof(*r), where);

    if (r && td)
        r->td = record_find(KIND_TD, td, NULL);
}

struct td_record *thread_domain_of(const struct ibv_pd *pd)
{
    const struct pd_record *r = count ? record_find(KIND_PD, pd, NULL) : NULL;

    return r ? r->td : NULL;
}

bool thread_domain_any(void)
{
    return count > 0;
}

void thread_domain_enter(struct td_record *td, const struct trace *where)
{
    if (!td)
        return;
    if (td->inside && td->thread != &here && rule_is_on(RULE_THREAD))
        finding_add(
            RULE_THREAD, &(const struct finding_place){.where = where, .other = td->where, .whose = "the other thread"},
            "two threads use objects of one thread domain (ibv_alloc_td) at the same time: the library may have "
            "no locks there");
    td->inside++;
    td->thread = &here;
    td->where = where;
}

void thread_domain_leave(struct td_record *td)
{
    if (td)
        td->inside--;
}
