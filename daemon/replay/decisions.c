// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/replay/decisions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pumice/abi.h"
#include "wire/opcode.h"

#define KIND (OP_IS_REQUEST | OP_IS_RESPONSE | OP_IS_SEND | OP_IS_WRITE | OP_IS_READ | OP_IS_ATOMIC)

static const uint8_t strike_of[] = {
    [FAULT_PASS] = PM_STRIKE_NONE,       [FAULT_DROP] = PM_STRIKE_LOST,          [FAULT_DUPLICATE] = PM_STRIKE_TWICE,
    [FAULT_CORRUPT] = PM_STRIKE_DAMAGED, [FAULT_TRUNCATE] = PM_STRIKE_TRUNCATED,
};
static const enum fault_action action_of[PM_STRIKES_END] = {
    [PM_STRIKE_NONE] = FAULT_PASS,       [PM_STRIKE_LOST] = FAULT_DROP,          [PM_STRIKE_TWICE] = FAULT_DUPLICATE,
    [PM_STRIKE_DAMAGED] = FAULT_CORRUPT, [PM_STRIKE_TRUNCATED] = FAULT_TRUNCATE,
};

#define COMPARE(member)                                                                                                \
    if (a->member != b->member)                                                                                        \
    return a->member < b->member ? -1 : 1

static int compare_packets(const struct pm_packet *a, const struct pm_packet *b)
{
    COMPARE(program);
    COMPARE(qp);
    COMPARE(life);
    COMPARE(stream);
    COMPARE(message);
    COMPARE(number);
    COMPARE(attempt);
    return 0;
}

static int compare_planned(const void *a, const void *b)
{
    return compare_packets(&((const struct planned *)a)->decision.packet,
                           &((const struct planned *)b)->decision.packet);
}

/* Why the daemon can't follow the decision; NULL: it can. */
static const char *check_decision(const struct pm_decision *d)
{
    if (d->strike >= PM_STRIKES_END || d->packet.stream >= PM_STREAMS)
        return "a planned decision has an unknown kind";
    if ((d->packet.stream == PM_STREAM_ARRIVAL) != (d->strike == PM_STRIKE_REFUSED))
        return "a planned decision refuses a packet that does not arrive";
    if (d->delay_ns > 3 * FAULT_DELAY_MAX_NS)
        return "a planned decision delays a packet for too long";
    return NULL;
}

static const char *check_page(const struct pm_decisions_page *page, size_t size, uint32_t planned, uint32_t capacity)
{
    if (page->magic != PM_DECISIONS_MAGIC)
        return "the memory of --decisions-fd holds no decisions";
    if (page->abi_version != PM_ABI_VERSION)
        return "the memory of --decisions-fd is of another version";
    if (planned > PM_DECISIONS_MAX || capacity > PM_DECISIONS_MAX ||
        (size - PM_DECISIONS_AT) / sizeof(struct pm_decision) < (size_t)planned + capacity)
        return "the memory of --decisions-fd is too small for its decisions";
    return NULL;
}

/* Copies the planned decisions of this device. Returns 0 or -errno with *why. */
static int take_planned(struct decisions *d, struct pm_decision *from, uint32_t n, uint8_t device, const char **why)
{
    d->planned = calloc(n ? n : 1, sizeof(*d->planned));
    if (!d->planned)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++) {
        struct planned *p = &d->planned[d->num_planned];

        p->decision = from[i];
        p->met = &from[i].met;
        *why = check_decision(&p->decision);
        if (*why)
            return -EINVAL;
        if (p->decision.packet.device != device)
            continue;
        d->num_planned++;
        d->receives = d->receives || p->decision.packet.stream == PM_STREAM_ARRIVAL;
    }
    qsort(d->planned, d->num_planned, sizeof(*d->planned), compare_planned);
    return 0;
}

int decisions_init(struct decisions *d, void *memory, size_t size, uint8_t device, const char **why)
{
    struct pm_decisions_page *page = memory;

    memset(d, 0, sizeof(*d));
    if (size < PM_DECISIONS_AT) {
        *why = "the memory of --decisions-fd is smaller than its first page";
        return -EINVAL;
    }
    uint32_t planned = page->planned, capacity = page->capacity;
    *why = check_page(page, size, planned, capacity);
    if (*why)
        return -EINVAL;

    struct pm_decision *first = (struct pm_decision *)(void *)((uint8_t *)memory + PM_DECISIONS_AT);
    int rc = take_planned(d, first, planned, device, why);
    d->resends = rc ? NULL : calloc(1, sizeof(*d->resends));
    if (!d->resends) {
        decisions_fini(d);
        return rc ? rc : -ENOMEM;
    }
    d->page = page;
    d->replays = page->flags & PM_DECISIONS_REPLAY;
    d->size = size;
    d->recorded = first + planned;
    d->capacity = capacity;
    return 0;
}

void decisions_fini(struct decisions *d)
{
    free(d->planned);
    free(d->resends);
    memset(d, 0, sizeof(*d));
}

void decisions_filter(const struct decisions *d, struct fault_spec *spec)
{
    unsigned kept = 0;

    if (!d->replays)
        return;
    for (unsigned i = 0; i < spec->n; i++)
        if (spec->rule[i].effect == FAULT_ON_LINK || spec->rule[i].effect == FAULT_ON_DAEMON)
            spec->rule[kept++] = spec->rule[i];
    spec->n = kept;
}

void decisions_number_cm(struct decisions *d, struct pm_packet *p)
{
    p->number = p->message >= CM_REQ && p->message <= CM_APR ? ++d->cm_sent[p->message - CM_REQ] : 0;
    p->attempt = 1;
}

/* The index of the first planned decision whose packet does not stand before *p. */
static size_t first_from(const struct decisions *d, const struct pm_packet *p)
{
    size_t lo = 0, hi = d->num_planned;

    while (lo < hi) {
        size_t middle = (lo + hi) / 2;

        if (compare_packets(&d->planned[middle].decision.packet, p) < 0)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

static bool is_plain_ack(uint8_t opcode)
{
    return (opcode & OP_OPERATION_MASK) == OP_ACK && (op_table[opcode].properties & OP_IS_RESPONSE);
}

/* May the decision about a packet with opcode a strike one with opcode b? A message that is sent again may be divided
 * in another way. */
static bool is_same_kind(uint8_t a, uint8_t b)
{
    return ((a ^ b) & OP_SERVICE_MASK) == 0 && ((op_table[a].properties ^ op_table[b].properties) & KIND) == 0;
}

static struct planned *find_exact(struct decisions *d, const struct pm_packet *p)
{
    size_t i = first_from(d, p);

    return i < d->num_planned && compare_packets(&d->planned[i].decision.packet, p) == 0 ? &d->planned[i] : NULL;
}

/* The last planned ACK that this ACK, which is sent for the first time, stands for. NULL: none. */
static struct planned *find_ack(struct decisions *d, const struct pm_packet *p, uint64_t newest)
{
    struct pm_packet from = *p;
    struct planned *found = NULL;

    from.number = newest + 1;
    for (size_t i = first_from(d, &from); i < d->num_planned; i++) {
        struct planned *q = &d->planned[i];

        if (compare_packets(&q->decision.packet, p) > 0)
            break;
        if (q->decision.packet.attempt != 1 || !is_plain_ack(q->decision.packet.opcode))
            continue;
        if (found)
            *found->met = PM_MET_STRUCK; /* the same packet answers for both */
        found = q;
    }
    return found;
}

bool decisions_find(struct decisions *d, const struct pm_packet *p, uint64_t newest, struct fault_verdict *v)
{
    bool is_first_ack = p->stream == PM_STREAM_RESPONSE && p->attempt == 1 && is_plain_ack(p->opcode);

    if (d->num_planned == 0)
        return false;
    struct planned *found = is_first_ack ? find_ack(d, p, newest) : find_exact(d, p);
    if (!found)
        return false;
    if (!is_same_kind(found->decision.packet.opcode, p->opcode)) {
        *found->met = PM_MET_OTHER;
        return false;
    }
    *found->met = PM_MET_STRUCK;
    *v = (struct fault_verdict){
        .action = action_of[found->decision.strike],
        .delay_ns = found->decision.delay_ns,
        .random = found->decision.random,
        .ce = found->decision.marked,
    };
    return true;
}

bool decisions_refuse(struct decisions *d, const struct pm_packet *p)
{
    struct planned *found = find_exact(d, p);

    if (!found)
        return false;
    bool same = is_same_kind(found->decision.packet.opcode, p->opcode);
    *found->met = same ? PM_MET_STRUCK : PM_MET_OTHER;
    return same;
}

static void write_down(struct decisions *d, const struct pm_packet *p, const struct pm_decision *what)
{
    uint64_t at = atomic_fetch_add_explicit(&d->page->recorded, 1, memory_order_relaxed);
    if (at >= d->capacity)
        return;
    struct pm_decision *to = &d->recorded[at];

    *to = *what;
    to->packet = *p;
    to->packet.attempt = 0;
    /* A reader may look at the memory after the daemon was killed at any place. */
    atomic_signal_fence(memory_order_release);
    to->packet.attempt = p->attempt;
}

struct pm_decision decisions_made(const struct pm_packet *p, const struct fault_verdict *v)
{
    return (struct pm_decision){
        .packet = *p, .delay_ns = v->delay_ns, .random = v->random, .strike = strike_of[v->action], .marked = v->ce};
}

void decisions_record(struct decisions *d, const struct pm_decision *made)
{
    if (made->packet.attempt && (made->strike || made->delay_ns || made->marked))
        write_down(d, &made->packet, made);
}

void decisions_record_refusal(struct decisions *d, const struct pm_packet *p)
{
    write_down(d, p, &(struct pm_decision){.strike = PM_STRIKE_REFUSED});
}
