// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/base/tx_batch.h"

#include <string.h>

static bool joins_run(const struct tx_batch *b, uint32_t len)
{
    return b->n && len <= b->last.len && b->last.bytes + len <= b->gso.bytes && b->last.pkts < b->gso.pkts;
}

/* Would the packet begin a run that the end of the batch cuts short? Such a run costs the owner almost as much as a
 * whole one. The limit on packets (TX_BATCH_PKTS) may cut a run if half of the run goes in. It may also cut any run of
 * short packets, because that is cheap. */
static bool cuts_run(const struct tx_batch *b, uint32_t len)
{
    if (b->n == 0 || joins_run(b, len))
        return false;
    uint64_t whole = (uint64_t)b->gso.pkts * len;
    if (whole <= b->gso.bytes)
        return whole > b->cap - b->used;
    return b->gso.bytes > b->cap - b->used || b->gso.bytes / len / 2 > TX_BATCH_PKTS - b->n;
}

static void grow_run(struct tx_batch *b, uint32_t len)
{
    bool joins = joins_run(b, len);
    b->last.bytes = len + (joins ? b->last.bytes : 0);
    b->last.pkts = 1 + (joins ? b->last.pkts : 0);
    b->last.len = joins && len < b->last.len ? 0 : len;
}

void tx_take_back(struct tx_batch *b, uint32_t n, size_t used)
{
    b->n = n;
    b->used = used;
    b->last.len = 0;
}

struct tx_pkt *tx_append(struct tx_batch *b, const struct pkt *p, const struct av *av, uint32_t src_qpn,
                         uint32_t payload_len, uint8_t **payload)
{
    uint32_t pad = pkt_pad(payload_len);
    uint32_t len = op_table[p->opcode].header_len + payload_len + pad + ICRC_LEN;
    if (b->n == TX_BATCH_PKTS || len > b->cap - b->used || cuts_run(b, len))
        return NULL;
    grow_run(b, len);
    uint8_t *at = b->buf + b->used;
    size_t header_len = pkt_encode(p, at);
    *payload = at + header_len;
    memset(*payload + payload_len, 0, pad);
    struct tx_pkt *t = &b->pkt[b->n++];
    *t = (struct tx_pkt){
        .av = av,
        .off = (uint32_t)b->used,
        .len = len,
        .src_qpn = src_qpn,
        .psn = p->psn,
        .header_len = (uint16_t)header_len,
    };
    b->used += len;
    return t;
}

static bool same_destination(const struct av *a, const struct av *b)
{
    return a == b ||
           (memcmp(a->dgid, b->dgid, sizeof(a->dgid)) == 0 && a->sgid_index == b->sgid_index &&
            a->traffic_class == b->traffic_class && a->hop_limit == b->hop_limit && a->flow_label == b->flow_label);
}

uint32_t tx_run_length(const struct tx_batch *b, uint32_t first, uint32_t end)
{
    const struct tx_pkt *p = &b->pkt[first];
    uint32_t bytes = p->len;
    uint32_t n = 1;
    for (; first + n < end && n < b->gso.pkts; n++) {
        const struct tx_pkt *next = &p[n];
        if (next->len > p->len || bytes + next->len > b->gso.bytes || next->off != p->off + bytes ||
            next->cnp != p->cnp || !same_destination(next->av, p->av))
            break;
        bytes += next->len;
        if (next->len < p->len)
            return n + 1; /* the shorter packet is the last of the run */
    }
    return n;
}
