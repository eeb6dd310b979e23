// SPDX-License-Identifier: BSD-2-Clause
#include "pcap/lint/lint_response.h"

#include <inttypes.h>
#include <stdlib.h>

#include "pcap/lint/base/lint_flow.h"
#include "pcap/lint/lint_credit.h"
#include "pcap/lint/lint_request.h"
#include "pcap/lint/lint_tm.h"
#include "pcap/pcapng.h"
#include "wire/pkt.h"
#include "wire/syndrome.h"

#define MAX_SEARCHES 64 /* searches for another requester, per flow */
#define MAX_BACK 4096 /* requests that the linter goes back for an old response */

/* --- the MSN ------------------------------------------------------------------------------------------------------ */

/* Sets *messages to the number of messages that end in the requests up to and including psn. Advances num_acked.
 * Returns false if the count is not sure, because a packet is unknown. */
static bool count_messages(struct lint *l, struct flow *requester, uint64_t psn, const struct record *by,
                           uint32_t *messages)
{
    /* If the capture has the packets that leave the requester, lint_request has already reported the gap. */
    bool sure = true, reported = requester->direction == PCAPNG_DIR_OUT;
    uint64_t end;

    while (requester->num_acked < requester->num_requests && requester->requests[requester->num_acked].psn <= psn) {
        const struct request *s = &requester->requests[requester->num_acked],
                             *before = requester->num_acked ? s - 1 : NULL;

        if (before && before->span && before->psn + before->span < s->psn) {
            sure = false;
            if (!reported)
                lint_report_unless(l, lint_may_lack_packets(l), LINT_ACK_UNSEEN, by->frame,
                                   "PSN %u acknowledges %" PRIu64 " packets before PSN %u that are not in the capture",
                                   by->psn, s->psn - before->psn - before->span, (uint32_t)s->psn & PSN_MASK);
            reported = true;
        }
        sure = sure && !s->damaged && !(l->recs[s->record].flags & RECORD_MALFORMED);
        requester->acked_messages += lint_ends_message(l, s);
        requester->acked_receives += lint_ends_receive(l, s);
        requester->num_acked++;
    }
    *messages = requester->acked_messages;
    for (size_t i = requester->num_acked; i > 0 && requester->requests[i - 1].psn > psn; i--) {
        *messages -= lint_ends_message(l, &requester->requests[i - 1]);
        if (requester->num_acked - i > MAX_BACK)
            return false;
    }
    if (requester->num_acked) {
        const struct request *s = &requester->requests[requester->num_acked - 1];

        end = s->psn + s->span;
        if (s->span && end <= psn && requester->num_acked < requester->num_requests)
            sure = false; /* psn is within a gap, which is reported when an acknowledgment passes it */
    }

    return sure;
}

/* Checks the MSN of a response. It counts at least `least` and at most `most` messages of this capture. So the MSN
 * before the first request was from msn - most to msn - least. This range must overlap the range from earlier
 * responses. */
static void check_msn(struct lint *l, struct flow *requester, const struct record *r, uint32_t least, uint32_t most,
                      bool sure)
{
    uint32_t low = (r->msn - most) & PSN_MASK, width = most - least;

    if (!sure || !requester->msn_known) {
        requester->msn_known = sure;
        requester->msn_low = low;
        requester->msn_width = width;
        return;
    }
    uint32_t shift =
        (low - requester->msn_low) & PSN_MASK; /* from the start of the old range to the start of the new one */
    if (shift <= requester->msn_width) {
        requester->msn_low = low;
        requester->msn_width = requester->msn_width - shift < width ? requester->msn_width - shift : width;
        return;
    }
    shift = (requester->msn_low - low) & PSN_MASK;
    if (shift <= width) {
        requester->msn_width = requester->msn_width < width - shift ? requester->msn_width : width - shift;
        return;
    }
    lint_report_unless(l, lint_may_lack_packets(l), LINT_MSN, r->frame, "the MSN is %u, expected %u%s", r->msn,
                       (requester->msn_low + requester->msn_width + least) & PSN_MASK,
                       most > least ? " or a little more" : "");
}

/* --- acknowledged requests ---------------------------------------------------------------------------------------- */

static enum lint_rule unanswered_rule(const struct lint *l, const struct request *s)
{
    return op_table[l->recs[s->record].opcode].properties & OP_IS_ATOMIC ? LINT_ATOMIC_UNANSWERED
                                                                         : LINT_READ_UNANSWERED;
}

static bool is_complete(const struct request *s)
{
    return !s->response || !s->span || s->response->got >= s->span;
}

/* True if the response has certainly reached the requester. A response may have been lost after the capture if it was
 * captured as it left another interface, or before injected faults. */
static bool has_arrived(const struct flow *requester, const struct flow *r, const struct record *by)
{
    return by->direction != PCAPNG_DIR_OUT || (!(by->flags & RECORD_BEFORE) && lint_same_interface(requester, r));
}

/* A response acknowledges all requests up to psn. READs and atomics among them must have their responses before.
 * Otherwise the requester goes back to the READ or atomic, and repeats all requests from there, even acknowledged ones.
 * */
static void acknowledge(struct lint *l, struct flow *requester, const struct flow *r, uint64_t psn,
                        const struct record *by)
{
    requester->responses++;
    for (; requester->completed < requester->num_acked; requester->completed++) {
        struct request *s = &requester->requests[requester->completed];

        if (s->psn + s->span > psn + 1 || !is_complete(s))
            break;
        s->completed = true;
        s->requester_knows = has_arrived(requester, r, by);
        s->completed_by = requester->responses;
        s->completed_ns = by->time_ns;
    }
    for (size_t i = requester->completed; i < requester->num_acked && i < requester->completed + LINT_OPEN_MOST; i++) {
        struct request *s = &requester->requests[i];

        if (is_complete(s) || s->psn + s->span > psn || s->response->skipped)
            continue;
        s->response->skipped = by->frame;
        if (r->direction == PCAPNG_DIR_OUT && !lint_may_lack_packets(l) && !s->response->reported) {
            s->response->reported = true;
            lint_report(l, unanswered_rule(l, s), by->frame, "acknowledges PSN %u, but %s in frame %u has no response",
                        by->psn, op_table[l->recs[s->record].opcode].name, l->recs[s->record].frame);
        }
    }
}

void lint_unanswered(struct lint *l, struct flow *requester)
{
    for (size_t i = 0; i < requester->num_requests; i++) {
        const struct request *s = &requester->requests[i];
        const struct record *q = &l->recs[s->record];

        if (!s->response || !s->span || s->response->got >= s->span || !s->response->skipped || s->response->reported)
            continue;
        /* After a fatal NAK, neither side sends anything again. */
        lint_report_unless(l,
                           lint_may_lack_packets(l) || requester->fatal || (requester->peer && requester->peer->fatal),
                           unanswered_rule(l, s), s->response->skipped,
                           "acknowledges more than %s in frame %u, which has %u of %u responses and is not repeated",
                           op_table[q->opcode].name, q->frame, s->response->got, s->span);
    }
}

/* --- kinds of responses ------------------------------------------------------------------------------------------- */

/* Marks the response packet with this index as seen. Returns true if this completes the response. */
static bool mark_seen(struct lint *l, struct request *s, uint32_t index)
{
    struct response *a = s->response;
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

static bool is_among(const uint32_t *list, uint32_t n, uint32_t index)
{
    if (n > 8)
        return true;
    for (uint32_t i = 0; i < n; i++)
        if (list[i] == index)
            return true;
    return false;
}

/* True if the requester asked for responses that begin with this index. */
static bool may_begin(const struct response *a, uint32_t index)
{
    return index == 0 || is_among(a->restarts, a->num_restarts, index);
}

/* True if the requester asked for responses that end with this index. */
static bool may_end(const struct response *a, uint32_t index, uint32_t span)
{
    return index + 1 == span || is_among(a->stops, a->num_stops, index);
}

/* True if a READ response with this opcode may be number `index` (from 0) of `span` responses. */
static bool is_in_place(const struct response *a, uint8_t operation, uint32_t index, uint32_t span)
{
    bool last = index + 1 == span, end = may_end(a, index, span);

    switch (operation) {
    case OP_READ_RESP_FIRST:
        return !last && may_begin(a, index);
    case OP_READ_RESP_ONLY:
        return end && may_begin(a, index);
    case OP_READ_RESP_MIDDLE:
        return !last && index > 0;
    default:
        return end && index > 0;
    }
}

static void read_length(struct lint *l, const struct flow *requester, const struct record *r, const struct record *q,
                        uint32_t index, uint32_t span)
{
    uint32_t want = (q->opcode & OP_OPERATION_MASK) == OP_READ_REQUEST ? q->dmalen : 0;

    if (index + 1 < span)
        want = requester->mtu;
    else if (requester->mtu)
        want -= index * requester->mtu;
    if (want != r->len)
        lint_report(l, index + 1 < span ? LINT_MTU : LINT_READ_LENGTH, r->frame, "%s has %u bytes, expected %u",
                    op_table[r->opcode].name, r->len, want);
}

static void read_response(struct lint *l, struct flow *requester, const struct flow *responder, const struct record *r,
                          struct request *s, uint64_t psn)
{
    const struct record *q = &l->recs[s->record];
    uint32_t index = (uint32_t)(psn - s->psn);
    uint8_t operation = r->opcode & OP_OPERATION_MASK;

    if (!s->response || op_table[q->opcode].properties & OP_IS_ATOMIC) {
        lint_report(l, LINT_RESPONSE_KIND, r->frame, "%s to %s of frame %u", op_table[r->opcode].name,
                    op_table[q->opcode].name, q->frame);
        return;
    }
    if (!s->span || q->flags & RECORD_MALFORMED || r->flags & RECORD_MALFORMED)
        return;
    uint32_t last = s->response->got ? s->response->last : UINT32_MAX;
    if (!is_in_place(s->response, operation, index, s->span)) {
        lint_report(l, LINT_READ_SEQUENCE, r->frame, "%s is response %u of %u to the READ in frame %u",
                    op_table[r->opcode].name, index + 1, s->span, q->frame);
    } else if (responder->direction == PCAPNG_DIR_OUT && index != last + 1 && operation != OP_READ_RESP_FIRST &&
               operation != OP_READ_RESP_ONLY) {
        s->response->reported = true;
        lint_report_unless(l, lint_may_lack_packets(l), LINT_READ_SEQUENCE, r->frame,
                           "%s number %u comes after number %u", op_table[r->opcode].name, index + 1, last + 1);
    } else {
        read_length(l, requester, r, q, index, s->span);
    }
    if (mark_seen(l, s, index))
        lint_tm_read_done(l, requester, s->record);
}

static void atomic_response(struct lint *l, const struct record *r, struct request *s)
{
    const struct record *q = &l->recs[s->record];

    if (!(op_table[q->opcode].properties & OP_IS_ATOMIC))
        lint_report(l, LINT_RESPONSE_KIND, r->frame, "%s to %s of frame %u", op_table[r->opcode].name,
                    op_table[q->opcode].name, q->frame);
    else if (s->response)
        mark_seen(l, s, 0);
}

static const char *const nak_names[] = {"PSN sequence error", "invalid request", "remote access error",
                                        "remote operational error", "invalid RD request"};

/* Does the code of a fatal NAK fit the request that it refuses? */
static void check_nak_code(struct lint *l, const struct flow *requester, const struct record *r,
                           const struct request *s)
{
    const struct record *q = &l->recs[s->record];
    const struct op_info *op = &op_table[q->opcode];
    bool has_key = op->headers & (OP_HAS_RETH | OP_HAS_ATOMICETH | OP_HAS_IETH | OP_HAS_XRCETH);
    const char *name = nak_names[r->syndrome & AETH_VALUE_MASK];

    if (r->syndrome != NAK_INVALID_REQUEST && lint_wrong_length(l, requester, s))
        lint_report(l, LINT_NAK_CODE, r->frame, "%s for %s in frame %u, whose length is wrong: expected %s", name,
                    op->name, q->frame, nak_names[NAK_INVALID_REQUEST & AETH_VALUE_MASK]);
    else if (r->syndrome == NAK_REMOTE_ACCESS && op->properties & OP_IS_SEND && !has_key &&
             !(s->damaged || q->flags & RECORD_UNUSABLE))
        lint_report(l, LINT_NAK_CODE, r->frame, "%s for %s in frame %u, which has no key", name, op->name, q->frame);
}

/* Does a fatal NAK refuse what was acknowledged before? */
static void check_nak_acked(struct lint *l, const struct flow *responder, const struct record *r, uint64_t psn,
                            const struct request *s)
{
    bool invalidates = s && op_table[l->recs[s->record].opcode].headers & OP_HAS_IETH;

    if (responder->has_acked && psn <= responder->last_ack)
        lint_report(l, LINT_NAK_ACKED, r->frame, "NAK for PSN %u after an ACK of PSN %u%s", r->psn,
                    (uint32_t)responder->last_ack & PSN_MASK,
                    invalidates ? ": a SEND with invalidate is acknowledged only when its key was invalidated" : "");
}

static void report_nak(struct lint *l, struct flow *responder, const struct record *r, uint64_t psn)
{
    unsigned code = r->syndrome & AETH_VALUE_MASK;

    if ((r->syndrome & AETH_KIND_MASK) == AETH_RNR) {
        lint_report(l, LINT_NAK, r->frame, "RNR NAK for PSN %u, timer code %u", r->psn, code);
    } else if (r->syndrome >= NAK_PSN_SEQUENCE && r->syndrome <= NAK_INVALID_RD) {
        lint_report(l, LINT_NAK, r->frame, "NAK for PSN %u: %s", r->psn, nak_names[code]);
        if (r->syndrome != NAK_PSN_SEQUENCE && !responder->fatal) {
            responder->fatal = true;
            responder->fatal_psn = psn;
        }
    }
}

/* --- one response ------------------------------------------------------------------------------------------------- */

/* Judges a response to the request with this PSN. */
static void judge(struct lint *l, struct flow *requester, struct flow *responder, const struct record *r, uint64_t psn)
{
    uint8_t operation = r->opcode & OP_OPERATION_MASK;
    bool plain = operation == OP_ACK,
         ack = (r->syndrome & AETH_KIND_MASK) == AETH_ACK || !(op_table[r->opcode].headers & OP_HAS_AETH);
    uint64_t done = ack ? psn : psn - 1; /* the newest PSN that the response acknowledges */
    struct request *s;
    uint32_t least = 0;

    bool sure = count_messages(l, requester, done, r, &least);
    s = lint_find_request(requester, psn);
    if (!plain && s && !s->damaged) {
        if (operation == OP_ATOMIC_ACK)
            atomic_response(l, r, s);
        else
            read_response(l, requester, responder, r, s, psn);
    }
    acknowledge(l, requester, responder, done, r);
    if (plain && ack && s && s->response && !s->damaged)
        lint_report_unless(l, lint_may_lack_packets(l), LINT_ACK_READ, r->frame,
                           "an ACK names PSN %u, which belongs to %s in frame %u", r->psn,
                           op_table[l->recs[s->record].opcode].name, l->recs[s->record].frame);
    if (plain && !ack) {
        report_nak(l, responder, r, psn);
        if (r->syndrome > NAK_PSN_SEQUENCE && r->syndrome <= NAK_INVALID_RD) {
            check_nak_acked(l, responder, r, psn, s);
            if (s)
                check_nak_code(l, requester, r, s);
        }
    }
    if (plain && ack && responder->fatal && psn >= responder->fatal_psn)
        lint_report(l, LINT_ACK_AFTER_NAK, r->frame, "acknowledges PSN %u after the fatal NAK for PSN %u", r->psn,
                    (uint32_t)responder->fatal_psn & PSN_MASK);
    if (plain && ack && responder->direction == PCAPNG_DIR_OUT && responder->has_acked && psn < responder->last_ack)
        lint_report(l, LINT_ACK_BACK, r->frame, "ACK of PSN %u after one of PSN %u", r->psn,
                    (uint32_t)responder->last_ack & PSN_MASK);
    if (plain && ack) {
        responder->has_acked = true;
        responder->last_ack = psn;
    }
    if (op_table[r->opcode].headers & OP_HAS_AETH && !(r->flags & RECORD_MALFORMED)) {
        lint_credit_response(requester, r);
        check_msn(l, requester, r, least, requester->total_messages,
                  sure && requester->num_requests && psn >= requester->requests[0].psn);
    }
}

void lint_response(struct lint *l, struct flow *responder, uint32_t number)
{
    const struct record *r = &l->recs[number];
    struct flow *requester = responder->peer, *other;

    if (r->flags & RECORD_DAMAGED)
        return;
    if (!requester || !requester->started) {
        if (!responder->reported_unpaired)
            lint_report(l, LINT_UNPAIRED, r->frame, "%s for PSN %u, whose request is not in the capture",
                        op_table[r->opcode].name, r->psn);
        responder->reported_unpaired = true;
        return;
    }
    uint64_t psn = lint_unwrap(r->psn, requester->next);
    if (psn >= requester->next + requester->slack) {
        other = responder->searches++ < MAX_SEARCHES ? lint_find_requester(l, responder, r->psn, number) : NULL;
        if (other) /* the QP was connected to another peer */
            lint_report(l, LINT_RESTART, r->frame, "answers another QP than before");
        else
            lint_report_unless(l, lint_may_lack_packets(l), LINT_ACK_UNSENT, r->frame,
                               "%s for PSN %u, but the newest PSN sent is %u", op_table[r->opcode].name, r->psn,
                               (uint32_t)(requester->next - 1) & PSN_MASK);
        return;
    }
    if (requester->num_requests && psn + 1 < requester->requests[0].psn) {
        if (!responder->reported_midway)
            lint_report(l, LINT_MIDWAY, r->frame, "%s for PSN %u, which is older than the capture",
                        op_table[r->opcode].name, r->psn);
        responder->reported_midway = true;
        return;
    }
    judge(l, requester, responder, r, psn);
}
