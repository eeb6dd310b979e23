// SPDX-License-Identifier: BSD-2-Clause
#include "pcap/lint/lint_credit.h"

#include "wire/pkt.h"
#include "wire/syndrome.h"

bool lint_ends_receive(const struct lint *l, const struct request *s)
{
    uint16_t props = op_table[l->recs[s->record].opcode].properties;

    return !s->damaged && props & OP_NEEDS_RECV && props & (OP_IS_LAST | OP_IS_ONLY);
}

/* A SEND takes its receive request with the first packet. A WRITE with immediate data takes it with the last one, and
 * only that packet shows what it is. */
static bool begins_receive(uint16_t props)
{
    if (!(props & OP_NEEDS_RECV))
        return false;
    return props & OP_IS_SEND ? props & (OP_IS_FIRST | OP_IS_ONLY) : true;
}

void lint_credit_request(struct lint *l, struct flow *flow, const struct record *r)
{
    if (!begins_receive(op_table[r->opcode].properties))
        return;
    flow->receives++;
    /* One message may be sent without a credit. */
    if (flow->credits != CREDITS_GIVEN || flow->reported_credit || (int32_t)(flow->receives - flow->receive_limit) <= 1)
        return;
    flow->reported_credit = true;
    lint_report_unless(l, lint_may_lack_packets(l), LINT_CREDIT, r->frame,
                       "%s is the second message without a credit: the responder has no receive request for it",
                       op_table[r->opcode].name);
}

void lint_credit_response(struct flow *requester, const struct record *r)
{
    uint32_t limit = requester->acked_receives + aeth_credits(r->syndrome);

    if ((r->syndrome & AETH_KIND_MASK) != AETH_ACK)
        return;
    if ((r->syndrome & AETH_VALUE_MASK) == AETH_NO_CREDITS) {
        requester->credits = CREDITS_NONE;
        return;
    }
    if (requester->credits == CREDITS_NONE)
        return;
    if (requester->credits == CREDITS_UNSEEN || (int32_t)(limit - requester->receive_limit) > 0)
        requester->receive_limit = limit;
    requester->credits = CREDITS_GIVEN;
}
