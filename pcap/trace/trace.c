// SPDX-License-Identifier: BSD-2-Clause
#include "pcap/trace/trace.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pcap/decap.h"
#include "pcap/segments.h"
#include "wire/bth.h"
#include "wire/cm_msg.h"
#include "wire/gid.h"
#include "wire/icrc.h"
#include "wire/pkt.h"
#include "wire/pumice/probe.h"
#include "wire/pumice/sack.h"

#define ECN_MASK 3
#define ECN_CE 3

void *trace_grow(struct trace *t, void *array, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return array;
    size_t more = *cap ? *cap * 2 : 16;
    void *bigger = realloc(array, more * size);

    if (!bigger) {
        t->no_memory = true;
        return NULL;
    }
    *cap = more;
    return bigger;
}

void trace_address(const uint8_t address[16], char text[TRACE_ADDRESS_MAX])
{
    if (gid_is_v4(address))
        inet_ntop(AF_INET, address + GID_V4_AT, text, TRACE_ADDRESS_MAX);
    else
        inet_ntop(AF_INET6, address, text, TRACE_ADDRESS_MAX);
}

/* --- hosts and flows ---------------------------------------------------------------------------------------------- */

/* The index of the host with this address. TRACE_NONE without memory. */
static uint32_t host_of(struct trace *t, const uint8_t address[16])
{
    struct trace_host *h;

    HASH_FIND(hh, t->by_address, address, 16, h);
    if (h)
        return h->index;
    struct trace_host **list = trace_grow(t, t->hosts, t->num_hosts, &t->cap_hosts, sizeof(struct trace_host *));
    if (list)
        t->hosts = list;
    h = list ? calloc(1, sizeof(*h)) : NULL;
    if (!h) {
        t->no_memory = true;
        return TRACE_NONE;
    }
    memcpy(h->address, address, 16);
    HASH_ADD(hh, t->by_address, address, 16, h);
    h->index = (uint32_t)t->num_hosts;
    t->hosts[t->num_hosts++] = h;
    return h->index;
}

/* The index of the flow with this key, which may be a new one. TRACE_NONE without memory. */
static uint32_t find_flow(struct trace *t, const struct trace_flow_key *key)
{
    struct trace_flow *flow, **list;

    HASH_FIND(hh, t->by_key, key, sizeof(*key), flow);
    if (flow)
        return flow->index;
    list = trace_grow(t, t->flows, t->num_flows, &t->cap_flows, sizeof(struct trace_flow *));
    if (list)
        t->flows = list;
    flow = list ? calloc(1, sizeof(*flow)) : NULL;
    if (!flow) {
        t->no_memory = true;
        return TRACE_NONE;
    }
    flow->key = *key;
    flow->newest = TRACE_NONE;
    flow->qpn_of_sender = key->src_qpn;
    flow->peer = TRACE_NONE;
    flow->index = (uint32_t)t->num_flows;
    t->flows[t->num_flows++] = flow;
    HASH_ADD(hh, t->by_key, key, sizeof(flow->key), flow);
    return flow->index;
}

/* As find_flow. A packet whose sender is not known may be a copy of one whose sender is. So it belongs to the newest flow
 * that has a sender and is otherwise equal. */
static uint32_t flow_of(struct trace *t, const struct trace_flow_key *key)
{
    struct trace_flow_key any = *key;
    uint32_t flow = find_flow(t, key), without;

    if (flow == TRACE_NONE)
        return flow;
    if (!key->src_qpn)
        return t->flows[flow]->newest != TRACE_NONE ? t->flows[flow]->newest : flow;
    any.src_qpn = 0;
    without = find_flow(t, &any);
    if (without != TRACE_NONE)
        t->flows[without]->newest = flow;
    return flow;
}

/* --- packets ------------------------------------------------------------------------------------------------------ */

/* The fields that all packets of a datagram share. */
struct datagram {
    const struct capread_frame *frame;
    const struct decap *decap;
    struct note note; /* zeros: none */
    uint8_t faults; /* enum note_fault */
    uint16_t part; /* number of the packet in the datagram */
};

static void keep_tm(struct trace *t, struct trace_packet *p, const struct pkt *k, size_t there)
{
    uint16_t properties = op_table[k->opcode].properties;
    uint32_t service = k->opcode & OP_SERVICE_MASK;
    struct trace_tm tm;

    memset(&tm, 0, sizeof(tm));
    if (there > k->payload_len)
        there = k->payload_len;
    if (!(properties & OP_IS_SEND) || !(properties & (OP_IS_FIRST | OP_IS_ONLY)) ||
        (service != OP_SERVICE_RC && service != OP_SERVICE_XRC) || !tmh_decode(k->payload, there, &tm.tmh) ||
        (tm.tmh.opcode != TMH_RNDV && tm.tmh.opcode != TMH_FIN))
        return;
    if (!rvh_decode(k->payload + TMH_LEN, there - TMH_LEN, &tm.rvh) && tm.tmh.opcode == TMH_RNDV)
        return;
    struct trace_tm *all = trace_grow(t, t->tms, t->num_tms, &t->cap_tms, sizeof(*all));
    if (!all)
        return;
    t->tms = all;
    all[t->num_tms] = tm;
    p->tm = (uint32_t)t->num_tms++;
}

static void keep_mad(struct trace *t, struct trace_packet *p, const struct pkt *k, size_t there)
{
    struct cm_msg m;

    if (k->dest_qpn != MAD_QPN || k->payload_len != MAD_LEN || there < MAD_LEN ||
        cm_msg_decode(k->payload, &m) != CM_DECODE_OK)
        return;
    struct trace_mad *all = trace_grow(t, t->mads, t->num_mads, &t->cap_mads, sizeof(*all));
    if (!all)
        return;
    t->mads = all;
    memcpy(all[t->num_mads].bytes, k->payload, MAD_LEN);
    p->mad = (uint32_t)t->num_mads++;
}

static void keep_sack(struct trace *t, struct trace_packet *p, const struct pkt *k, size_t there)
{
    struct sack s;

    if (k->dest_qpn != PROBE_QPN || k->opcode != (OP_SERVICE_UD | OP_SEND_ONLY) || there < k->payload_len ||
        !sack_decode(k->payload, k->payload_len, &s))
        return;
    struct trace_sack *all = trace_grow(t, t->sacks, t->num_sacks, &t->cap_sacks, sizeof(*all));
    if (!all)
        return;
    t->sacks = all;
    all += t->num_sacks;
    *all = (struct trace_sack){s.requester, s.responder, s.expected, s.gaps, 0};
    for (uint32_t i = 0; i < s.gaps; i++)
        all->missing += (s.gap[i].end - s.gap[i].start) & PSN_MASK;
    p->sack = (uint32_t)t->num_sacks++;
}

static void set_headers(struct trace_packet *p, const struct pkt *k)
{
    bool atomic = op_table[k->opcode].headers & OP_HAS_ATOMICETH;

    p->len = k->payload_len;
    p->syndrome = k->aeth.syndrome;
    p->msn = k->aeth.msn;
    p->va = atomic ? k->atomic.va : k->reth.va;
    p->rkey = atomic ? k->atomic.rkey : k->reth.rkey;
    p->dmalen = k->reth.length;
}

static uint8_t marks_of(const struct datagram *g, const struct pkt *k, bool damaged)
{
    const struct decap *d = g->decap;
    uint8_t tos = d->is_v6 ? (uint8_t)(d->ip[0] << 4 | d->ip[1] >> 4) : d->ip[1];

    return (uint8_t)((g->faults & NOTE_LOST ? TRACE_LOST : 0) | (g->note.retransmit ? TRACE_AGAIN : 0) |
                     (damaged || g->faults & NOTE_DAMAGED ? TRACE_DAMAGED : 0) |
                     (g->faults & NOTE_TWICE ? TRACE_TWICE : 0) | (g->faults & NOTE_LATE ? TRACE_LATE : 0) |
                     ((tos & ECN_MASK) == ECN_CE || g->faults & NOTE_MARKED ? TRACE_CE : 0) |
                     (k ? 0 : TRACE_MALFORMED));
}

/* Notes which process sends the packets of a flow. */
static void note_sender(struct trace_flow *flow, const struct note *note, const struct capread_frame *f)
{
    if (flow->pid || !note->pid)
        return;
    flow->pid = note->pid;
    note_comm(f->comment, f->comment_len, flow->comm);
}

/* Keeps a packet that begins with the BTH at `bytes`. k is NULL if it can't be decoded. */
static void keep(struct trace *t, const struct datagram *g, const uint8_t *bytes, const struct pkt *k, size_t there,
                 bool damaged, uint32_t icrc)
{
    struct trace_flow_key key;
    uint32_t flow;

    memset(&key, 0, sizeof(key));
    key.src = host_of(t, g->decap->src);
    key.dst = host_of(t, g->decap->dst);
    key.qpn = bth_dest_qpn(bytes);
    key.service = bth_opcode(bytes) & OP_SERVICE_MASK;
    key.src_qpn = g->decap->direction == PCAPNG_DIR_OUT ? g->note.qpn : 0;
    if (k && op_table[k->opcode].headers & OP_HAS_DETH)
        key.src_qpn = k->deth.src_qpn;
    flow = key.src == TRACE_NONE || key.dst == TRACE_NONE ? TRACE_NONE : flow_of(t, &key);
    struct trace_packet *p = trace_grow(t, t->packets, t->num_packets, &t->cap_packets, sizeof(*p));
    if (!p || flow == TRACE_NONE)
        return;
    t->packets = p;
    p += t->num_packets++;
    *p = (struct trace_packet){.time_ns = g->frame->time_ns,
                               .psn = bth_psn(bytes),
                               .frame = g->frame->number,
                               .flow = flow,
                               .icrc = icrc,
                               .part = g->part,
                               .mad = TRACE_NONE,
                               .tm = TRACE_NONE,
                               .sack = TRACE_NONE,
                               .about = TRACE_NONE,
                               .message = TRACE_NONE,
                               .repeats = TRACE_NONE,
                               .reason = TRACE_NONE,
                               .first_acked = TRACE_NONE,
                               .opcode = bth_opcode(bytes),
                               .direction = (uint8_t)g->decap->direction,
                               .marks = marks_of(g, k, damaged),
                               .noted = g->note.qpn != 0 || g->faults,
                               .has_wr = g->note.has_wr,
                               .wr_id = g->note.wr_id};
    t->flows[flow]->packets++;
    if (g->decap->direction == PCAPNG_DIR_OUT)
        note_sender(t->flows[flow], &g->note, g->frame);
    if (!k)
        return;
    set_headers(p, k);
    /* Also of damaged packets: if most ICRCs are wrong, none of them counts as damaged (judge_icrcs). */
    for (unsigned i = 0; op_table[k->opcode].payload == OP_PAYLOAD_FULL && i < 5; i++)
        t->flows[flow]->sizes[i] += k->payload_len == (uint32_t)PKT_MTU_MIN << i;
    keep_tm(t, p, k, there);
    keep_mad(t, p, k, there);
    keep_sack(t, p, k, there);
}

/* --- datagrams ---------------------------------------------------------------------------------------------------- */

/* A packet whose end was not captured. */
static void truncated(struct trace *t, const struct datagram *g)
{
    const struct decap *d = g->decap;
    uint8_t whole[SEGMENTS_PACKET_MAX] = {0};
    struct pkt k;

    if (d->caplen < BTH_LEN || d->len > sizeof(whole)) {
        t->unmerged |= d->len > sizeof(whole);
        return;
    }
    memcpy(whole, d->payload, d->caplen);
    memset(&k, 0, sizeof(k));
    if (!op_table[whole[0]].name)
        return;
    t->roce++;
    if (d->caplen >= op_table[whole[0]].header_len && pkt_decode(whole, d->len, &k) == PKT_OK)
        keep(t, g, whole, &k, d->caplen - op_table[whole[0]].header_len, false, 0);
    else
        keep(t, g, whole, NULL, 0, false, 0);
}

/* One packet pkt[0 ... len). index is its number in the datagram. */
static void packet(struct trace *t, struct datagram *g, const uint8_t *pkt, size_t len, uint16_t index)
{
    struct pkt k;

    if (len < BTH_LEN + ICRC_LEN || !op_table[pkt[0]].name)
        return;
    t->roce++;
    uint32_t icrc = icrc_load(pkt + len - ICRC_LEN);
    memset(&k, 0, sizeof(k));
    bool good = pkt_decode(pkt, len, &k) == PKT_OK;
    bool damaged = decap_icrc(g->decap, index, pkt, len - ICRC_LEN) != icrc;
    keep(t, g, pkt, good ? &k : NULL, good ? k.payload_len : 0, damaged, icrc);
    g->part++;
}

static void datagram(struct trace *t, struct datagram *g)
{
    const struct decap *d = g->decap;
    size_t size = 0;
    unsigned step = 0;

    if (d->caplen < d->len) {
        truncated(t, g);
        return;
    }
    if (!segments_is_packet(d))
        size = segments_size(d, &step);
    if (!size && d->len > SEGMENTS_PACKET_MAX)
        t->unmerged = true;
    else if (!size)
        packet(t, g, d->payload, d->len, 0);
    for (size_t at = 0; size && at < d->len; at += size)
        packet(t, g, d->payload + at, d->len - at < size ? d->len - at : size, (uint16_t)(at / size * step));
}

/* --- the part that is wanted -------------------------------------------------------------------------------------- */

static bool is_host(const struct trace_options *o, const uint8_t address[16])
{
    for (unsigned i = 0; i < o->num_hosts; i++)
        if (memcmp(o->hosts[i], address, 16) == 0)
            return true;
    return false;
}

static bool hosts_wanted(const struct trace_options *o, const struct decap *d)
{
    bool src = is_host(o, d->src), dst = is_host(o, d->dst);

    return o->num_hosts == 0 || (o->num_hosts == 1 ? src || dst : src && dst);
}

/* The position of a frame, in the unit of the place. */
static uint64_t position(const struct trace *t, const struct trace_place *place, const struct capread_frame *f)
{
    if (!place->is_time)
        return f->number;
    return f->time_ns > t->start_ns ? f->time_ns - t->start_ns : 0;
}

static bool place_wanted(const struct trace *t, const struct trace_options *o, const struct capread_frame *f)
{
    return (!o->from.given || position(t, &o->from, f) >= o->from.value) &&
           (!o->to.given || position(t, &o->to, f) <= o->to.value);
}

static void read_frame(struct trace *t, const struct trace_options *o, const struct capread_frame *f)
{
    struct decap d;
    struct datagram g = {.frame = f, .decap = &d};

    if (decap_frame(f, &d) != DECAP_ROCE)
        return;
    if (!t->roce)
        t->start_ns = f->time_ns;
    if (!hosts_wanted(o, &d) || !place_wanted(t, o, f)) {
        t->roce++;
        return;
    }
    if (t->num_packets >= TRACE_PACKETS_MAX) {
        t->full = true;
        t->roce++;
        return;
    }
    if (f->comment) {
        note_parse(f->comment, f->comment_len, &g.note);
        g.faults = note_faults(f->comment, f->comment_len);
    }
    datagram(t, &g);
}

/* If most ICRCs are wrong, the program that made the capture changed the packets, and no network did. */
static void judge_icrcs(struct trace *t)
{
    size_t wrong = 0;

    for (size_t i = 0; i < t->num_packets; i++)
        wrong += (t->packets[i].marks & TRACE_DAMAGED) != 0;
    t->icrc_unknown = wrong > t->num_packets / 2;
    for (size_t i = 0; i < t->num_packets && t->icrc_unknown; i++)
        t->packets[i].marks &= (uint8_t)~TRACE_DAMAGED;
}

static int by_time(const void *a, const void *b)
{
    const struct trace_packet *x = a, *y = b;

    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    return x->frame != y->frame ? (x->frame < y->frame ? -1 : 1) : (int)x->part - (int)y->part;
}

int trace_read(struct trace *t, FILE *f, const struct trace_options *options)
{
    struct capread_frame frame;
    int got;

    memset(t, 0, sizeof(*t));
    struct capread *c = capread_open(f, t->error);
    if (!c) {
        fclose(f);
        return -EINVAL;
    }
    while ((got = capread_next(c, &frame, t->error)) == 1 && !t->no_memory) {
        t->frames++;
        read_frame(t, options, &frame);
    }
    t->lost = capread_lost(c);
    t->faults = capread_faults(c);
    capread_close(c);
    judge_icrcs(t);
    /* A file of several interfaces need not be in the order of time. */
    for (size_t i = 1; i < t->num_packets; i++) {
        if (by_time(&t->packets[i - 1], &t->packets[i]) > 0) {
            qsort(t->packets, t->num_packets, sizeof(*t->packets), by_time);
            break;
        }
    }
    return t->no_memory ? -ENOMEM : got < 0 ? -EINVAL : 0;
}

void trace_select(struct trace *t, const struct trace_options *options)
{
    for (size_t i = 0; i < t->num_flows; i++) {
        struct trace_flow *flow = t->flows[i];

        flow->wanted = options->num_qps == 0;
        for (unsigned k = 0; k < options->num_qps; k++)
            flow->wanted |= flow->key.qpn == options->qps[k] || flow->qpn_of_sender == options->qps[k];
    }
}

void trace_free(struct trace *t)
{
    HASH_CLEAR(hh, t->by_key);
    HASH_CLEAR(hh, t->by_address);
    for (size_t i = 0; i < t->num_flows; i++)
        free(t->flows[i]);
    for (size_t i = 0; i < t->num_hosts; i++)
        free(t->hosts[i]);
    free(t->flows);
    free(t->hosts);
    free(t->packets);
    free(t->tms);
    free(t->sacks);
    free(t->mads);
    memset(t, 0, sizeof(*t));
}
