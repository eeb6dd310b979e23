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

/* Reserves room for a packet of so many bytes. */
static bool reserve(struct tx_batch *b, uint32_t len)
{
    if (b->n == TX_BATCH_PKTS || len > b->cap - b->used || cuts_run(b, len))
        return false;
    grow_run(b, len);
    b->n++;
    b->used += len;
    return true;
}

struct tx_pkt *tx_append(struct tx_batch *b, const struct pkt *p, const struct av *av, uint32_t src_qpn,
                         uint32_t payload_len, uint8_t **payload)
{
    uint32_t pad = pkt_pad(payload_len);
    uint32_t len = op_table[p->opcode].header_len + payload_len + pad + ICRC_LEN;
    size_t off = b->used;
    if (!reserve(b, len))
        return NULL;
    size_t header_len = pkt_encode(p, b->buf + off);
    *payload = b->buf + off + header_len;
    memset(*payload + payload_len, 0, pad);
    struct tx_pkt *t = &b->pkt[b->n - 1];
    *t = (struct tx_pkt){
        .av = av,
        .off = (uint32_t)off,
        .len = len,
        .src_qpn = src_qpn,
        .psn = p->psn,
        .header_len = (uint16_t)header_len,
    };
    return t;
}

struct tx_pkt *tx_append_plain(struct tx_batch *b, const struct pkt *p, const struct av *av, uint32_t src_qpn,
                               uint32_t payload_len, uint8_t **payload)
{
    uint32_t len = op_table[p->opcode].header_len + payload_len + pkt_pad(payload_len) + ICRC_LEN;
    size_t off = b->used;
    if (!reserve(b, len))
        return NULL;
    struct tx_pkt *t = &b->pkt[b->n - 1];
    struct pkt *plain = &b->plain[b->n - 1];
    *plain = *p;
    plain->payload = *payload = b->buf + off;
    plain->payload_len = payload_len;
    *t = (struct tx_pkt){
        .av = av,
        .off = (uint32_t)off,
        .len = len,
        .src_qpn = src_qpn,
        .psn = p->psn,
        .plain = plain,
    };
    return t;
}

struct pkt_run *tx_append_run(struct tx_batch *b, const struct pkt_run *r, const struct av *av, uint32_t src_qpn,
                              uint8_t **payload)
{
    struct tx_pkt *t = &b->pkt[b->n];
    size_t off = b->used;
    uint32_t n = 0, bytes = 0;
    for (; n < r->n; n++) {
        uint32_t len = pkt_run_payload_len(r, n);
        if (!reserve(b, op_table[pkt_run_opcode(r, n)].header_len + len + pkt_pad(len) + ICRC_LEN))
            break;
        bytes += len;
    }
    if (n == 0)
        return NULL;
    struct pkt_run *run = &b->run[b->runs++];
    *run = *r;
    run->n = n;
    run->payload_len = bytes;
    run->payload = *payload = b->buf + off;
    *t = (struct tx_pkt){
        .av = av,
        .off = (uint32_t)off,
        .len = (uint32_t)(b->used - off),
        .src_qpn = src_qpn,
        .psn = r->first.psn,
        .run = run,
    };
    return run;
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
