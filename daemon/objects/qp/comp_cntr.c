// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/objects/qp/comp_cntr.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "daemon/device/device.h"
#include "daemon/objects/qp/qp.h"
#include "daemon/session/client_wakeup.h"
#include "daemon/session/control_msg.h"
#include "daemon/session/session.h"

/* Release: pairs with the client's acquire load. A client that sees a value also sees the data of the requests that it
 * counts. */
static void show(const struct client_comp_cntr *c)
{
    struct pm_comp_cntr *shown = &c->session->page->comp_cntr[c->handle - 1];

    atomic_store_explicit(&shown->failed, c->cntr.failed, memory_order_release);
    atomic_store_explicit(&shown->done, c->cntr.done, memory_order_release);
}

/* Enters the counter under the next free number, so that a freed number is reused as late as possible. */
static int enter(struct client_comp_cntr *c)
{
    struct session *s = c->session;

    if (s->comp_cntrs.count >= PM_COMP_CNTRS)
        return -ENOSPC;
    do
        c->handle = s->next_comp_cntr++ % PM_COMP_CNTRS + 1;
    while (handles_get(&s->comp_cntrs, c->handle));
    return handles_add_at(&s->comp_cntrs, c, c->handle);
}

int comp_cntr_create(struct session *s, const void *rq, struct control_reply *rp)
{
    const struct pm_create_comp_cntr_req *r = rq;
    struct client_comp_cntr *c;
    struct pm_handle *rep;

    if (r->type != PM_COMP_CNTR_REQUESTS && r->type != PM_COMP_CNTR_BYTES)
        return control_fail(rp, -EOPNOTSUPP, "completion counters have type 0 (requests) or 1 (bytes), not %u",
                            r->type);
    c = calloc(1, sizeof(*c));
    if (!c)
        return control_fail(rp, -ENOMEM, "the daemon is out of memory");
    c->session = s;
    comp_cntr_init(&c->cntr, r->type == PM_COMP_CNTR_BYTES);
    int rc = enter(c);
    if (rc) {
        free(c);
        return rc == -ENOSPC ? control_fail(rp, -ENOMEM, "no more than %u completion counters", PM_COMP_CNTRS)
                             : control_fail(rp, rc, "the daemon is out of memory");
    }
    show(c);
    rep = control_payload(rp, sizeof(*rep));
    rep->handle = c->handle;
    return 0;
}

void comp_cntr_free(struct client_comp_cntr *c)
{
    comp_cntr_fini(&c->cntr);
    handles_remove(&c->session->comp_cntrs, c->handle);
    free(c);
}

int comp_cntr_destroy(struct session *s, const void *rq, struct control_reply *rp)
{
    const struct pm_handle *h = rq;
    struct client_comp_cntr *c = handles_get(&s->comp_cntrs, h->handle);

    if (!c)
        return control_fail(rp, -EINVAL, "no completion counter %u", h->handle);
    if (c->cntr.users)
        return control_fail(rp, -EBUSY, "completion counter %u is attached to queue pairs: destroy them first",
                            h->handle);
    comp_cntr_free(c);
    return 0;
}

int comp_cntr_modify(struct session *s, const void *rq, struct control_reply *rp)
{
    const struct pm_modify_comp_cntr_req *r = rq;
    struct client_comp_cntr *c = handles_get(&s->comp_cntrs, r->comp_cntr);

    if (!c)
        return control_fail(rp, -EINVAL, "no completion counter %u", r->comp_cntr);
    if (r->entry > 1 || r->add > 1)
        return control_fail(rp, -EINVAL, "entry %u and operation %u of a completion counter must be 0 or 1", r->entry,
                            r->add);
    uint64_t *value = r->entry ? &c->cntr.failed : &c->cntr.done;
    *value = (r->add ? *value : 0) + r->value;
    show(c);
    client_wakeup_published(s);
    return 0;
}

int comp_cntr_attach_qp(struct session *s, const void *rq, struct control_reply *rp)
{
    const struct pm_attach_comp_cntr_req *r = rq;
    struct client_comp_cntr *c = handles_get(&s->comp_cntrs, r->comp_cntr);
    struct client_qp *q = client_qp_find(s, r->qpn);

    if (!c)
        return control_fail(rp, -EINVAL, "no completion counter %u", r->comp_cntr);
    if (!q)
        return control_fail(rp, -EINVAL, "no queue pair 0x%06x", r->qpn);
    if (!q->session)
        return control_fail(rp, -EOPNOTSUPP,
                            "an XRC target belongs to no process, so completion counters can't count "
                            "its requests");
    if (r->ops & ~CNTR_ALL)
        return control_fail(rp, -EOPNOTSUPP, "requests 0x%x can't be counted: the mask is 0x%x", r->ops, CNTR_ALL);
    if (r->ops == 0)
        return control_fail(rp, -EINVAL, "the mask of requests to count is 0");
    int rc = comp_cntr_attach(q->qp, &c->cntr, r->ops);
    if (rc == -EBUSY)
        return control_fail(rp, rc, "queue pair 0x%06x: another completion counter counts some of the requests 0x%x",
                            r->qpn, r->ops);
    if (rc)
        return control_fail(rp, rc, "queue pair 0x%06x is neither in RESET nor in INIT", r->qpn);
    for (unsigned op = 0; op < CNTR_OPS; op++)
        if (r->ops & 1u << op)
            q->comp_cntr[op] = c->handle;
    return 0;
}

void comp_cntrs_publish(struct device *d)
{
    struct comp_cntr *cntr;

    while ((cntr = engine_pop_cntr(d->engine)) != NULL) {
        const struct client_comp_cntr *c = list_entry(cntr, struct client_comp_cntr, cntr);

        mem_backend_settle(&d->memory, c->session->cred.pid);
        show(c);
        client_wakeup_published(c->session);
    }
}
