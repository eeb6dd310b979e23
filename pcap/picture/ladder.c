// SPDX-License-Identifier: BSD-2-Clause
#include "pcap/picture/ladder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pcap/trace/copies.h"
#include "pcap/trace/pair.h"
#include "wire/pumice/probe.h"

/* Chooses the packets of the picture. */
static void choose(struct ladder *l, uint32_t count)
{
    struct trace *t = &l->trace;

    l->shown = calloc(t->num_packets + 1, sizeof(*l->shown));
    l->packets = calloc(count + 1u, sizeof(*l->packets));
    if (!l->shown || !l->packets) {
        t->no_memory = true;
        return;
    }
    for (size_t i = 0; i < t->num_packets; i++) {
        const struct trace_packet *p = &t->packets[i];

        if (!t->flows[p->about != TRACE_NONE ? p->about : p->flow]->wanted || p->marks & TRACE_COPY)
            continue;
        if (l->wanted++ >= count)
            continue;
        l->shown[i] = true;
        l->packets[l->num_packets++] = (uint32_t)i;
        l->lost += (p->marks & (TRACE_LOST | TRACE_DAMAGED)) != 0;
        l->again += (p->marks & TRACE_AGAIN) != 0;
    }
}

/* The index of the column of an end, which may be a new one. */
static uint32_t column_of(struct ladder *l, uint32_t host, uint32_t qpn)
{
    for (uint32_t i = 0; i < l->num_columns; i++)
        if (l->columns[i].host == host && l->columns[i].qpn == qpn)
            return i;
    if (l->num_columns == LADDER_COLUMNS_MAX) {
        l->too_many = true;
        return 0;
    }
    l->columns[l->num_columns] = (struct ladder_column){host, qpn};
    return l->num_columns++;
}

static void make_columns(struct ladder *l)
{
    uint32_t qpn[LADDER_COLUMNS_MAX][LADDER_COLUMNS_MAX] = {{0}}; /* of the newest flow between two columns */

    l->of_flow = calloc(l->trace.num_flows + 1, sizeof(*l->of_flow));
    if (!l->of_flow) {
        l->trace.no_memory = true;
        return;
    }
    for (size_t i = 0; i < l->trace.num_flows; i++)
        l->of_flow[i].src = TRACE_NONE;
    for (uint32_t i = 0; i < l->num_packets; i++) {
        const struct trace_flow *flow = l->trace.flows[l->trace.packets[l->packets[i]].flow];
        struct ladder_ends *ends = &l->of_flow[flow->index];
        bool itself = flow->key.src == flow->key.dst && flow->qpn_of_sender && flow->qpn_of_sender != flow->key.qpn;

        if (ends->src != TRACE_NONE)
            continue;
        ends->src = column_of(l, flow->key.src, itself ? flow->qpn_of_sender : 0);
        ends->dst = column_of(l, flow->key.dst, itself ? flow->key.qpn : 0);
        if (flow->key.qpn == MAD_QPN || flow->key.qpn == PROBE_QPN)
            continue;
        l->many_connections |= qpn[ends->src][ends->dst] && qpn[ends->src][ends->dst] != flow->key.qpn;
        qpn[ends->src][ends->dst] = flow->key.qpn;
    }
}

int ladder_read(struct ladder *l, FILE *f, const char *name, const struct trace_options *options, uint32_t count)
{
    memset(l, 0, sizeof(*l));
    l->name = name;
    int err = trace_read(&l->trace, f, options);
    if (err == -ENOMEM)
        return err;
    copies_merge(&l->trace);
    pair_flows(&l->trace);
    trace_select(&l->trace, options);
    messages_find(&l->messages, &l->trace);
    choose(l, count);
    if (!l->trace.no_memory)
        make_columns(l);
    if (!l->trace.no_memory)
        exchanges_find(&l->exchanges, &l->trace, &l->messages, l->shown);
    if (l->trace.no_memory)
        return -ENOMEM;
    if (err || !l->num_packets)
        return err ? err : -ENODATA;
    return l->too_many ? -E2BIG : 0;
}

void ladder_free(struct ladder *l)
{
    exchanges_free(&l->exchanges);
    messages_free(&l->messages);
    trace_free(&l->trace);
    free(l->shown);
    free(l->packets);
    free(l->of_flow);
    memset(l, 0, sizeof(*l));
}
