// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/objects/qp/xrc_target.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/device/device.h"
#include "daemon/objects/qp/qp.h"
#include "daemon/objects/qp/qp_control.h"
#include "daemon/objects/xrcd.h"
#include "daemon/session/control_msg.h"
#include "daemon/session/session.h"

int target_open_qp(struct session *s, const void *rq, struct control_reply *rp)
{
    const struct pm_open_qp_req *r = rq;
    struct xrcd_open *via = handles_get(&s->xrcds, r->xrcd);
    struct client_qp *q = handles_get(&s->device->targets, r->qpn);
    struct target_open *o;
    struct pm_handle *rep;

    if (!via)
        return control_fail(rp, -EINVAL, "no XRC domain %u", r->xrcd);
    if (!q || q->xrcd != via->xrcd)
        return control_fail(rp, -EINVAL, "no XRC target 0x%06x in domain %u", r->qpn, r->xrcd);
    o = malloc(sizeof(*o));
    if (!o)
        return control_fail(rp, -ENOMEM, "the daemon is out of memory");
    target_open_add(o, s, q, via);
    rep = control_payload(rp, sizeof(*rep));
    rep->handle = q->qpn;
    return 0;
}

/* Ends a domain that no session has open any more, with its remaining targets. */
static void end(struct xrcd *x)
{
    struct client_qp *q;

    while ((q = TAILQ_FIRST(&x->targets)) != NULL)
        client_qp_free(q);
    xrcd_free(x);
}

void xrcd_open_free(struct xrcd_open *o)
{
    struct xrcd *x = o->xrcd;

    handles_remove(&o->session->xrcds, o->handle);
    quota_release(&o->session->owner, QUOTA_XRCDS);
    free(o);
    if (--x->opens == 0)
        end(x);
}

void xrcd_open_free_step(struct xrcd_open *o)
{
    struct xrcd *x = o->xrcd;
    struct client_qp *q = TAILQ_FIRST(&x->targets);

    if (x->opens > 1 || !q) {
        xrcd_open_free(o);
        return;
    }
    x->ending = true;
    client_qp_free(q);
}

int xrcd_close(struct session *s, const void *rq, struct control_reply *rp)
{
    const struct pm_handle *h = rq;
    struct xrcd_open *o = handles_get(&s->xrcds, h->handle);

    if (!o)
        return control_fail(rp, -EINVAL, "no XRC domain %u", h->handle);
    if (o->users)
        return control_fail(rp, -EBUSY, "XRC domain %u is used by %u objects of this process", h->handle, o->users);
    xrcd_open_free(o);
    return 0;
}
