// SPDX-License-Identifier: BSD-2-Clause
/* Rules for responses: they answer what was asked, in the form that it asks for, and their MSNs count. */
#include <inttypes.h>
#include <stdlib.h>

#include "pcap/lint/lint_priv.h"

#define MOST_SEARCHES 64
#define MOST_BACK 4096 /* requests that are counted back for an old response */

static bool excused(const struct lint *l)
{
    return l->options->incomplete || l->lost;
}

/* --- the MSN ------------------------------------------------------------------------------------------------------------------ */

/* Messages that end in sent[0] … up to and including psn. Moves on what is acknowledged; false if a packet is unknown. */
static bool count_to(struct lint *l, struct half *x, uint64_t psn, const struct rec *by, uint32_t *messages)
{
    bool sure = true, told = x->direction == PCAPNG_DIR_OUT; /* there the gap itself was told */
    uint64_t end;

    while (x->counted < x->num_sent && x->sent[x->counted].psn <= psn) {
        const struct sent *s = &x->sent[x->counted], *before = x->counted ? s - 1 : NULL;

        if (before && before->span && before->psn + before->span < s->psn) {
            sure = false;
            if (!told)
                lint_tell_unless(l, excused(l), LINT_ACK_UNSEEN, by->frame,
                                 "PSN %u acknowledges %" PRIu64 " packets before PSN %u that are not in the capture",
                                 by->psn, s->psn - before->psn - before->span, (uint32_t)s->psn & PSN_MASK);
            told = true;
        }
        sure = sure && !s->damaged && !(l->recs[s->rec].flags & REC_MALFORMED);
        x->messages += lint_ends(l, s);
        x->counted++;
    }
    *messages = x->messages;
    for (size_t i = x->counted; i > 0 && x->sent[i - 1].psn > psn; i--) {
        *messages -= lint_ends(l, &x->sent[i - 1]);
        if (x->counted - i > MOST_BACK)
            return false;
    }
    if (x->counted) {
        const struct sent *s = &x->sent[x->counted - 1];

        end = s->psn + s->span;
        if (s->span && end <= psn && x->counted < x->num_sent)
            sure = false; /* within a gap, which is told when it is passed */
    }

    return sure;
}

/* The MSN before the first request can be anything from msn - most to msn - least; that must agree with what earlier
 * responses said. */
static void check_msn(struct lint *l, struct half *x, const struct rec *r, uint32_t least, uint32_t most, bool sure)
{
    uint32_t low = (r->msn - most) & PSN_MASK, width = most - least, shift;

    if (!sure || !x->base_known) {
        x->base_known = sure;
        x->base_low = low;
        x->base_width = width;
        return;
    }
    shift = (low - x->base_low) & PSN_MASK; /* how far the new range begins behind the old one */
    if (shift <= x->base_width) {
        x->base_low = low;
        x->base_width = x->base_width - shift < width ? x->base_width - shift : width;
        return;
    }
    shift = (x->base_low - low) & PSN_MASK;
    if (shift <= width) {
        x->base_width = x->base_width < width - shift ? x->base_width : width - shift;
        return;
    }
    lint_tell_unless(l, excused(l), LINT_MSN, r->frame, "MSN %u; %u is right%s", r->msn,
                     (x->base_low + x->base_width + least) & PSN_MASK, most > least ? ", or a little more" : "");
}

/* --- what is acknowledged -------------------------------------------------------------------------------------------------- */

static enum lint_rule unanswered_rule(const struct lint *l, const struct sent *s)
{
    return op_table[l->recs[s->rec].opcode].properties & OP_IS_ATOMIC ? LINT_ATOMIC_UNANSWERED : LINT_READ_UNANSWERED;
}

static bool is_complete(const struct sent *s)
{
    return !s->answer || !s->span || s->answer->got >= s->span;
}

/* Has the requester got it? One that was seen leaving elsewhere, or before faults, may have been lost on the way. */
static bool has_arrived(const struct half *x, const struct half *r, const struct rec *by)
{
    return by->direction != PCAPNG_DIR_OUT || (!(by->flags & REC_BEFORE) && lint_same_interface(x, r));
}

/* All requests up to psn are acknowledged; READs and atomics among them must have been answered before. As long as one
 * is not, its requester goes back to it and repeats what follows, acknowledged or not. */
static void acknowledge(struct lint *l, struct half *x, const struct half *r, uint64_t psn, const struct rec *by)
{
    x->responses++;
    for (; x->settled < x->counted; x->settled++) {
        struct sent *s = &x->sent[x->settled];

        if (s->psn + s->span > psn + 1 || !is_complete(s))
            break;
        s->settled = true;
        s->informed = has_arrived(x, r, by);
        s->settled_by = x->responses;
        s->settled_ns = by->time_ns;
    }
    for (size_t i = x->settled; i < x->counted && i < x->settled + 256; i++) {
        struct sent *s = &x->sent[i];

        if (is_complete(s) || s->psn + s->span > psn || s->answer->skipped)
            continue;
        s->answer->skipped = by->frame;
        if (r->direction == PCAPNG_DIR_OUT && !excused(l) && !s->answer->told) {
            s->answer->told = true;
            lint_tell(l, unanswered_rule(l, s), by->frame, "PSN %u is acknowledged, but %s of frame %u is not answered",
                      by->psn, op_table[l->recs[s->rec].opcode].name, l->recs[s->rec].frame);
        }
    }
}

void lint_unanswered(struct lint *l, struct half *x)
{
    for (size_t i = 0; i < x->num_sent; i++) {
        const struct sent *s = &x->sent[i];
        const struct rec *q = &l->recs[s->rec];

        if (!s->answer || !s->span || s->answer->got >= s->span || !s->answer->skipped || s->answer->told)
            continue;
        /* Who has sent a fatal NAK, or got one, sends nothing again. */
        lint_tell_unless(l, excused(l) || x->fatal || (x->peer && x->peer->fatal), unanswered_rule(l, s),
                         s->answer->skipped,
                         "acknowledges more than %s of frame %u, which has %u of %u responses and was not repeated",
                         op_table[q->opcode].name, q->frame, s->answer->got, s->span);
    }
}

/* --- kinds of responses ---------------------------------------------------------------------------------------------------------- */

static bool mark(struct lint *l, struct sent *s, uint32_t index)
{
    struct answer *a = s->answer;
    uint8_t bit = (uint8_t)(1u << index % 8);

    if (!a->seen)
        a->seen = calloc(s->span / 8 + 1, 1);
    if (!a->seen) {
        l->no_memory = true;
        return false;
    }
    a->last = index;
    if (a->seen[index / 8] & bit)
        return false;
    a->seen[index / 8] |= bit;
    return ++a->got == s->span;
}

/* Did the requester ask for responses beginning with this one? */
static bool begins(const struct answer *a, uint32_t index)
{
    if (index == 0 || a->num_starts > 8)
        return true;
    for (uint32_t i = 0; i < a->num_starts; i++)
        if (a->starts[i] == index)
            return true;
    return false;
}

/* Does a READ response of this opcode belong at index of span? */
static bool belongs(const struct answer *a, uint8_t operation, uint32_t index, uint32_t span)
{
    bool last = index + 1 == span;

    switch (operation) {
    case OP_READ_RESP_FIRST:
        return !last && begins(a, index);
    case OP_READ_RESP_ONLY:
        return last && begins(a, index);
    case OP_READ_RESP_MIDDLE:
        return !last && index > 0;
    default:
        return last && index > 0;
    }
}

static void read_length(struct lint *l, const struct half *x, const struct rec *r, const struct rec *q, uint32_t index,
                        uint32_t span)
{
    uint32_t want = (q->opcode & OP_OPERATION_MASK) == OP_READ_REQUEST ? q->dmalen : 0;

    if (index + 1 < span)
        want = x->mtu;
    else if (x->mtu)
        want -= index * x->mtu;
    if (want != r->len)
        lint_tell(l, index + 1 < span ? LINT_MTU : LINT_READ_LENGTH, r->frame, "%s of %u bytes; it should have %u",
                  op_table[r->opcode].name, r->len, want);
}

static void read_response(struct lint *l, struct half *x, const struct half *h, const struct rec *r, struct sent *s,
                          uint64_t psn)
{
    const struct rec *q = &l->recs[s->rec];
    uint32_t index = (uint32_t)(psn - s->psn), last;
    uint8_t operation = r->opcode & OP_OPERATION_MASK;

    if (!s->answer || op_table[q->opcode].properties & OP_IS_ATOMIC) {
        lint_tell(l, LINT_RESPONSE_KIND, r->frame, "%s to %s of frame %u", op_table[r->opcode].name,
                  op_table[q->opcode].name, q->frame);
        return;
    }
    if (!s->span || q->flags & REC_MALFORMED || r->flags & REC_MALFORMED)
        return;
    last = s->answer->got ? s->answer->last : UINT32_MAX;
    if (!belongs(s->answer, operation, index, s->span)) {
        lint_tell(l, LINT_READ_SEQUENCE, r->frame, "%s is number %u of %u to the READ of frame %u",
                  op_table[r->opcode].name, index + 1, s->span, q->frame);
    } else if (h->direction == PCAPNG_DIR_OUT && index != last + 1 && operation != OP_READ_RESP_FIRST &&
               operation != OP_READ_RESP_ONLY) {
        s->answer->told = true;
        lint_tell_unless(l, excused(l), LINT_READ_SEQUENCE, r->frame, "%s number %u comes after number %u",
                         op_table[r->opcode].name, index + 1, last + 1);
    } else {
        read_length(l, x, r, q, index, s->span);
    }
    if (mark(l, s, index))
        lint_tm_read_done(l, x, s->rec);
}

static void atomic_response(struct lint *l, const struct rec *r, struct sent *s)
{
    const struct rec *q = &l->recs[s->rec];

    if (!(op_table[q->opcode].properties & OP_IS_ATOMIC))
        lint_tell(l, LINT_RESPONSE_KIND, r->frame, "%s to %s of frame %u", op_table[r->opcode].name,
                  op_table[q->opcode].name, q->frame);
    else if (s->answer)
        mark(l, s, 0);
}

static void negative(struct lint *l, struct half *h, const struct rec *r, uint64_t psn)
{
    static const char *const names[] = {"PSN sequence error", "invalid request", "remote access error",
                                        "remote operational error", "invalid RD request"};
    unsigned code = r->syndrome & AETH_VALUE_MASK;

    if ((r->syndrome & AETH_KIND_MASK) == AETH_RNR) {
        lint_tell(l, LINT_NAK, r->frame, "RNR NAK for PSN %u, timer code %u", r->psn, code);
    } else if (r->syndrome >= NAK_PSN_SEQUENCE && r->syndrome <= NAK_INVALID_RD) {
        lint_tell(l, LINT_NAK, r->frame, "NAK for PSN %u: %s", r->psn, names[code]);
        if (r->syndrome != NAK_PSN_SEQUENCE && !h->fatal) {
            h->fatal = true;
            h->fatal_psn = psn;
        }
    }
}

/* --- one response ------------------------------------------------------------------------------------------------------------------ */

/* What the response means: x has the requests, psn is what it answers. */
static void judge(struct lint *l, struct half *x, struct half *h, const struct rec *r, uint64_t psn)
{
    uint8_t operation = r->opcode & OP_OPERATION_MASK;
    bool plain = operation == OP_ACK,
         ack = (r->syndrome & AETH_KIND_MASK) == AETH_ACK || !(op_table[r->opcode].headers & OP_HAS_AETH);
    uint64_t done = ack ? psn : psn - 1; /* what it acknowledges */
    struct sent *s;
    uint32_t least = 0;
    bool sure;

    sure = count_to(l, x, done, r, &least);
    s = lint_find(x, psn);
    if (!plain && s && !s->damaged) {
        if (operation == OP_ATOMIC_ACK)
            atomic_response(l, r, s);
        else
            read_response(l, x, h, r, s, psn);
    }
    acknowledge(l, x, h, done, r);
    if (plain && !ack)
        negative(l, h, r, psn);
    if (plain && ack && h->fatal && psn >= h->fatal_psn)
        lint_tell(l, LINT_ACK_AFTER_NAK, r->frame, "acknowledges PSN %u after the NAK for PSN %u", r->psn,
                  (uint32_t)h->fatal_psn & PSN_MASK);
    if (plain && ack && h->direction == PCAPNG_DIR_OUT && h->acked && psn < h->last_ack)
        lint_tell(l, LINT_ACK_BACK, r->frame, "ACK of PSN %u after one of PSN %u", r->psn,
                  (uint32_t)h->last_ack & PSN_MASK);
    if (plain && ack) {
        h->acked = true;
        h->last_ack = psn;
    }
    if (op_table[r->opcode].headers & OP_HAS_AETH && !(r->flags & REC_MALFORMED))
        check_msn(l, x, r, least, x->total, sure && x->num_sent && psn >= x->sent[0].psn);
}

void lint_response(struct lint *l, struct half *h, uint32_t number)
{
    const struct rec *r = &l->recs[number];
    struct half *x = h->peer, *other;
    uint64_t psn;

    if (r->flags & REC_DAMAGED)
        return;
    if (!x || !x->started) {
        if (!h->told_unpaired)
            lint_tell(l, LINT_UNPAIRED, r->frame, "%s for PSN %u, whose request is not in the capture",
                      op_table[r->opcode].name, r->psn);
        h->told_unpaired = true;
        return;
    }
    psn = lint_unwrap(r->psn, x->next);
    if (psn >= x->next + x->slack) {
        other = h->searches++ < MOST_SEARCHES ? lint_asker(l, h, r->psn, number) : NULL;
        if (other) /* the QP has got another peer */
            lint_tell(l, LINT_RESTART, r->frame, "answers another QP than before");
        else
            lint_tell_unless(l, excused(l), LINT_ACK_UNSENT, r->frame, "%s for PSN %u; the newest that was sent is %u",
                             op_table[r->opcode].name, r->psn, (uint32_t)(x->next - 1) & PSN_MASK);
        return;
    }
    if (x->num_sent && psn + 1 < x->sent[0].psn) {
        if (!h->told_midway)
            lint_tell(l, LINT_MIDWAY, r->frame, "%s for PSN %u, from before the capture", op_table[r->opcode].name,
                      r->psn);
        h->told_midway = true;
        return;
    }
    judge(l, x, h, r, psn);
}
