// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/objects/qp/qp.h"

#include <infiniband/verbs.h>
#include <stdlib.h>

#include "daemon/device/device.h"
#include "daemon/objects/xrcd.h"
#include "daemon/session/session.h"

/* clang-format off */
static const struct client_qp_type types[] = {
    {"RC",       IBV_QPT_RC,       true,  true},
    {"UC",       IBV_QPT_UC,       true,  true},
    {"UD",       IBV_QPT_UD,       true,  true},
    {"XRC_SEND", IBV_QPT_XRC_SEND, true,  false},
    {"XRC_RECV", IBV_QPT_XRC_RECV, false, false}, /* it has no PD either */
};
/* clang-format on */

const struct client_qp_type *client_qp_type(uint32_t number)
{
    for (unsigned i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (types[i].number == number)
            return &types[i];
    }
    return NULL;
}

const char *client_qp_type_name(const struct client_qp *q)
{
    return client_qp_type(q->type)->name;
}

struct client_qp *client_qp_find(const struct session *s, uint32_t qpn)
{
    struct client_qp *q = handles_get(&s->qps, qpn);
    const struct target_open *o = q ? NULL : target_find(s, qpn);

    return o ? o->client_qp : q;
}

void client_qp_event(struct client_qp *q, uint32_t type)
{
    const struct target_open *o;

    if (q->session)
        session_event(q->session, type, q->qpn);
    TAILQ_FOREACH (o, &q->openers, client_qp_link)
        session_event(o->session, type, q->qpn);
}

void client_qp_mark_failed(struct client_qp *q)
{
    if (q->in_failed)
        return;
    q->in_failed = true;
    TAILQ_INSERT_TAIL(&q->device->failed, q, failed_link);
}

/* --- handles of XRC targets -------------------------------------------------------------------- */

void target_open_add(struct target_open *o, struct session *s, struct client_qp *q, struct xrcd_open *via)
{
    *o = (struct target_open){.session = s, .client_qp = q, .via = via};
    via->users++;
    s->num_targets++;
    TAILQ_INSERT_TAIL(&q->openers, o, client_qp_link);
    TAILQ_INSERT_TAIL(&s->targets, o, session_link);
}

void target_open_free(struct target_open *o)
{
    o->via->users--;
    o->session->num_targets--;
    TAILQ_REMOVE(&o->client_qp->openers, o, client_qp_link);
    TAILQ_REMOVE(&o->session->targets, o, session_link);
    free(o);
}

struct target_open *target_find(const struct session *s, uint32_t qpn)
{
    const struct client_qp *q = handles_get(&s->device->targets, qpn);
    struct target_open *o;

    if (!q)
        return NULL;
    TAILQ_FOREACH (o, &q->openers, client_qp_link) {
        if (o->session == s)
            return o;
    }
    return NULL;
}

unsigned target_opens(const struct session *s, const struct client_qp *q)
{
    const struct target_open *o;
    unsigned n = 0;

    TAILQ_FOREACH (o, &q->openers, client_qp_link)
        n += o->session == s;
    return n;
}
