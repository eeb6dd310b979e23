// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/objects/cq.h"

#include "src/verbs/objects/srq.h"

void vb_cq_lock_pair(struct vb_cq *a, struct vb_cq *b)
{
    struct vb_cq *first = a < b ? a : b, *second = a < b ? b : a;
    if (first)
        vb_cq_lock(first);
    if (second && second != first)
        vb_cq_lock(second);
}

void vb_cq_unlock_pair(struct vb_cq *a, struct vb_cq *b)
{
    if (a)
        vb_cq_unlock(a);
    if (b && a != b)
        vb_cq_unlock(b);
}

static void link_in(struct vb_cq_link **list, struct vb_cq_link *l, struct vb_qp *qp)
{
    l->qp = qp;
    l->next = *list;
    l->pprev = list;
    if (l->next)
        l->next->pprev = &l->next;
    *list = l;
}

static void link_out(struct vb_cq_link *l)
{
    *l->pprev = l->next;
    if (l->next)
        l->next->pprev = l->pprev;
}

void vb_cq_attach(struct vb_qp *qp)
{
    if (qp->qp.send_cq)
        link_in(&vb_cq(qp->qp.send_cq)->senders, &qp->send_link, qp);
    if (qp->qp.recv_cq)
        link_in(&vb_cq(qp->qp.recv_cq)->receivers, &qp->recv_link, qp);
}

void vb_cq_detach(struct vb_qp *qp)
{
    if (qp->qp.send_cq)
        link_out(&qp->send_link);
    if (qp->qp.recv_cq)
        link_out(&qp->recv_link);
}

static void purge(struct vb_cq *cq, const struct ring_match *m)
{
    cq->consumer = ring_purge(cq->entries, cq->mask, cq->consumer, m);
    ring_consume(cq->page, cq->consumer);
}

/* The library removes the completion before it was polled. So it makes the WQE index of the request free. */
static void give_back(void *srq, const struct pm_cqe *e)
{
    if (e->srq)
        vb_srq_retire(srq, e->slot, NULL, 0);
}

/* The SRQ stays locked until the CQ entries are free as well: see retire() in datapath/poll.c. */
void vb_cq_purge(struct vb_qp *qp)
{
    struct vb_srq *srq = qp->qp.srq ? vb_srq(qp->qp.srq) : NULL;
    struct ring_match m = {.qpn = qp->qp.qp_num, .gone = srq ? give_back : NULL, .arg = srq};
    if (srq)
        pthread_mutex_lock(&srq->lock);
    if (qp->qp.send_cq)
        purge(vb_cq(qp->qp.send_cq), &m);
    if (qp->qp.recv_cq && qp->qp.recv_cq != qp->qp.send_cq)
        purge(vb_cq(qp->qp.recv_cq), &m);
    if (srq)
        pthread_mutex_unlock(&srq->lock);
}

void vb_cq_purge_srq(struct vb_cq *cq, uint32_t srq)
{
    struct ring_match m = {.srq = srq};
    purge(cq, &m);
}
