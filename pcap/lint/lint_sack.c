// SPDX-License-Identifier: BSD-2-Clause
#include "pcap/lint/lint_sack.h"

#include <inttypes.h>
#include <string.h>

#include "pcap/lint/base/lint_flow.h"
#include "pcap/lint/lint_request.h"
#include "pcap/pcapng.h"
#include "pcap/sack_text.h"
#include "wire/pumice/probe.h"

#define LOOKED_AT_MOST 8192u /* requests that are compared with one SACK: more than a window holds */

/* --- one packet --------------------------------------------------------------------------------------------------- */

/* True if the packet begins as a SACK of the version that this linter knows. The rest of it may be wrong. */
static bool claims_to_be(const struct pkt *p)
{
    return p->opcode == (OP_SERVICE_UD | OP_SEND_ONLY) && p->dest_qpn == PROBE_QPN && p->deth.qkey == PROBE_QKEY &&
           sack_is_named(p->payload, p->payload_len);
}

void lint_sack_form(struct lint *l, uint32_t frame, const struct pkt *p)
{
    struct sack s;

    if (claims_to_be(p) && !sack_decode(p->payload, p->payload_len, &s))
        lint_report(l, LINT_SACK_FORM, frame, "a SACK of %u bytes whose fields contradict each other", p->payload_len);
}

uint32_t lint_sack_keep(struct lint *l, const struct pkt *p, size_t there)
{
    struct sack s, *list;

    if (there < p->payload_len || !claims_to_be(p) || !sack_decode(p->payload, p->payload_len, &s))
        return 0;
    list = lint_grow(l, l->sacks, l->num_sacks, &l->cap_sacks, sizeof(*list));
    if (!list)
        return 0;
    l->sacks = list;
    list[l->num_sacks++] = s;
    return (uint32_t)l->num_sacks;
}

/* --- the requests that a SACK reports ----------------------------------------------------------------------------- */

/* How well the flow x fits as the requests that a SACK in this flow reports; 0: it has others. */
static unsigned fit(const struct flow *flow, const struct sack *s, const struct flow *x)
{
    if (x->key.qpn != s->responder || (x->key.service != OP_SERVICE_RC && x->key.service != OP_SERVICE_XRC) ||
        (x->key.src_qpn && x->key.src_qpn != s->requester) || memcmp(x->key.src, flow->key.dst, 16) != 0 ||
        memcmp(x->key.dst, flow->key.src, 16) != 0 || !x->started)
        return 0;
    return 1 + (x->key.src_qpn != 0) + 2 * lint_same_interface(flow, x);
}

/* The flow of the requests that a SACK in this flow reports. NULL: the capture has none of them so far. */
static struct flow *find_requests(const struct lint *l, const struct flow *flow, const struct sack *s)
{
    struct flow *best = NULL;
    unsigned most = 0;

    for (size_t i = 0; i < l->num_flows; i++) {
        unsigned n = fit(flow, s, l->flows[i]);

        if (n > most) {
            most = n;
            best = l->flows[i];
        }
    }
    return best;
}

/* The first PSN from psn on that the SACK reports as received; `end` if there is none before it. base is the expected
 * PSN, extended to 64 bits. */
static uint64_t next_received(const struct sack *s, uint64_t base, uint64_t psn, uint64_t end)
{
    for (uint32_t i = 0; i < s->gaps; i++) {
        uint64_t from = base + ((s->gap[i].start - s->expected) & PSN_MASK);
        uint64_t to = base + ((s->gap[i].end - s->expected) & PSN_MASK);

        if (psn >= from && psn < to)
            psn = to;
    }
    return psn < end ? psn : end;
}

/* Looks for a PSN of [base, end) that the SACK reports as received, and that the capture does not have. Returns `end` if there is
 * none. */
static uint64_t find_unseen(struct flow *requests, const struct sack *s, uint64_t base, uint64_t end)
{
    uint64_t psn = next_received(s, base, base, end);

    for (unsigned i = 0; psn < end && i < LOOKED_AT_MOST; i++) {
        const struct request *q = lint_find_request(requests, psn);

        if (!q)
            return psn;
        /* A READ whose span is not known may take all PSNs up to the next request. */
        uint64_t next = q->span ? q->psn + q->span : psn + 1;
        psn = next_received(s, base, next, end);
    }
    return end;
}

static void check_received(struct lint *l, struct flow *requests, const struct record *r, const struct sack *s,
                           uint64_t base)
{
    uint64_t end = base + ((s->end - s->expected) & PSN_MASK);
    uint64_t newest = base + ((s->newest - s->expected) & PSN_MASK);
    uint64_t limit = requests->next + requests->slack;

    if (newest > limit) {
        lint_report_unless(l, lint_may_lack_packets(l), LINT_SACK_UNSENT, r->frame,
                           "reports packets up to PSN %u, but the newest PSN sent is %u", (s->newest - 1) & PSN_MASK,
                           (uint32_t)(requests->next - 1) & PSN_MASK);
        return;
    }
    uint64_t unseen = find_unseen(requests, s, base, end < limit ? end : limit);
    if (unseen < end && unseen < limit)
        lint_report_unless(l, lint_may_lack_packets(l), LINT_SACK_UNSEEN, r->frame,
                           "reports PSN %u as received, which is not in the capture", (uint32_t)unseen & PSN_MASK);
}

void lint_sack(struct lint *l, struct flow *flow, uint32_t number)
{
    const struct record *r = &l->recs[number];
    const struct sack *s = &l->sacks[r->sack - 1];
    struct flow *requests = find_requests(l, flow, s), *responder = requests ? requests->peer : NULL;
    char text[SACK_TEXT_MAX];

    sack_text(s, text);
    lint_report(l, LINT_SACK, r->frame, "%s", text);
    if (!requests) {
        if (!flow->reported_unpaired)
            lint_report(l, LINT_UNPAIRED, r->frame, "a SACK for requests to QP 0x%06x that are not in the capture",
                        s->responder);
        flow->reported_unpaired = true;
        return;
    }
    uint64_t base = lint_unwrap(s->expected, requests->next);
    if (base + FAR_PSNS < requests->next || base > requests->next + FAR_PSNS || !requests->num_requests ||
        base < requests->requests[0].psn)
        return; /* for a connection before, or from before the capture */
    check_received(l, requests, r, s, base);
    if (flow->direction == PCAPNG_DIR_OUT && responder && responder->has_acked && base <= responder->last_ack)
        lint_report(l, LINT_SACK_BACK, r->frame, "reports PSN %u as missing after an ACK of PSN %u", s->expected,
                    (uint32_t)responder->last_ack & PSN_MASK);
}
