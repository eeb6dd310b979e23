// SPDX-License-Identifier: BSD-2-Clause
#include "pcap/lint/lint_request.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "pcap/lint/base/lint_flow.h"
#include "pcap/lint/lint_credit.h"
#include "pcap/lint/lint_tm.h"
#include "pcap/pcapng.h"
#include "wire/pkt.h"

#define PSN_BASE ((uint64_t)1 << 40) /* the first extended PSN is not below this, so no older one is below 0 */
#define LONGEST_MESSAGE 0x80000000u /* bytes */
#define DUPLICATE_NS 100000000u /* a packet later than this after its acknowledgment is no delayed retransmission */

uint64_t lint_unwrap(uint32_t psn, uint64_t near)
{
    int32_t d = (int32_t)((psn - (uint32_t)near) << 8) >> 8;

    return near + (uint64_t)(int64_t)d;
}

static const char *name(const struct record *r)
{
    return op_table[r->opcode].name;
}

static bool is_read(const struct record *r)
{
    return (r->opcode & OP_OPERATION_MASK) == OP_READ_REQUEST;
}

/* True if the request gets a response of its own, other than an ACK. */
static bool is_answered(const struct record *r)
{
    uint8_t operation = r->opcode & OP_OPERATION_MASK;

    return (r->opcode & OP_SERVICE_MASK) != OP_SERVICE_UC &&
           (operation == OP_READ_REQUEST || operation == OP_CMP_SWAP || operation == OP_FETCH_ADD ||
            operation == OP_FLUSH || operation == OP_ATOMIC_WRITE);
}

bool lint_ends_message(const struct lint *l, const struct request *s)
{
    return (op_table[l->recs[s->record].opcode].properties & (OP_IS_LAST | OP_IS_ONLY)) != 0;
}

/* The index of the first request after psn. */
static size_t after(const struct flow *flow, uint64_t psn)
{
    size_t low = 0, high = flow->num_requests;

    while (low < high) {
        size_t mid = (low + high) / 2;

        if (flow->requests[mid].psn <= psn)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

struct request *lint_find_request(struct flow *flow, uint64_t psn)
{
    size_t i = after(flow, psn);
    struct request *s = i ? &flow->requests[i - 1] : NULL;
    uint64_t limit;

    if (!s)
        return NULL;
    limit = s->span                  ? s->span
            : i < flow->num_requests ? flow->requests[i].psn - s->psn
                                     : flow->next + flow->slack - s->psn;
    return psn - s->psn < limit ? s : NULL;
}

/* --- adjacent requests -------------------------------------------------------------------------------------------- */

/* True if b directly follows a, and both are undamaged. */
static bool adjacent(const struct request *a, const struct request *b)
{
    return a->span && a->psn + a->span == b->psn && !a->damaged && !b->damaged;
}

static void check_sequence(struct lint *l, const struct flow *flow, size_t i)
{
    const struct record *a = &l->recs[flow->requests[i].record], *b = &l->recs[flow->requests[i + 1].record];
    uint16_t pa = op_table[a->opcode].properties, pb = op_table[b->opcode].properties;
    bool open = (pa & (OP_IS_FIRST | OP_IS_MIDDLE)) != 0, goes_on = (pb & (OP_IS_MIDDLE | OP_IS_LAST)) != 0;
    uint16_t kinds = OP_IS_SEND | OP_IS_WRITE;

    if (!adjacent(&flow->requests[i], &flow->requests[i + 1]))
        return;
    if (open != goes_on || (open && (pa & kinds) != (pb & kinds)))
        lint_report(l, LINT_SEQUENCE, b->frame, "%s (PSN %u) after %s", name(b), b->psn, name(a));
    else if (goes_on && op_table[b->opcode].headers & OP_HAS_XRCETH && a->srqn != b->srqn &&
             !((a->flags | b->flags) & RECORD_MALFORMED))
        lint_report(l, LINT_XRC_SRQN, b->frame, "SRQ %u in a message to SRQ %u", b->srqn, a->srqn);
}

/* Sums up the bytes of the WRITE whose last packet is requests[i]. Returns its first packet. NULL: it is no such packet,
 * or the capture does not have all packets of the WRITE. */
static const struct record *write_bytes(const struct lint *l, const struct flow *flow, size_t i, uint64_t *sum)
{
    const struct record *last = &l->recs[flow->requests[i].record], *r = last;

    *sum = last->len;
    if (!(op_table[last->opcode].properties & OP_IS_WRITE) || !lint_ends_message(l, &flow->requests[i]) ||
        flow->requests[i].damaged || last->flags & RECORD_MALFORMED)
        return NULL;
    while (!(op_table[r->opcode].properties & (OP_IS_FIRST | OP_IS_ONLY))) {
        if (i == 0 || !adjacent(&flow->requests[i - 1], &flow->requests[i]))
            return NULL;
        r = &l->recs[flow->requests[--i].record];
        if (r->flags & RECORD_MALFORMED || !(op_table[r->opcode].properties & OP_IS_WRITE))
            return NULL;
        *sum += r->len;
    }
    return r;
}

static void check_write(struct lint *l, const struct flow *flow, size_t i)
{
    uint64_t sum;
    const struct record *first = write_bytes(l, flow, i, &sum);

    if (first && sum != first->dmalen)
        lint_report(l, LINT_WRITE_LENGTH, l->recs[flow->requests[i].record].frame,
                    "WRITE of %" PRIu64 " bytes; its RETH says %u", sum, first->dmalen);
}

static bool breaks_mtu(const struct flow *flow, const struct record *r)
{
    return flow->mtu && (op_table[r->opcode].payload == OP_PAYLOAD_FULL ? r->len != flow->mtu : r->len > flow->mtu);
}

static void check_mtu(struct lint *l, const struct flow *flow, const struct record *r)
{
    if (!(r->flags & RECORD_UNUSABLE) && breaks_mtu(flow, r))
        lint_report(l, LINT_MTU, r->frame, "%s of %u bytes; the path MTU is %u", name(r), r->len, flow->mtu);
}

bool lint_wrong_length(const struct lint *l, const struct flow *flow, const struct request *s)
{
    const struct record *r = &l->recs[s->record], *first;
    uint16_t props = op_table[r->opcode].properties;
    bool has_reth = op_table[r->opcode].headers & OP_HAS_RETH;
    uint64_t sum;

    if (s->damaged || r->flags & RECORD_UNUSABLE)
        return false;
    if (breaks_mtu(flow, r) || (has_reth && r->dmalen > LONGEST_MESSAGE))
        return true;
    if (props & OP_IS_WRITE && props & OP_IS_FIRST)
        return r->len >= r->dmalen;
    first = write_bytes(l, flow, (size_t)(s - flow->requests), &sum);
    return first && sum != first->dmalen;
}

/* --- new requests ------------------------------------------------------------------------------------------------- */

/* Is the length of the READ known? A damaged one may have any length in its RETH. */
static bool has_length(const struct record *r)
{
    return !(r->flags & (RECORD_MALFORMED | RECORD_DAMAGED));
}

/* Puts a request into the list. Checks it together with its neighbours, and by the rules of tag matching. */
static void insert(struct lint *l, struct flow *flow, uint32_t number, uint64_t psn)
{
    const struct record *r = &l->recs[number];
    struct request *list = lint_grow(l, flow->requests, flow->num_requests, &flow->cap_requests, sizeof(*list));

    if (!list)
        return;
    flow->requests = list;
    size_t i = after(flow, psn);
    memmove(list + i + 1, list + i, (flow->num_requests - i) * sizeof(*list));
    flow->num_requests++;
    list[i] = (struct request){.psn = psn, .span = 1, .record = number, .damaged = (r->flags & RECORD_DAMAGED) != 0};
    if (is_read(r))
        list[i].span = has_length(r) ? lint_span(flow, r->dmalen) : 0;
    if (is_answered(r) && !list[i].damaged) {
        list[i].response = calloc(1, sizeof(struct response));
        if (!list[i].response)
            l->no_memory = true;
    }
    flow->total_messages += lint_ends_message(l, &list[i]);
    if (i < flow->num_acked) { /* a late packet: its acknowledgment was captured earlier */
        flow->num_acked++;
        flow->acked_messages += lint_ends_message(l, &list[i]);
        flow->acked_receives += lint_ends_receive(l, &list[i]);
    }
    flow->completed += i < flow->completed;
    check_mtu(l, flow, r);
    if (i > 0)
        check_sequence(l, flow, i - 1);
    if (i + 1 < flow->num_requests)
        check_sequence(l, flow, i);
    check_write(l, flow, i);
    if (r->tm && flow->tm && !list[i].damaged)
        lint_tm_send(l, flow, number);
    else if (is_read(r) && !list[i].damaged)
        lint_tm_read(l, flow, number);
}

static void append(struct lint *l, struct flow *flow, uint32_t number, uint64_t psn)
{
    const struct record *r = &l->recs[number];

    insert(l, flow, number, psn);
    struct request *s = lint_find_request(flow, psn);
    flow->next = psn + 1;
    flow->slack = 0;
    if (s && s->span)
        flow->next = psn + s->span;
    else if (is_read(r) && !has_length(r))
        flow->slack = FAR_PSNS / 2;
    else if (is_read(r)) /* the number of responses at the smallest path MTU */
        flow->slack = (uint32_t)(((uint64_t)r->dmalen + PKT_MTU_MIN - 1) / PKT_MTU_MIN - 1);
}

void lint_restart(struct flow *flow)
{
    for (size_t i = 0; i < flow->num_requests; i++) {
        if (flow->requests[i].response)
            free(flow->requests[i].response->seen);
        free(flow->requests[i].response);
    }
    flow->num_requests = flow->num_acked = flow->completed = 0;
    flow->total_messages = flow->acked_messages = 0;
    flow->receives = flow->acked_receives = 0;
    flow->credits = CREDITS_UNSEEN;
    flow->started = flow->msn_known = flow->reported_credit = false;
    flow->slack = 0;
    flow->first_rndv = flow->num_rndv;
    if (flow->peer)
        flow->peer->has_acked = flow->peer->fatal = false;
}

/* True if r asks for a part of the READ s that ends before s does. r is `off` PSNs after the beginning of s. */
static bool is_part(const struct flow *flow, const struct record *r, const struct record *s, uint64_t off)
{
    if (!is_read(r) || r->opcode != s->opcode || r->srqn != s->srqn || r->rkey != s->rkey || r->dmalen == 0)
        return false;
    if (!flow->mtu)
        return off == 0 && r->va == s->va && r->dmalen < s->dmalen;
    return r->va == s->va + off * flow->mtu && r->dmalen % flow->mtu == 0 && off * flow->mtu + r->dmalen < s->dmalen;
}

/* True if r repeats s, or if r asks for the rest of the READ s. r is `off` PSNs after the beginning of s. */
static bool repeats(const struct flow *flow, const struct record *r, const struct record *s, uint64_t off)
{
    if (r->opcode != s->opcode || r->srqn != s->srqn || r->rkey != s->rkey)
        return false;
    if (off == 0)
        return r->len == s->len && r->va == s->va && r->dmalen == s->dmalen;
    return is_read(r) && (!flow->mtu || (r->va == s->va + off * flow->mtu && r->dmalen == s->dmalen - off * flow->mtu));
}

/* True if r begins a new connection with the same first PSN as the old one. The program may have reset the QPs in
 * between, which no packet shows. Two facts speak against a retransmission: all requests are already acknowledged, and
 * r differs from the packet with this PSN. Pumice's own captures mark retransmissions, so there one of the two facts is
 * enough. In other captures both must hold. If a retransmission came first, r may be the original, which the network has
 * delayed. */
static bool begins_again(const struct lint *l, const struct flow *flow, const struct record *r, uint64_t psn)
{
    bool acked = flow->num_acked == flow->num_requests;

    if (!flow->num_requests || psn != flow->requests[0].psn || flow->requests[0].damaged ||
        r->flags & (RECORD_DAMAGED | RECORD_AGAIN) || op_table[r->opcode].properties & (OP_IS_MIDDLE | OP_IS_LAST))
        return false;
    const struct record *first = &l->recs[flow->requests[0].record];
    bool other = !repeats(flow, r, first, 0);
    if (first->flags & RECORD_AGAIN && !other)
        return false;
    return r->flags & RECORD_NOTED ? acked || other : acked && other;
}

static void start(struct lint *l, struct flow *flow, const struct record *r)
{
    flow->started = true;
    flow->next = PSN_BASE + r->psn;
    if (op_table[r->opcode].properties & (OP_IS_MIDDLE | OP_IS_LAST))
        lint_report(l, LINT_MIDWAY, r->frame, "the capture begins in the middle of a message");
}

static void gap(struct lint *l, struct flow *flow, const struct record *r, uint64_t missing)
{
    if (flow->direction == PCAPNG_DIR_OUT)
        lint_report_unless(l, lint_may_lack_packets(l), LINT_GAP, r->frame,
                           "the sender left out %" PRIu64 " PSNs before PSN %u", missing, r->psn);
    else
        lint_report(l, LINT_LOST, r->frame, "%" PRIu64 " PSNs are missing before PSN %u", missing, r->psn);
}

/* --- repeated requests -------------------------------------------------------------------------------------------- */

/* The requester goes back to this request. It comes to those behind it later, unless the connection ends before. */
static void goes_back(struct flow *flow, const struct request *to)
{
    size_t first = (size_t)(to - flow->requests);

    for (size_t i = first; i < flow->num_requests && i < first + LINT_OPEN_MOST; i++) {
        if (flow->requests[i].response)
            flow->requests[i].response->skipped = 0;
    }
}

/* Adds an index to a list of at most 8. *n becomes 9 if there are more. */
static void note_index(uint32_t *list, uint32_t *n, uint32_t index)
{
    if (*n < 8)
        list[*n] = index;
    *n += *n <= 8;
}

/* The requester asks only for missing responses of a READ. It does not come to the requests behind it again. */
static void asks_for_part(struct lint *l, const struct flow *flow, const struct record *r, struct request *s,
                          uint64_t off)
{
    const struct record *first = &l->recs[s->record];

    if (s->response)
        s->response->skipped = 0;
    if (s->response && flow->mtu)
        note_index(s->response->stops, &s->response->num_stops, (uint32_t)off + r->dmalen / flow->mtu - 1);
    lint_report(l, LINT_READ_PART, r->frame,
                "asks for %u bytes of the READ of %u bytes in frame %u again, not for its rest", r->dmalen,
                first->dmalen, first->frame);
}

static void check_repeat(struct lint *l, struct flow *flow, uint32_t number, struct request *s, uint64_t psn)
{
    const struct record *r = &l->recs[number], *first = &l->recs[s->record];
    uint64_t off = psn - s->psn;

    if (r->flags & RECORD_DAMAGED)
        return;
    bool malformed = (r->flags | first->flags) & RECORD_MALFORMED, part = !malformed && is_part(flow, r, first, off);
    if (!malformed && !part && !repeats(flow, r, first, off)) {
        lint_report(l, LINT_REPEAT_DIFFERS, r->frame, "%s has PSN %u of the %s of %u bytes in frame %u", name(r),
                    r->psn, name(first), first->len ? first->len : first->dmalen, first->frame);
        return;
    }
    if (first->flags & RECORD_AGAIN && !(r->flags & RECORD_AGAIN) && off == 0)
        s->record = number; /* the original: only a new connection has one more of these */
    if (s->response && off)
        note_index(s->response->restarts, &s->response->num_restarts, (uint32_t)off);
    if (part)
        asks_for_part(l, flow, r, s, off);
    else
        goes_back(flow, s);
    if (flow->direction == PCAPNG_DIR_OUT && s->completed && s->requester_knows && flow->responses > s->completed_by &&
        r->time_ns > s->completed_ns + DUPLICATE_NS)
        lint_report(l, LINT_DUPLICATE, r->frame, "PSN %u is sent again, %.0f ms after its acknowledgment", r->psn,
                    (double)(r->time_ns - s->completed_ns) / 1e6);
    else
        lint_report(l, LINT_REPEAT, r->frame, "PSN %u again; first in frame %u", r->psn, first->frame);
}

/* Replaces a damaged request by an undamaged retransmission. */
static void replace_damaged(struct lint *l, struct flow *flow, uint32_t number, size_t i)
{
    uint64_t psn = flow->requests[i].psn;
    bool was_end = lint_ends_message(l, &flow->requests[i]), was_last = i + 1 == flow->num_requests;

    flow->total_messages -= was_end;
    if (i < flow->num_acked) {
        flow->num_acked--;
        flow->acked_messages -= was_end;
        flow->acked_receives -= lint_ends_receive(l, &flow->requests[i]);
    }
    flow->completed -= i < flow->completed;
    memmove(flow->requests + i, flow->requests + i + 1, (flow->num_requests - i - 1) * sizeof(*flow->requests));
    flow->num_requests--;
    if (was_last)
        append(l, flow, number, psn);
    else
        insert(l, flow, number, psn);
}

/* While the path MTU is not known, a READ may take any number of the PSNs behind it. A request of one of these PSNs is part of
 * the READ if it asks for a part of its memory. Otherwise it is a request that was missing, and is sent again alone. */
static bool is_part_of(const struct lint *l, const struct request *s, const struct record *r, uint64_t psn)
{
    const struct record *first = &l->recs[s->record];

    if (s->span || psn == s->psn || (r->flags | first->flags) & RECORD_UNUSABLE)
        return true;
    return is_read(r) && r->va >= first->va && r->va + r->dmalen <= first->va + first->dmalen;
}

/* Judges a request whose PSN is not new. It may be within what a damaged READ may have asked for. Then it is a request of its
 * own: nobody has answered the damaged one, so nobody asks for the rest of it. */
static void judge_old(struct lint *l, struct flow *flow, uint32_t number, uint64_t psn)
{
    const struct record *r = &l->recs[number];
    struct request *s = lint_find_request(flow, psn);

    if (s && !s->damaged && !is_part_of(l, s, r, psn))
        s = NULL;
    if (s && s->damaged && s->psn == psn && !(r->flags & RECORD_DAMAGED)) {
        replace_damaged(l, flow, number, (size_t)(s - flow->requests));
    } else if (s && !s->damaged) {
        check_repeat(l, flow, number, s, psn);
    } else if (r->flags & RECORD_DAMAGED) {
        return;
    } else if (flow->num_requests && psn < flow->requests[0].psn) {
        if (!flow->reported_midway)
            lint_report(l, LINT_MIDWAY, r->frame, "PSN %u is older than the first packet of the capture", r->psn);
        flow->reported_midway = true;
        if (flow->num_acked == 0) /* otherwise an earlier ACK may be for it, too, and its MSN counts it */
            insert(l, flow, number, psn);
    } else {
        lint_report(l, LINT_REPEAT, r->frame, "PSN %u is late, or a retransmission", r->psn);
        insert(l, flow, number, psn);
    }
}

void lint_request(struct lint *l, struct flow *flow, uint32_t number)
{
    const struct record *r = &l->recs[number];
    bool damaged = (r->flags & RECORD_DAMAGED) != 0;

    if (!flow->started) {
        if (damaged)
            return;
        start(l, flow, r);
    }
    uint64_t psn = lint_unwrap(r->psn, flow->next);
    int64_t d = (int64_t)(psn - flow->next);
    if (damaged && (d > 0 || d < -FAR_PSNS))
        return; /* the damage may be in the PSN */
    if (d > FAR_PSNS || d < -FAR_PSNS || begins_again(l, flow, r, psn)) {
        lint_report(l, LINT_RESTART, r->frame, "PSN %u after %u: a new connection", r->psn,
                    (uint32_t)(flow->next - 1) & PSN_MASK);
        lint_restart(flow);
        start(l, flow, r);
        psn = flow->next;
        d = 0;
    }
    if (d < 0) {
        judge_old(l, flow, number, psn);
        return;
    }
    if (d > (int64_t)flow->slack)
        gap(l, flow, r, (uint64_t)d - flow->slack);
    append(l, flow, number, psn);
    if (!damaged)
        lint_credit_request(l, flow, r);
}
