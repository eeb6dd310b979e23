// SPDX-License-Identifier: BSD-2-Clause
#include "pcap/lint/lint_packet.h"

#include <string.h>

#include "pcap/lint/base/lint_flow.h"
#include "pcap/lint/lint_mad.h"
#include "pcap/lint/lint_sack.h"
#include "pcap/note.h"
#include "pcap/segments.h"
#include "wire/bth.h"
#include "wire/bytes.h"
#include "wire/icrc.h"
#include "wire/pkt.h"
#include "wire/syndrome.h"

#define BTH_TVER 1
#define BTH_PKEY 2
#define PKEY_LIMITED 0x7fff /* limited member of the default partition */

/* --- records ------------------------------------------------------------------------------------------------------ */

static bool has_tmh(uint8_t opcode)
{
    uint16_t properties = op_table[opcode].properties;

    return properties & OP_IS_SEND && properties & (OP_IS_FIRST | OP_IS_ONLY) &&
           (opcode & OP_SERVICE_MASK) != OP_SERVICE_UD && (opcode & OP_SERVICE_MASK) != OP_SERVICE_UC;
}

static void keep_tmh(struct lint *l, struct record *r, const struct pkt *p, size_t there)
{
    struct tm_bytes *t = lint_grow(l, l->tm, l->num_tm, &l->cap_tm, sizeof(*t));

    if (!t)
        return;
    l->tm = t;
    t += l->num_tm++;
    memset(t, 0, sizeof(*t));
    t->len = p->payload_len;
    t->only = (op_table[p->opcode].properties & OP_IS_ONLY) != 0;
    if (there > p->payload_len)
        there = p->payload_len;
    memcpy(t->bytes, p->payload, there < sizeof(t->bytes) ? there : sizeof(t->bytes));
    r->tm = (uint32_t)l->num_tm;
}

/* Appends the record of a packet of this flow; NULL without memory. */
static struct record *add_record(struct lint *l, struct flow *flow, const struct capread_frame *f,
                                 const struct decap *d)
{
    struct record *r = lint_grow(l, l->recs, l->num_recs, &l->cap_recs, sizeof(*r));
    uint32_t *mine = lint_grow(l, flow->recs, flow->num_recs, &flow->cap_recs, sizeof(*mine));

    if (r)
        l->recs = r;
    if (mine)
        flow->recs = mine;
    if (!r || !mine)
        return NULL;
    flow->recs[flow->num_recs++] = (uint32_t)l->num_recs;
    r += l->num_recs++;
    *r = (struct record){
        .time_ns = f->time_ns, .frame = f->number, .flow = flow->index, .direction = (uint8_t)d->direction};
    if (flow->direction == PCAPNG_DIR_UNKNOWN)
        flow->direction = r->direction;
    else if (r->direction != PCAPNG_DIR_UNKNOWN && r->direction != flow->direction)
        r->flags |= RECORD_IGNORED;
    return r;
}

static void count_size(struct flow *flow, const struct pkt *p)
{
    for (unsigned i = 0; op_table[p->opcode].payload == OP_PAYLOAD_FULL && i < 5; i++)
        flow->sizes[i] += p->payload_len == (uint32_t)PKT_MTU_MIN << i;
}

/* Makes the record of a packet. The fields of bth are always known. p is NULL if the packet can't be decoded. */
static void record(struct lint *l, const struct capread_frame *f, const struct decap *d, const uint8_t *bth,
                   const struct pkt *p, size_t there, bool damaged)
{
    struct flow_key key;
    struct note note = {0};

    memset(&key, 0, sizeof(key));
    key.interface = f->interface;
    key.ifindex = d->ifindex;
    key.qpn = bth_dest_qpn(bth);
    if (d->direction == PCAPNG_DIR_OUT && f->comment && note_parse(f->comment, f->comment_len, &note))
        key.src_qpn = note.qpn;
    key.service = bth_opcode(bth) & OP_SERVICE_MASK;
    memcpy(key.src, d->src, 16);
    memcpy(key.dst, d->dst, 16);
    struct flow *flow = lint_flow(l, &key);
    struct record *r = flow ? add_record(l, flow, f, d) : NULL;
    if (!r)
        return;
    r->opcode = bth_opcode(bth);
    r->psn = bth_psn(bth);
    r->flags |= (uint8_t)((damaged ? RECORD_DAMAGED : 0) | (p ? 0 : RECORD_MALFORMED) | (note.qpn ? RECORD_NOTED : 0) |
                          (note.retransmit ? RECORD_AGAIN : 0) | (note.before ? RECORD_BEFORE : 0));
    if (!p)
        return;
    r->len = p->payload_len;
    r->syndrome = p->aeth.syndrome;
    r->msn = p->aeth.msn;
    r->srqn = p->srqn;
    r->va = op_table[p->opcode].headers & OP_HAS_ATOMICETH ? p->atomic.va : p->reth.va;
    r->rkey = op_table[p->opcode].headers & OP_HAS_ATOMICETH ? p->atomic.rkey : p->reth.rkey;
    r->dmalen = p->reth.length;
    if (!damaged)
        count_size(flow, p);
    if (!damaged && !(r->flags & RECORD_IGNORED) && has_tmh(p->opcode))
        keep_tmh(l, r, p, there);
    if (damaged || r->flags & RECORD_IGNORED)
        return;
    r->mad = lint_mad_keep(l, p, there);
    r->sack = lint_sack_keep(l, p, there);
}

/* --- rules for one packet ----------------------------------------------------------------------------------------- */

static void check_cnp(struct lint *l, uint32_t frame, const struct pkt *p)
{
    bool zero = true;

    for (uint32_t i = 0; i < p->payload_len; i++)
        zero = zero && p->payload[i] == 0;
    if (!p->becn || !zero)
        lint_report(l, LINT_CNP, frame, !p->becn ? "CNP without BECN" : "CNP with reserved bytes that are not 0");
}

/* Checks that a response may have this syndrome. READ and atomic responses must have a positive one. */
static void check_syndrome(struct lint *l, uint32_t frame, const struct pkt *p)
{
    uint8_t kind = p->aeth.syndrome & AETH_KIND_MASK;
    bool plain = (p->opcode & OP_OPERATION_MASK) == OP_ACK;

    if (kind == AETH_ACK || (plain && kind == AETH_RNR) ||
        (plain && p->aeth.syndrome >= NAK_PSN_SEQUENCE && p->aeth.syndrome <= NAK_INVALID_RD))
        return;
    lint_report(l, LINT_SYNDROME, frame, "%s with syndrome 0x%02x", op_table[p->opcode].name, p->aeth.syndrome);
}

/* Checks the contents of a packet that was decoded: padding, reserved fields, syndrome. */
static void check_content(struct lint *l, uint32_t frame, const uint8_t *pkt, const struct pkt *p)
{
    uint16_t headers = op_table[p->opcode].headers;

    for (uint32_t i = 0; i < p->pad; i++)
        if (p->payload[p->payload_len + i] != 0) {
            lint_report(l, LINT_PAD, frame, "pad byte %u is 0x%02x", i + 1, p->payload[p->payload_len + i]);
            break;
        }
    if (op_table[p->opcode].payload == OP_PAYLOAD_CNP)
        check_cnp(l, frame, p);
    if (headers & OP_HAS_XRCETH && pkt[BTH_LEN] != 0)
        lint_report(l, LINT_XRCETH, frame, "the reserved bits of the XRCETH are 0x%02x: this is no XRCETH",
                    pkt[BTH_LEN]);
    if (headers & OP_HAS_AETH)
        check_syndrome(l, frame, p);
    if (p->dest_qpn == MAD_QPN)
        lint_mad(l, frame, p);
    lint_sack_form(l, frame, p);
}

static void report_undecodable(struct lint *l, uint32_t frame, const uint8_t *pkt, size_t len, enum pkt_error err)
{
    switch (err) {
    case PKT_VERSION:
        lint_report(l, LINT_TVER, frame, "TVer is %u", pkt[BTH_TVER] & 15u);
        break;
    case PKT_OPCODE:
        lint_report(l, LINT_OPCODE, frame, "opcode 0x%02x is not assigned", pkt[0]);
        break;
    case PKT_SHORT:
        lint_report(l, LINT_SHORT, frame, "%s %s of %zu bytes is too short for its headers", op_service_name(pkt[0]),
                    op_table[pkt[0]].name ? op_table[pkt[0]].name : "?", len);
        break;
    default:
        lint_report(l, LINT_LENGTH, frame, "%s %s with %zu bytes after its headers, pad count %u",
                    op_service_name(pkt[0]), op_table[pkt[0]].name, len - op_table[pkt[0]].header_len - ICRC_LEN,
                    pkt[BTH_TVER] >> 4 & 3u);
    }
}

/* Judges one packet pkt[0 ... len). index is its number in the datagram. */
static void packet(struct lint *l, const struct capread_frame *f, const struct decap *d, const uint8_t *pkt, size_t len,
                   uint16_t index)
{
    struct pkt p;
    uint16_t pkey;

    if (len < BTH_LEN + ICRC_LEN) {
        lint_report(l, LINT_SHORT, f->number, "%zu bytes are too short for a RoCEv2 packet", len);
        return;
    }
    bool damaged = decap_icrc(d, index, pkt, len - ICRC_LEN) != icrc_load(pkt + len - ICRC_LEN);
    memset(&p, 0, sizeof(p));
    enum pkt_error err = pkt_decode(pkt, len, &p);
    bool struck = f->comment && note_faults(f->comment, f->comment_len) & NOTE_DAMAGED;
    if (damaged)
        lint_report_unless(l, l->options->faulty || struck, LINT_ICRC, f->number, "the ICRC is %08x, expected %08x",
                           __builtin_bswap32(icrc_load(pkt + len - ICRC_LEN)),
                           __builtin_bswap32(decap_icrc(d, index, pkt, len - ICRC_LEN)));
    else if (err != PKT_OK)
        report_undecodable(l, f->number, pkt, len, err);
    get_be16(pkt + BTH_PKEY, &pkey);
    if (!damaged && pkey != PKEY_DEFAULT && pkey != PKEY_LIMITED)
        lint_report(l, LINT_PKEY, f->number, "P_Key is 0x%04x", pkey);
    if (!damaged && err == PKT_OK)
        check_content(l, f->number, pkt, &p);
    if (err == PKT_OK || op_table[pkt[0]].name)
        record(l, f, d, pkt, err == PKT_OK ? &p : NULL, len, damaged);
}

/* --- datagrams ---------------------------------------------------------------------------------------------------- */

/* Handles a packet whose end was not captured. Its headers are judged; its ICRC and payload are not. */
static void truncated(struct lint *l, const struct capread_frame *f, const struct decap *d)
{
    uint8_t whole[SEGMENTS_PACKET_MAX] = {0};
    struct pkt p;

    lint_report(l, LINT_TRUNCATED, f->number, "only %zu of %zu bytes were captured", d->caplen, d->len);
    if (d->caplen < BTH_LEN || d->len > sizeof(whole))
        return;
    memcpy(whole, d->payload, d->caplen);
    memset(&p, 0, sizeof(p));
    if (op_table[whole[0]].name && d->caplen >= op_table[whole[0]].header_len &&
        pkt_decode(whole, d->len, &p) == PKT_OK) {
        record(l, f, d, whole, &p, d->caplen - op_table[whole[0]].header_len, false);
        if (has_tmh(p.opcode) && l->num_tm && d->caplen - op_table[whole[0]].header_len < sizeof(l->tm->bytes))
            l->tm[l->num_tm - 1].len = 0; /* too few bytes were captured for a TMH */
    } else if (op_table[whole[0]].name) {
        record(l, f, d, whole, NULL, 0, false);
    }
}

void lint_datagram(struct lint *l, const struct capread_frame *f, const struct decap *d)
{
    size_t size = 0;
    unsigned step = 0;

    if (d->caplen < d->len) {
        truncated(l, f, d);
        return;
    }
    if (!segments_is_packet(d))
        size = segments_size(d, &step);
    if (!size && d->len > SEGMENTS_PACKET_MAX) {
        lint_report(
            l, LINT_MERGED, f->number,
            "%zu bytes: packets merged by GSO or GRO that can't be separated; switch GSO and GRO off and capture again",
            d->len);
        l->lost = true;
        return;
    }
    if (!size) {
        packet(l, f, d, d->payload, d->len, 0);
        return;
    }
    lint_report(l, LINT_MERGED, f->number, "%zu packets in one datagram, merged by GSO or GRO",
                (d->len + size - 1) / size);
    for (size_t at = 0; at < d->len; at += size)
        packet(l, f, d, d->payload + at, d->len - at < size ? d->len - at : size, (uint16_t)(at / size * step));
}
