// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/monitor/capture.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/net/address.h"
#include "daemon/objects/qp/qp.h"
#include "daemon/session/control_msg.h"
#include "daemon/session/session.h"
#include "wire/bth.h"
#include "wire/gid.h"
#include "wire/pkt.h"

_Static_assert(sizeof(struct pm_capture_page) <= PM_CAPTURE_RING, "the ring follows the page");

/* --- creating and destroying ------------------------------------------------------------------- */

static int check(const struct pm_capture_req *rq, struct control_reply *rp)
{
    if ((rq->flags & (PM_CAPTURE_OUT | PM_CAPTURE_IN)) == 0)
        return control_fail(rp, -EINVAL, "a capture must select at least one direction");
    if (rq->ring_bytes < PM_CAPTURE_RING_MIN || rq->ring_bytes > PM_CAPTURE_RING_MAX ||
        (rq->ring_bytes & (rq->ring_bytes - 1)) != 0)
        return control_fail(rp, -EINVAL, "a capture's buffer must be a power of two from %u KiB to %u MiB",
                            PM_CAPTURE_RING_MIN >> 10, PM_CAPTURE_RING_MAX >> 20);
    return 0;
}

struct capture *capture_create(struct device *d, const struct pm_capture_req *rq, struct control_reply *rp)
{
    struct capture *c;
    int rc = check(rq, rp);

    if (rc) {
        rp->status = rc;
        return NULL;
    }
    c = calloc(1, sizeof(*c));
    rc = c ? segment_create(&c->segment, NULL, "pumice-capture", PM_CAPTURE_RING + rq->ring_bytes, NULL) : -ENOMEM;
    if (rc) {
        free(c);
        rp->status = control_fail(rp, rc, "the daemon cannot allocate the capture's buffer: %s", strerror(-rc));
        return NULL;
    }
    segment_guard(&c->segment, &c->lost);
    c->device = d;
    c->filter = *rq;
    c->page = c->segment.p;
    c->ring = (uint8_t *)c->segment.p + PM_CAPTURE_RING;
    memset(c->ring, 0, rq->ring_bytes); /* so that the device's loop takes no page faults */
    control_attach(rp, segment_take_fd(&c->segment));
    return c;
}

void capture_destroy(struct capture *c)
{
    segment_destroy(&c->segment);
    free(c);
}

void capture_attach(struct capture *c)
{
    c->next = c->device->captures;
    c->device->captures = c;
}

void capture_detach(struct capture *c)
{
    struct capture **at = &c->device->captures;

    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
}

/* --- calls from the main thread ---------------------------------------------------------------- */

static struct capture *capture_of(struct mailbox_call *call, size_t at)
{
    return (struct capture *)(void *)((char *)call - at);
}

static void run_begin(struct mailbox_call *call)
{
    capture_attach(capture_of(call, offsetof(struct capture, begin)));
}

static void keep(struct mailbox_call *call)
{
    (void)call; /* it is a part of the capture, which capture_end destroys later */
}

static void run_end(struct mailbox_call *call)
{
    capture_detach(capture_of(call, offsetof(struct capture, end)));
}

static void drop_end(struct mailbox_call *call)
{
    capture_destroy(capture_of(call, offsetof(struct capture, end)));
}

bool capture_begin(struct capture *c)
{
    c->begin = (struct mailbox_call){.run = run_begin, .drop = keep};
    if (device_do(c->device, &c->begin) != MAILBOX_LATE)
        return true;
    capture_destroy(c);
    return false;
}

void capture_end(struct capture *c)
{
    c->end = (struct mailbox_call){.run = run_end, .drop = drop_end};
    switch (device_do(c->device, &c->end)) {
    case MAILBOX_DONE:
        capture_destroy(c);
        break;
    case MAILBOX_LATE:
        device_post(c->device, &c->end);
        break;
    case MAILBOX_GIVEN_UP:
        break; /* drop_end destroys it */
    }
}

/* --- the ring ---------------------------------------------------------------------------------- */

static bool wanted(const struct pm_capture_req *f, const struct pm_capture_record *r, const uint8_t *p)
{
    const uint64_t *o = f->opcodes;

    if (f->qpn && f->qpn != r->qpn && f->qpn != bth_dest_qpn(p))
        return false;
    if (f->has_peer && memcmp(f->peer, r->src, 16) != 0 && memcmp(f->peer, r->dst, 16) != 0)
        return false;
    return (o[0] | o[1] | o[2] | o[3]) == 0 || (o[bth_opcode(p) / 64] >> bth_opcode(p) % 64 & 1);
}

/* Reserves room for a record of `size` bytes. NULL: there is no room. Skips the end of the ring if it is too short
 * for the record. */
static uint8_t *claim(struct capture *c, uint32_t size)
{
    uint64_t ring = c->filter.ring_bytes;
    /* Acquire: pairs with the client's release. So the client has read the bytes that are overwritten now. */
    uint64_t used = c->head - atomic_load_explicit(&c->page->tail, memory_order_acquire);
    uint64_t at = c->head & (ring - 1), rest = ring - at, skip = rest < size ? rest : 0;

    if (used > ring || ring - used < skip + size)
        return NULL; /* If a client wrote an impossible tail, it gets no packets. */
    if (skip) {
        struct pm_capture_record r = {.size = (uint32_t)skip, .flags = PM_RECORD_SKIP};

        /* Only size and flags are written: 8 bytes are always free. */
        memcpy(c->ring + at, &r, 8);
        c->head += skip;
        at = 0;
    }
    c->head += size;
    return c->ring + at;
}

static void put(struct capture *c, const struct pm_capture_record *record, const uint8_t *p)
{
    struct pm_capture_record r = *record;
    uint32_t snap = c->filter.snaplen;

    if (!wanted(&c->filter, &r, p))
        return;
    r.len = snap && snap < r.orig_len ? snap : r.orig_len;
    r.size = (uint32_t)((sizeof(r) + r.len + 7) & ~7u);
    atomic_store_explicit(&c->page->packets, ++c->packets, memory_order_relaxed);
    uint8_t *to = claim(c, r.size);
    if (!to) {
        atomic_store_explicit(&c->page->dropped, ++c->dropped, memory_order_relaxed);
        return;
    }
    memcpy(to, &r, sizeof(r));
    memcpy(to + sizeof(r), p, r.len);
    /* Release: pairs with the client's acquire. So a client that sees the new head also sees the records. */
    atomic_store_explicit(&c->page->head, c->head, memory_order_release);
}

/* --- the records ------------------------------------------------------------------------------- */

static void name_owner(struct device *d, struct pm_capture_record *r)
{
    struct qp *qp = r->qpn ? qp_find(d->engine, r->qpn) : NULL;
    const struct client_qp *q = qp ? qp_owner(qp) : NULL;

    if (!q || !q->session)
        return;
    r->pid = (uint32_t)q->session->cred.pid;
    memcpy(r->comm, q->session->comm, sizeof(r->comm));
}

/* Finds the address that a packet really goes to. A device of one family maps multicast groups of the other family to
 * addresses of its own, and the ICRC covers these. */
static void name_destination(const union addr *own, const uint8_t dgid[16], uint8_t out[16])
{
    union addr to;

    if (gid_is_multicast(dgid) && gid_to_addr(dgid, own, &to))
        addr_to_gid(&to, out);
    else
        memcpy(out, dgid, 16);
}

static void describe_sent(struct device *d, const struct tx_pkt *pkt, bool ce, struct pm_capture_record *r)
{
    const struct gid_entry *from = &d->gids.entry[pkt->av->sgid_index];

    memset(r, 0, sizeof(*r));
    r->flags = PM_RECORD_OUT;
    if (pkt->retransmit)
        r->flags |= PM_RECORD_RETRANSMIT;
    if (pkt->has_wr)
        r->flags |= PM_RECORD_WR;
    r->wr_id = pkt->wr_id;
    r->orig_len = pkt->len;
    r->time = clock_ns();
    memcpy(r->src, from->gid, sizeof(r->src));
    name_destination(&from->addr, pkt->av->dgid, r->dst);
    r->src_port = ROCE_PORT;
    r->tos = udp_traffic_class(pkt, d->udp.cnp_dscp);
    if (ce)
        r->tos |= UDP_ECN_CE;
    else if (d->settings->ecn)
        r->tos = (uint8_t)((r->tos & ~UDP_ECN) | UDP_ECN_ECT);
    r->qpn = pkt->src_qpn;
    name_owner(d, r);
}

void capture_made(struct device *d, const struct tx_batch *b, unsigned from)
{
    bool before = false;

    for (const struct capture *c = d->captures; c; c = c->next)
        before |= (c->filter.flags & PM_CAPTURE_BEFORE) != 0;
    for (unsigned i = from; before && i < b->n; i++) {
        const struct tx_pkt *pkt = &b->pkt[i];
        uint32_t direction = PM_CAPTURE_OUT | (device_keeps_inside(d, pkt->av->dgid) ? PM_CAPTURE_IN : 0);
        struct pm_capture_record r;

        describe_sent(d, pkt, false, &r);
        r.flags |=
            PM_RECORD_NO_ICRC | PM_RECORD_BEFORE | (device_keeps_inside(d, pkt->av->dgid) ? PM_RECORD_INSIDE : 0);
        for (struct capture *c = d->captures; c; c = c->next)
            if (c->filter.flags & PM_CAPTURE_BEFORE && c->filter.flags & direction)
                put(c, &r, b->buf + pkt->off);
    }
}

void capture_sent(struct device *d, const struct tx_pkt *pkt, unsigned n, const uint8_t *data, bool ce, uint32_t faults)
{
    for (unsigned i = 0; i < n; i++) {
        struct pm_capture_record r;

        describe_sent(d, &pkt[i], ce, &r);
        r.flags |= faults;
        r.ip_id = (uint16_t)i; /* the value that udp_add uses */
        for (struct capture *c = d->captures; c; c = c->next)
            if ((c->filter.flags & (PM_CAPTURE_BEFORE | PM_CAPTURE_OUT)) == PM_CAPTURE_OUT)
                put(c, &r, data);
        data += pkt[i].len;
    }
}

void capture_inside(struct device *d, const struct tx_pkt *pkt, const uint8_t *data, bool ce, uint32_t faults)
{
    bool stays = device_keeps_inside(d, pkt->av->dgid); /* otherwise capture_sent has already recorded it as sent */
    struct pm_capture_record r;

    describe_sent(d, pkt, ce, &r);
    r.flags |= PM_RECORD_NO_ICRC | PM_RECORD_INSIDE | faults;
    if (!stays) {
        r.flags &= ~(uint32_t)PM_RECORD_OUT;
        r.qpn = 0;
    }
    for (struct capture *c = d->captures; c; c = c->next)
        if (stays ? !(c->filter.flags & PM_CAPTURE_BEFORE) : c->filter.flags & PM_CAPTURE_IN)
            put(c, &r, data);
}

void capture_lost(struct device *d, const struct tx_pkt *pkt, const uint8_t *data, uint32_t faults)
{
    bool stays = device_keeps_inside(d, pkt->av->dgid);
    struct pm_capture_record r;

    describe_sent(d, pkt, false, &r);
    r.flags |= PM_RECORD_NO_ICRC | PM_RECORD_LOST | faults | (stays ? PM_RECORD_INSIDE : 0);
    for (struct capture *c = d->captures; c; c = c->next) {
        uint32_t directions = PM_CAPTURE_OUT | (stays ? PM_CAPTURE_IN : 0);

        if (c->filter.flags & PM_CAPTURE_BEFORE || !(c->filter.flags & directions) || !wanted(&c->filter, &r, data))
            continue;
        atomic_store_explicit(&c->page->lost, ++c->lost_by_faults, memory_order_relaxed);
        if (c->filter.flags & PM_CAPTURE_LOST)
            put(c, &r, data);
    }
}

void capture_received(struct device *d, const struct rx_meta *meta, uint16_t src_port, uint16_t ip_id,
                      const uint8_t *data, uint32_t len)
{
    struct pm_capture_record r = {.orig_len = len, .time = clock_ns(), .src_port = src_port, .ip_id = ip_id};

    memcpy(r.src, meta->src_gid, sizeof(r.src));
    memcpy(r.dst, meta->dst_gid, sizeof(r.dst));
    r.tos = meta->traffic_class;
    r.qpn = bth_dest_qpn(data);
    name_owner(d, &r);
    for (struct capture *c = d->captures; c; c = c->next)
        if (c->filter.flags & PM_CAPTURE_IN)
            put(c, &r, data);
}
