// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/monitor/ping.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/monitor/path_check.h"
#include "daemon/monitor/peer_identity.h"
#include "daemon/session/control_msg.h"
#include "wire/pkt.h"
#include "wire/pumice/probe.h"

/* Addresses whose probes are counted. A new address replaces the oldest. */
#define HEARD_MAX 64u
#define V4_HEADERS (20 + 8) /* IP and UDP headers */
#define V6_HEADERS (40 + 8)
#define ROCE_HEADERS (12 + 8 + 4) /* BTH, DETH and ICRC of a probe */

/* A probe that was sent. */
struct outgoing {
    uint64_t id; /* 0: the slot is free */
    uint64_t sent; /* time, ns */
    uint32_t size;
    uint8_t gid[16];
    struct pm_check_rep rep; /* the result so far */
};
struct pings {
    struct outgoing out[PM_CHECKS_MAX]; /* a ring */
    uint32_t next;
    /* The number of probes that came from one address. */
    struct heard {
        uint8_t gid[16];
        uint64_t count; /* 0: the slot is free */
    } heard[HEARD_MAX];
    uint32_t heard_next;
};

static struct pings *pings_of(struct device *d)
{
    if (!d->pings)
        d->pings = calloc(1, sizeof(*d->pings));
    return d->pings;
}

void ping_fini(struct device *d)
{
    free(d->pings);
    d->pings = NULL;
}

static struct outgoing *find(struct pings *p, uint64_t id)
{
    for (unsigned i = 0; p && id && i < PM_CHECKS_MAX; i++) {
        if (p->out[i].id == id)
            return &p->out[i];
    }
    return NULL;
}

static struct heard *find_heard(struct pings *p, const uint8_t gid[16])
{
    for (unsigned i = 0; p && i < HEARD_MAX; i++) {
        if (p->heard[i].count && memcmp(p->heard[i].gid, gid, sizeof(p->heard[i].gid)) == 0)
            return &p->heard[i];
    }
    return NULL;
}

/* --- results ----------------------------------------------------------------------------------- */

static void hear(struct pings *p, const uint8_t gid[16])
{
    struct heard *h = find_heard(p, gid);

    if (!h) {
        h = &p->heard[p->heard_next++ % HEARD_MAX];
        memcpy(h->gid, gid, sizeof(h->gid));
        h->count = 0;
    }
    h->count++;
}

/* The first answer counts. It replaces any error reported before. */
static void answered(struct pings *p, const struct check *answer, uint64_t now)
{
    struct outgoing *o = find(p, answer->token);

    if (!o || o->size != answer->size || o->rep.state == PM_CHECK_ANSWERED)
        return;
    o->rep.state = PM_CHECK_ANSWERED;
    o->rep.rtt_ns = now - o->sent;
    memcpy(o->rep.from, answer->peer, sizeof(o->rep.from));
}

void ping_take(struct device *d, uint64_t now)
{
    struct check c;

    while (engine_pop_check(d->engine, &c)) {
        if (c.answer && (path_check_answer(d, &c, now) || peer_identity_answer(d, &c, now)))
            continue;
        if (c.answer && d->pings)
            answered(d->pings, &c, now);
        else if (!c.answer && pings_of(d))
            hear(d->pings, c.peer);
    }
}

void ping_trouble(void *device, const union addr *to, int err, uint32_t mtu, const union addr *offender)
{
    struct device *d = device;
    uint32_t headers = ROCE_HEADERS + (to->sa.sa_family == AF_INET6 ? V6_HEADERS : V4_HEADERS);
    uint8_t gid[16];

    addr_to_gid(to, gid);
    path_check_trouble(d, gid, err, mtu);
    if (!d->pings)
        return;
    for (unsigned i = 0; i < PM_CHECKS_MAX; i++) {
        struct outgoing *o = &d->pings->out[i];

        if (!o->id || o->rep.state != PM_CHECK_WAITING || memcmp(o->gid, gid, sizeof(gid)) != 0)
            continue;
        if (err == EMSGSIZE && o->size <= (mtu > headers ? mtu - headers : PROBE_LEN))
            continue; /* this probe fits */
        o->rep.state = err == EMSGSIZE ? PM_CHECK_TOO_LONG : PM_CHECK_ERROR;
        o->rep.error = err == EMSGSIZE ? 0 : (uint32_t)err;
        o->rep.mtu = mtu;
        o->rep.by_icmp = offender != NULL;
        if (offender && offender->sa.sa_family)
            addr_to_gid(offender, o->rep.from);
    }
}

/* --- requests ---------------------------------------------------------------------------------- */

static int send_one(struct device *d, const struct pm_check_req *r, struct control_reply *rp)
{
    struct av av = {.hop_limit = 64};

    int from = gid_table_source(&d->gids, r->gid);
    if (from < 0)
        return control_fail(rp, -EINVAL, "device %s cannot reach an address of this family", d->name);
    struct outgoing *o = &d->pings->out[d->pings->next % PM_CHECKS_MAX];
    *o = (struct outgoing){.id = path_check_token(), .sent = clock_ns(), .size = r->size};
    memcpy(o->gid, r->gid, sizeof(o->gid));
    memcpy(av.dgid, r->gid, sizeof(av.dgid));
    av.sgid_index = (uint8_t)from;
    o->rep.id = o->id;
    int rc = engine_check(d->engine, &av, r->size, d->pings->next, o->id);
    if (rc) {
        o->id = 0;
        return control_fail(rp, rc, "cannot send a probe of %u bytes: %s", r->size,
                            rc == -EAGAIN ? "too many probes are waiting"
                                          : "expected 24 to 4096 bytes and no multicast group");
    }
    d->pings->next++;
    *(struct pm_check_rep *)control_payload(rp, sizeof(o->rep)) = o->rep;
    return 0;
}

int ping_request(struct device *d, const struct pm_check_req *r, struct control_reply *rp)
{
    struct pm_check_rep *rep;

    if (!pings_of(d))
        return control_fail(rp, -ENOMEM, "out of memory");
    if (r->size)
        return send_one(d, r, rp);
    const struct outgoing *o = find(d->pings, r->id);
    if (r->id && !o)
        return control_fail(rp, -ENOENT, "the daemon no longer knows this probe");
    rep = control_payload(rp, sizeof(*rep));
    if (o)
        *rep = o->rep;
    const struct heard *h = find_heard(d->pings, r->gid);
    rep->heard = h ? h->count : 0;
    return 0;
}
