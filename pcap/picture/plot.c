// SPDX-License-Identifier: BSD-2-Clause
#include "pcap/picture/plot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pcap/trace/copies.h"
#include "pcap/trace/pair.h"
#include "pcap/trace/psn_order.h"
#include "wire/pumice/probe.h"
#include "wire/syndrome.h"

/* A request packet, to find the one that a response answers. */
struct asked {
    uint64_t psn;
    uint32_t index; /* of the packet */
};

static bool is_datagram(const struct trace_packet *p)
{
    return (p->opcode & OP_SERVICE_MASK) == OP_SERVICE_UD;
}

/* Messages between devices, of connection management or of Pumice (wire/pumice/probe.h), are of no queue pair. */
static bool is_request(const struct trace *t, const struct trace_packet *p)
{
    return trace_is_request(p) || (is_datagram(p) && p->mad == TRACE_NONE && t->flows[p->flow]->key.qpn != PROBE_QPN);
}

enum plot_side plot_side(const struct plot *p, const struct plot_qp *qp, const struct trace_packet *packet)
{
    if (packet->marks & TRACE_UNUSABLE)
        return PLOT_NOT;
    if (packet->flow == qp->flow && is_request(&p->trace, packet))
        return PLOT_REQUEST;
    if (packet->sack != TRACE_NONE)
        return packet->about == qp->flow ? PLOT_RESPONSE : PLOT_NOT;
    return packet->flow == p->trace.flows[qp->flow]->peer && psn_is_extended(packet) &&
                   op_table[packet->opcode].properties & OP_IS_RESPONSE
               ? PLOT_RESPONSE
               : PLOT_NOT;
}

uint64_t plot_bin_ns(const struct plot *p)
{
    return (p->high_ns - p->low_ns) / PLOT_BINS + 1;
}

/* --- which queue pairs -------------------------------------------------------------------------------------------- */

static int by_requests(const void *a, const void *b)
{
    const struct plot_qp *x = a, *y = b;

    if (x->requests != y->requests)
        return x->requests > y->requests ? -1 : 1;
    return x->flow < y->flow ? -1 : x->flow > y->flow;
}

static void choose(struct plot *p, uint32_t count)
{
    struct trace *t = &p->trace;
    uint32_t *requests = calloc(t->num_flows + 1, sizeof(*requests));
    size_t n = 0;

    for (size_t i = 0; requests && i < t->num_packets; i++)
        requests[t->packets[i].flow] += !(t->packets[i].marks & TRACE_UNUSABLE) && is_request(t, &t->packets[i]);
    for (size_t i = 0; requests && i < t->num_flows; i++)
        p->all_qps += requests[i] && t->flows[i]->wanted;
    p->qps = requests ? calloc(p->all_qps + 1, sizeof(*p->qps)) : NULL;
    if (!p->qps)
        t->no_memory = true;
    for (uint32_t i = 0; p->qps && i < t->num_flows; i++)
        if (requests[i] && t->flows[i]->wanted)
            p->qps[n++] = (struct plot_qp){.flow = i, .requests = requests[i]};
    free(requests);
    if (n)
        qsort(p->qps, n, sizeof(*p->qps), by_requests);
    p->num_qps = n < count ? n : count;
}

/* --- values ------------------------------------------------------------------------------------------------------- */

static void find_times(struct plot *p)
{
    bool first = true;

    for (size_t i = 0; i < p->trace.num_packets; i++) {
        const struct trace_packet *k = &p->trace.packets[i];

        for (size_t q = 0; q < p->num_qps; q++) {
            if (plot_side(p, &p->qps[q], k) == PLOT_NOT)
                continue;
            if (first)
                p->low_ns = k->time_ns;
            first = false;
            p->high_ns = k->time_ns;
        }
    }
}

static void count_packet(const struct plot *p, struct plot_qp *qp, const struct trace_packet *k, bool response)
{
    struct plot_bin *bin = &qp->bins[(k->time_ns - p->low_ns) / plot_bin_ns(p)];
    uint32_t len = k->sack == TRACE_NONE ? k->len : 0; /* a SACK has no data of the program */
    bool lost = k->marks & TRACE_LOST, again = k->marks & TRACE_AGAIN;

    *(lost ? &bin->lost : again ? &bin->again : response ? &bin->read : &bin->sent) += len;
    qp->lost += lost;
    qp->again += again;
    qp->bytes += k->repeats == TRACE_NONE ? len : 0;
    if (!qp->psn_low || k->psn < qp->psn_low)
        qp->psn_low = k->psn;
    if (k->psn > qp->psn_high)
        qp->psn_high = k->psn;
}

static int by_psn(const void *a, const void *b)
{
    const struct asked *x = a, *y = b;

    if (x->psn != y->psn)
        return x->psn < y->psn ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* The only request with this PSN; NULL: there is none, or it was sent several times, so that nobody knows which one the
 * response answers (Karn's algorithm). */
static const struct asked *find_asked(const struct asked *list, size_t n, uint64_t psn)
{
    size_t low = 0, high = n;

    while (low < high) {
        size_t mid = (low + high) / 2;

        if (list[mid].psn < psn)
            low = mid + 1;
        else
            high = mid;
    }
    return low < n && list[low].psn == psn && (low + 1 == n || list[low + 1].psn != psn) ? &list[low] : NULL;
}

static bool is_answer(const struct trace_packet *k)
{
    return !(k->marks & (TRACE_LOST | TRACE_AGAIN)) && k->sack == TRACE_NONE &&
           ((k->opcode & OP_OPERATION_MASK) != OP_ACK || (k->syndrome & AETH_KIND_MASK) == AETH_ACK);
}

static void add_trip(struct plot *p, struct plot_qp *qp, const struct trace_packet *request,
                     const struct trace_packet *response)
{
    uint64_t end = response->arrival_ns ? response->arrival_ns : response->time_ns;

    if (request->marks & (TRACE_LOST | TRACE_AGAIN) || end < request->time_ns)
        return;
    struct plot_trip *more = trace_grow(&p->trace, qp->trips, qp->num_trips, &qp->cap_trips, sizeof(*more));
    if (!more)
        return;
    qp->trips = more;
    more[qp->num_trips++] = (struct plot_trip){response->time_ns, end - request->time_ns};
}

/* Reads the values of one queue pair. */
static void collect(struct plot *p, struct plot_qp *qp)
{
    struct asked *list = calloc(qp->requests + 1u, sizeof(*list));
    uint64_t answered = 0; /* the largest PSN that a trip ended with */
    size_t n = 0;

    if (!list) {
        p->trace.no_memory = true;
        return;
    }
    for (size_t i = 0; i < p->trace.num_packets; i++) {
        const struct trace_packet *k = &p->trace.packets[i];
        enum plot_side side = plot_side(p, qp, k);

        if (side == PLOT_REQUEST && !is_datagram(k))
            list[n++] = (struct asked){k->psn, (uint32_t)i};
        if (side != PLOT_NOT)
            count_packet(p, qp, k, side == PLOT_RESPONSE);
    }
    qsort(list, n, sizeof(*list), by_psn);
    for (size_t i = 0; i < p->trace.num_packets && !p->trace.no_memory; i++) {
        const struct trace_packet *k = &p->trace.packets[i];

        if (plot_side(p, qp, k) != PLOT_RESPONSE || !is_answer(k) || k->psn <= answered)
            continue;
        const struct asked *a = find_asked(list, n, k->psn);
        answered = a ? k->psn : answered;
        if (a)
            add_trip(p, qp, &p->trace.packets[a->index], k);
    }
    free(list);
}

int plot_read(struct plot *p, FILE *f, const char *name, const struct trace_options *options, uint32_t count)
{
    memset(p, 0, sizeof(*p));
    p->name = name;
    int err = trace_read(&p->trace, f, options);
    if (err == -ENOMEM)
        return err;
    copies_merge(&p->trace);
    pair_flows(&p->trace);
    trace_select(&p->trace, options);
    psn_order(&p->trace);
    choose(p, count);
    if (!p->trace.no_memory)
        find_times(p);
    for (size_t i = 0; i < p->num_qps && !p->trace.no_memory; i++)
        collect(p, &p->qps[i]);
    if (p->trace.no_memory)
        return -ENOMEM;
    return err ? err : p->num_qps ? 0 : -ENODATA;
}

void plot_free(struct plot *p)
{
    for (size_t i = 0; i < p->num_qps; i++)
        free(p->qps[i].trips);
    free(p->qps);
    trace_free(&p->trace);
    memset(p, 0, sizeof(*p));
}
