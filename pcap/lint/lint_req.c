// SPDX-License-Identifier: BSD-2-Clause
/* Rules for requests: each PSN once and in order, repeated only as it was, and packets of a message one after the other.
 * A half's requests are kept in the order of their PSNs. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "pcap/lint/lint_priv.h"

#define PSN_BASE ((uint64_t)1 << 40) /* so that extended PSNs never go below 0 */
#define DUPLICATE_NS 100000000u /* so long after its acknowledgment a packet is no late retransmission any more */

uint64_t lint_unwrap(uint32_t psn, uint64_t near)
{
    int32_t d = (int32_t)((psn - (uint32_t)near) << 8) >> 8;

    return near + (uint64_t)(int64_t)d;
}

static const char *name(const struct rec *r)
{
    return op_table[r->opcode].name;
}

static bool is_read(const struct rec *r)
{
    return (r->opcode & OP_OPERATION_MASK) == OP_READ_REQUEST;
}

/* Does it get a response of its own, other than an ACK? */
static bool is_answered(const struct rec *r)
{
    uint8_t operation = r->opcode & OP_OPERATION_MASK;

    return (r->opcode & OP_SERVICE_MASK) != OP_SERVICE_UC &&
           (operation == OP_READ_REQUEST || operation == OP_CMP_SWAP || operation == OP_FETCH_ADD ||
            operation == OP_FLUSH || operation == OP_ATOMIC_WRITE);
}

bool lint_ends(const struct lint *l, const struct sent *s)
{
    return (op_table[l->recs[s->rec].opcode].properties & (OP_IS_LAST | OP_IS_ONLY)) != 0;
}

static size_t after(const struct half *h, uint64_t psn) /* index of the first request behind psn */
{
    size_t low = 0, high = h->num_sent;

    while (low < high) {
        size_t mid = (low + high) / 2;

        if (h->sent[mid].psn <= psn)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

struct sent *lint_find(struct half *h, uint64_t psn)
{
    size_t i = after(h, psn);
    struct sent *s = i ? &h->sent[i - 1] : NULL;
    uint64_t limit;

    if (!s)
        return NULL;
    limit = s->span ? s->span : i < h->num_sent ? h->sent[i].psn - s->psn : h->next + h->slack - s->psn;
    return psn - s->psn < limit ? s : NULL;
}

/* --- neighbours ------------------------------------------------------------------------------------------------------------- */

/* b directly follows a, and both are known. */
static bool adjacent(const struct sent *a, const struct sent *b)
{
    return a->span && a->psn + a->span == b->psn && !a->damaged && !b->damaged;
}

static void check_sequence(struct lint *l, const struct half *h, size_t i)
{
    const struct rec *a = &l->recs[h->sent[i].rec], *b = &l->recs[h->sent[i + 1].rec];
    uint16_t pa = op_table[a->opcode].properties, pb = op_table[b->opcode].properties;
    bool open = (pa & (OP_IS_FIRST | OP_IS_MIDDLE)) != 0, goes_on = (pb & (OP_IS_MIDDLE | OP_IS_LAST)) != 0;
    uint16_t kinds = OP_IS_SEND | OP_IS_WRITE;

    if (!adjacent(&h->sent[i], &h->sent[i + 1]))
        return;
    if (open != goes_on || (open && (pa & kinds) != (pb & kinds)))
        lint_tell(l, LINT_SEQUENCE, b->frame, "%s (PSN %u) after %s", name(b), b->psn, name(a));
    else if (goes_on && op_table[b->opcode].headers & OP_HAS_XRCETH && a->srqn != b->srqn &&
             !((a->flags | b->flags) & REC_MALFORMED))
        lint_tell(l, LINT_XRC_SRQN, b->frame, "SRQ %u in a message to SRQ %u", b->srqn, a->srqn);
}

/* The length of a WRITE whose last packet is sent[i], if all of it is there. */
static void check_write(struct lint *l, const struct half *h, size_t i)
{
    const struct rec *last = &l->recs[h->sent[i].rec], *r = last;
    uint64_t sum = last->len;

    if (!(op_table[last->opcode].properties & OP_IS_WRITE) || !lint_ends(l, &h->sent[i]) || h->sent[i].damaged ||
        last->flags & REC_MALFORMED)
        return;
    while (!(op_table[r->opcode].properties & (OP_IS_FIRST | OP_IS_ONLY))) {
        if (i == 0 || !adjacent(&h->sent[i - 1], &h->sent[i]))
            return;
        r = &l->recs[h->sent[--i].rec];
        if (r->flags & REC_MALFORMED || !(op_table[r->opcode].properties & OP_IS_WRITE))
            return;
        sum += r->len;
    }
    if (sum != r->dmalen)
        lint_tell(l, LINT_WRITE_LENGTH, last->frame, "WRITE of %" PRIu64 " bytes; its RETH says %u", sum, r->dmalen);
}

static void check_mtu(struct lint *l, const struct half *h, const struct rec *r)
{
    if (!h->mtu || r->flags & REC_UNUSABLE)
        return;
    if (op_table[r->opcode].payload == OP_PAYLOAD_FULL ? r->len != h->mtu : r->len > h->mtu)
        lint_tell(l, LINT_MTU, r->frame, "%s of %u bytes; the path MTU is %u", name(r), r->len, h->mtu);
}

/* --- new requests ------------------------------------------------------------------------------------------------------------ */

/* Puts a request into the list, checks it together with those around it, and lets tag matching see it. */
static void insert(struct lint *l, struct half *h, uint32_t number, uint64_t psn)
{
    const struct rec *r = &l->recs[number];
    struct sent *list = lint_grow(l, h->sent, h->num_sent, &h->cap_sent, sizeof(*list));
    size_t i;

    if (!list)
        return;
    h->sent = list;
    i = after(h, psn);
    memmove(list + i + 1, list + i, (h->num_sent - i) * sizeof(*list));
    h->num_sent++;
    list[i] = (struct sent){.psn = psn, .span = 1, .rec = number, .damaged = (r->flags & REC_DAMAGED) != 0};
    if (is_read(r))
        list[i].span = r->flags & REC_MALFORMED ? 0 : lint_span(h, r->dmalen);
    if (is_answered(r) && !list[i].damaged) {
        list[i].answer = calloc(1, sizeof(struct answer));
        if (!list[i].answer)
            l->no_memory = true;
    }
    h->total += lint_ends(l, &list[i]);
    if (i < h->counted) { /* it was acknowledged before the capture had it */
        h->counted++;
        h->messages += lint_ends(l, &list[i]);
    }
    h->settled += i < h->settled;
    check_mtu(l, h, r);
    if (i > 0)
        check_sequence(l, h, i - 1);
    if (i + 1 < h->num_sent)
        check_sequence(l, h, i);
    check_write(l, h, i);
    if (r->tm && h->tm && !list[i].damaged)
        lint_tm_send(l, h, number);
    else if (is_read(r) && !list[i].damaged)
        lint_tm_read(l, h, number);
}

static void append(struct lint *l, struct half *h, uint32_t number, uint64_t psn)
{
    const struct rec *r = &l->recs[number];
    struct sent *s;

    insert(l, h, number, psn);
    s = lint_find(h, psn);
    h->next = psn + 1;
    h->slack = 0;
    if (s && s->span)
        h->next = psn + s->span;
    else if (is_read(r) && r->flags & REC_MALFORMED) /* nobody knows how long it was */
        h->slack = FAR_PSNS / 2;
    else if (is_read(r)) /* what the smallest path MTU would make of it */
        h->slack = (uint32_t)(((uint64_t)r->dmalen + PKT_MTU_MIN - 1) / PKT_MTU_MIN - 1);
}

static void restart(struct half *h)
{
    for (size_t i = 0; i < h->num_sent; i++) {
        if (h->sent[i].answer)
            free(h->sent[i].answer->seen);
        free(h->sent[i].answer);
    }
    h->num_sent = h->counted = h->settled = 0;
    h->total = h->messages = 0;
    h->started = h->base_known = false;
    h->slack = 0;
    h->first_rndv = h->num_rndv;
    if (h->peer) { /* as responder to us */
        h->peer->acked = h->peer->fatal = false;
    }
}

/* Is r, off PSNs behind the beginning of s, what s was, or for a READ the rest of it? */
static bool repeats(const struct half *h, const struct rec *r, const struct rec *s, uint64_t off)
{
    if (r->opcode != s->opcode || r->srqn != s->srqn || r->rkey != s->rkey)
        return false;
    if (off == 0)
        return r->len == s->len && r->va == s->va && r->dmalen == s->dmalen;
    return is_read(r) && (!h->mtu || (r->va == s->va + off * h->mtu && r->dmalen == s->dmalen - off * h->mtu));
}

/* Does the connection begin again with the PSN that it began with? The QPs may have been reset in between, and nothing on the wire says so.
 * What was acknowledged altogether is not sent again, and a retransmission is no other packet. (Pumice's own captures say which
 * packets are retransmissions; elsewhere both must hold.) */
static bool begins_again(const struct lint *l, const struct half *h, const struct rec *r, uint64_t psn)
{
    bool acked = h->counted == h->num_sent, other;

    if (!h->num_sent || psn != h->sent[0].psn || h->sent[0].damaged || r->flags & (REC_DAMAGED | REC_AGAIN) ||
        op_table[r->opcode].properties & (OP_IS_MIDDLE | OP_IS_LAST))
        return false;
    other = !repeats(h, r, &l->recs[h->sent[0].rec], 0);
    return r->flags & REC_NOTED ? acked || other : acked && other;
}

static void start(struct lint *l, struct half *h, const struct rec *r)
{
    h->started = true;
    h->next = PSN_BASE + r->psn;
    if (op_table[r->opcode].properties & (OP_IS_MIDDLE | OP_IS_LAST))
        lint_tell(l, LINT_MIDWAY, r->frame, "the capture begins within a message");
}

static void gap(struct lint *l, struct half *h, const struct rec *r, uint64_t missing)
{
    if (h->direction == PCAPNG_DIR_OUT)
        lint_tell_unless(l, l->options->incomplete || l->lost, LINT_GAP, r->frame,
                         "%" PRIu64 " PSNs left out before PSN %u", missing, r->psn);
    else
        lint_tell(l, LINT_LOST, r->frame, "%" PRIu64 " PSNs are missing before PSN %u", missing, r->psn);
}

/* --- repeated requests --------------------------------------------------------------------------------------------------------- */

static void again(struct lint *l, struct half *h, uint32_t number, struct sent *s, uint64_t psn)
{
    const struct rec *r = &l->recs[number], *old = &l->recs[s->rec];
    uint64_t off = psn - s->psn;

    if (r->flags & REC_DAMAGED)
        return;
    if (!((r->flags | old->flags) & REC_MALFORMED) && !repeats(h, r, old, off)) {
        lint_tell(l, LINT_REPEAT_DIFFERS, r->frame, "%s with PSN %u; that was %s of %u bytes in frame %u", name(r),
                  r->psn, name(old), old->len ? old->len : old->dmalen, old->frame);
        return;
    }
    if (s->answer) {
        if (off && s->answer->num_starts < 8)
            s->answer->starts[s->answer->num_starts] = (uint32_t)off;
        s->answer->num_starts += off && s->answer->num_starts <= 8;
        s->answer->skipped = 0; /* asked again, as it should be */
    }
    if (h->direction == PCAPNG_DIR_OUT && s->settled && s->informed && h->responses > s->settled_by &&
        r->time_ns > s->settled_ns + DUPLICATE_NS)
        lint_tell(l, LINT_DUPLICATE, r->frame, "PSN %u again, %.0f ms after it was acknowledged", r->psn,
                  (double)(r->time_ns - s->settled_ns) / 1e6);
    else
        lint_tell(l, LINT_REPEAT, r->frame, "PSN %u again, first in frame %u", r->psn, old->frame);
}

/* A damaged request is replaced by the good one. */
static void mend(struct lint *l, struct half *h, uint32_t number, size_t i)
{
    uint64_t psn = h->sent[i].psn;
    bool was_end = lint_ends(l, &h->sent[i]), was_last = i + 1 == h->num_sent;

    h->total -= was_end;
    if (i < h->counted) {
        h->counted--;
        h->messages -= was_end;
    }
    h->settled -= i < h->settled;
    memmove(h->sent + i, h->sent + i + 1, (h->num_sent - i - 1) * sizeof(*h->sent));
    h->num_sent--;
    if (was_last)
        append(l, h, number, psn);
    else
        insert(l, h, number, psn);
}

static void old(struct lint *l, struct half *h, uint32_t number, uint64_t psn)
{
    const struct rec *r = &l->recs[number];
    struct sent *s = lint_find(h, psn);

    if (s && s->damaged && s->psn == psn && !(r->flags & REC_DAMAGED)) {
        mend(l, h, number, (size_t)(s - h->sent));
    } else if (s && !s->damaged) {
        again(l, h, number, s, psn);
    } else if (r->flags & REC_DAMAGED || s) {
        return;
    } else if (h->num_sent && psn < h->sent[0].psn) {
        if (!h->told_midway)
            lint_tell(l, LINT_MIDWAY, r->frame, "PSN %u is from before the first packet of the capture", r->psn);
        h->told_midway = true;
    } else {
        lint_tell(l, LINT_REPEAT, r->frame, "PSN %u, late or sent again", r->psn);
        insert(l, h, number, psn);
    }
}

void lint_request(struct lint *l, struct half *h, uint32_t number)
{
    const struct rec *r = &l->recs[number];
    bool damaged = (r->flags & REC_DAMAGED) != 0;
    uint64_t psn;
    int64_t d;

    if (!h->started) {
        if (damaged)
            return;
        start(l, h, r);
    }
    psn = lint_unwrap(r->psn, h->next);
    d = (int64_t)(psn - h->next);
    if (damaged && (d > 0 || d < -FAR_PSNS))
        return; /* the PSN itself may be wrong */
    if (d > FAR_PSNS || d < -FAR_PSNS || begins_again(l, h, r, psn)) {
        lint_tell(l, LINT_RESTART, r->frame, "PSN %u after %u: a new connection", r->psn,
                  (uint32_t)(h->next - 1) & PSN_MASK);
        restart(h);
        start(l, h, r);
        psn = h->next;
        d = 0;
    }
    if (d < 0) {
        old(l, h, number, psn);
        return;
    }
    if (d > (int64_t)h->slack)
        gap(l, h, r, (uint64_t)d - h->slack);
    append(l, h, number, psn);
}
