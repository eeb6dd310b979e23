// SPDX-License-Identifier: BSD-2-Clause
#include "pcap/picture/packet_text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "pcap/cm_text.h"
#include "pcap/picture/svg.h"
#include "pcap/trace/psn_order.h"
#include "wire/cm_msg.h"
#include "wire/pkt.h"
#include "wire/syndrome.h"

#define DOT " \xc2\xb7 " /* middle dot */

/* Appends to text, which has room for max bytes. */
static void add(char *text, size_t max, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void add(char *text, size_t max, const char *format, ...)
{
    size_t used = strlen(text);
    va_list ap;

    va_start(ap, format);
    vsnprintf(text + used, max - used, format, ap);
    va_end(ap);
}

static bool is_ack(const struct trace_packet *p)
{
    return (p->opcode & OP_OPERATION_MASK) == OP_ACK && op_table[p->opcode].properties & OP_IS_RESPONSE;
}

static uint32_t psn_of(const struct trace_packet *p)
{
    return (uint32_t)p->psn & PSN_MASK;
}

/* --- colours ------------------------------------------------------------------------------------------------------ */

enum packet_class packet_class(const struct trace_packet *p)
{
    uint16_t properties = op_table[p->opcode].properties;

    if (p->mad != TRACE_NONE)
        return PACKET_CM;
    if (!(properties & (OP_IS_REQUEST | OP_IS_RESPONSE)))
        return PACKET_CNP;
    if (p->sack != TRACE_NONE)
        return PACKET_NAK;
    if ((p->opcode & OP_SERVICE_MASK) == OP_SERVICE_UD)
        return PACKET_DATAGRAM;
    if (is_ack(p))
        return (p->syndrome & AETH_KIND_MASK) == AETH_ACK ? PACKET_ACK : PACKET_NAK;
    if (properties & OP_IS_SEND)
        return PACKET_SEND;
    if (properties & OP_IS_WRITE)
        return PACKET_WRITE;
    return properties & OP_IS_READ ? PACKET_READ : PACKET_ATOMIC;
}

const char *packet_class_name(enum packet_class c)
{
    static const char *const names[PACKET_CLASSES] = {
        "send", "write", "read", "atomic", "ack", "nak", "cm", "datagram", "cnp",
    };

    return c < PACKET_CLASSES ? names[c] : "ack";
}

/* --- at the arrow ------------------------------------------------------------------------------------------------- */

static void ack_label(char text[PACKET_TEXT_MAX], const struct trace_packet *p)
{
    char time[SVG_NUMBER_MAX];

    switch (p->syndrome & AETH_KIND_MASK) {
    case AETH_ACK:
        add(text, PACKET_TEXT_MAX, "ACK");
        return;
    case AETH_RNR:
        add(text, PACKET_TEXT_MAX, "RNR NAK (wait %s)", svg_duration(time, rnr_timer_ns(p->syndrome)));
        return;
    default:
        break;
    }
    switch (p->syndrome) {
    case NAK_PSN_SEQUENCE:
        add(text, PACKET_TEXT_MAX, "NAK: PSN sequence error");
        return;
    case NAK_INVALID_REQUEST:
        add(text, PACKET_TEXT_MAX, "NAK: invalid request");
        return;
    case NAK_REMOTE_ACCESS:
        add(text, PACKET_TEXT_MAX, "NAK: remote access error");
        return;
    case NAK_REMOTE_OPERATION:
        add(text, PACKET_TEXT_MAX, "NAK: remote operational error");
        return;
    default:
        add(text, PACKET_TEXT_MAX, "NAK with syndrome 0x%02x", p->syndrome);
        return;
    }
}

void packet_label(char text[PACKET_TEXT_MAX], const struct trace *t, const struct trace_packet *p)
{
    const char *name = op_table[p->opcode].name, *service = op_service_name(p->opcode);
    struct cm_msg m;

    text[0] = 0;
    if (p->mad != TRACE_NONE) {
        cm_msg_decode(t->mads[p->mad].bytes, &m);
        add(text, PACKET_TEXT_MAX, "%s", cm_attribute_name(m.attribute));
        return;
    }
    if (p->sack != TRACE_NONE) {
        add(text, PACKET_TEXT_MAX, "SACK" DOT "PSN %" PRIu32, t->sacks[p->sack].expected);
        return;
    }
    if (is_ack(p) && !(p->marks & TRACE_MALFORMED)) {
        ack_label(text, p);
    } else {
        if (strcmp(service, "RC") != 0 && strcmp(service, "CNP") != 0)
            add(text, PACKET_TEXT_MAX, "%s ", service);
        add(text, PACKET_TEXT_MAX, "%s", name ? name : "?");
    }
    if (packet_class(p) != PACKET_CNP)
        add(text, PACKET_TEXT_MAX, DOT "PSN %" PRIu32, psn_of(p));
}

/* --- beside the arrow --------------------------------------------------------------------------------------------- */

static const char *message_name(const struct message *m)
{
    uint8_t operation = m->opcode & OP_OPERATION_MASK;
    uint16_t properties = op_table[m->opcode].properties;

    if ((m->opcode & OP_SERVICE_MASK) == OP_SERVICE_UD)
        return "datagram";
    if (properties & OP_IS_SEND)
        return "SEND";
    if (properties & OP_IS_WRITE)
        return "WRITE";
    if (properties & OP_IS_READ)
        return "READ";
    switch (operation) {
    case OP_CMP_SWAP:
        return "compare and swap";
    case OP_FETCH_ADD:
        return "fetch and add";
    case OP_FLUSH:
        return "FLUSH";
    case OP_ATOMIC_WRITE:
        return "ATOMIC WRITE";
    default:
        return "message";
    }
}

static void add_bytes(char *text, size_t max, const char *before, uint64_t bytes)
{
    char number[SVG_NUMBER_MAX];

    add(text, max, "%s%s byte%s", before, svg_number(number, bytes), bytes == 1 ? "" : "s");
}

/* The messages that an ACK acknowledges, or the one that a NAK is about. */
static void add_answered(char text[PACKET_TEXT_MAX], const struct messages *m, const struct trace_packet *p)
{
    const struct message *at = &m->list[p->message];
    const struct message *first = p->first_acked != TRACE_NONE ? &m->list[p->first_acked] : NULL;
    uint32_t last = at->ended && at->end > p->psn ? at->number - 1 : at->number;

    if ((p->syndrome & AETH_KIND_MASK) == AETH_RNR)
        add(text, PACKET_TEXT_MAX, "no receive request for %s #%" PRIu32, message_name(at), at->number);
    else if (p->syndrome == NAK_PSN_SEQUENCE)
        add(text, PACKET_TEXT_MAX, "asks for %s #%" PRIu32 " again", message_name(at), at->number);
    else if ((p->syndrome & AETH_KIND_MASK) == AETH_NAK)
        add(text, PACKET_TEXT_MAX, "refuses %s #%" PRIu32, message_name(at), at->number);
    else if (first && first->number < last)
        add(text, PACKET_TEXT_MAX, "acknowledges #%" PRIu32 " to #%" PRIu32, first->number, last);
    else if (first)
        add(text, PACKET_TEXT_MAX, "acknowledges %s #%" PRIu32, message_name(first), first->number);
    else if (last != at->number)
        add(text, PACKET_TEXT_MAX, "acknowledges a part of %s #%" PRIu32, message_name(at), at->number);
    else
        add(text, PACKET_TEXT_MAX, "acknowledges %s #%" PRIu32 " again", message_name(at), at->number);
}

static void add_port_space(char text[PACKET_TEXT_MAX], const char *before, uint64_t service_id)
{
    const char *space = cm_text_port_space(service_id);

    if (space)
        add(text, PACKET_TEXT_MAX, "%s%s port %u", before, space, (unsigned)(service_id & 0xffff));
}

/* Appends the field that matters most in this message of connection management. */
static void add_cm(char text[PACKET_TEXT_MAX], const struct trace_mad *mad)
{
    struct cm_msg m;

    if (cm_msg_decode(mad->bytes, &m) != CM_DECODE_OK)
        return;
    switch ((enum cm_attribute)m.attribute) {
    case CM_REQ:
        add(text, PACKET_TEXT_MAX, "QP 0x%06" PRIx32 ", wants PSN %" PRIu32, m.req.local_qpn, m.req.starting_psn);
        add_port_space(text, ", ", m.req.service_id);
        break;
    case CM_REP:
        add(text, PACKET_TEXT_MAX, "QP 0x%06" PRIx32 ", wants PSN %" PRIu32,
            m.rep.local_qpn ? m.rep.local_qpn : m.rep.local_eecn, m.rep.starting_psn);
        break;
    case CM_REJ:
        add(text, PACKET_TEXT_MAX, "%s", cm_reject_reason_text(m.rej.reason));
        break;
    case CM_DREQ:
        add(text, PACKET_TEXT_MAX, "QP 0x%06" PRIx32 " of the receiver", m.dreq.remote_qpn);
        break;
    case CM_SIDR_REQ:
        add_port_space(text, "", m.sidr_req.service_id);
        break;
    case CM_SIDR_REP:
        add(text, PACKET_TEXT_MAX, "%s", cm_sidr_status_text(m.sidr_rep.status));
        if (m.sidr_rep.status == CM_SIDR_SUCCESS)
            add(text, PACKET_TEXT_MAX, ", QP 0x%06" PRIx32, m.sidr_rep.qpn);
        break;
    case CM_MRA:
    case CM_RTU:
    case CM_DREP:
    case CM_LAP:
    case CM_APR:
        break;
    }
}

void packet_message(char text[PACKET_TEXT_MAX], const struct trace *t, const struct messages *m, uint32_t index)
{
    const struct trace_packet *p = &t->packets[index];
    const struct message *message = p->message != TRACE_NONE ? &m->list[p->message] : NULL;
    char number[SVG_NUMBER_MAX];

    text[0] = 0;
    if (p->mad != TRACE_NONE) {
        add_cm(text, &t->mads[p->mad]);
        return;
    }
    if (p->sack != TRACE_NONE) {
        const struct trace_sack *s = &t->sacks[p->sack];

        add(text, PACKET_TEXT_MAX, "%" PRIu32 " missing in %" PRIu32 " gap%s", s->missing, s->gaps,
            s->gaps == 1 ? "" : "s");
        return;
    }
    if (!message || p->marks & TRACE_MALFORMED)
        return;
    if (is_ack(p)) {
        add_answered(text, m, p);
        return;
    }
    add(text, PACKET_TEXT_MAX, "%s%s #%" PRIu32, message->flow == p->flow ? "" : "answers ", message_name(message),
        message->number);
    if (p->len && p->len < message->bytes) {
        add(text, PACKET_TEXT_MAX, DOT "%s of", svg_number(number, p->len));
        add_bytes(text, PACKET_TEXT_MAX, " ", message->bytes);
    } else if (message->bytes) {
        add_bytes(text, PACKET_TEXT_MAX, DOT, message->bytes);
    }
    if (p->tm != TRACE_NONE)
        add(text, PACKET_TEXT_MAX, DOT "%s",
            t->tms[p->tm].tmh.opcode == TMH_RNDV ? "rendezvous request" : "rendezvous FIN");
}

/* --- what is unusual ---------------------------------------------------------------------------------------------- */

static const char *nak_name(const struct trace_packet *p)
{
    if (p->sack != TRACE_NONE)
        return "SACK";
    return (p->syndrome & AETH_KIND_MASK) == AETH_RNR ? "RNR NAK" : "NAK";
}

static void add_reason(char text[PACKET_TEXT_MAX], const struct trace *t, const struct trace_packet *p)
{
    char time[SVG_NUMBER_MAX];

    add(text, PACKET_TEXT_MAX, "retransmission");
    if (p->repeats != TRACE_NONE)
        add(text, PACKET_TEXT_MAX, " of %" PRIu32, t->packets[p->repeats].frame);
    if (p->reason != TRACE_NONE)
        add(text, PACKET_TEXT_MAX, ", after %s %" PRIu32, nak_name(&t->packets[p->reason]),
            t->packets[p->reason].frame);
    else if (p->repeats != TRACE_NONE && trace_is_request(p))
        add(text, PACKET_TEXT_MAX, ", %s later", svg_duration(time, p->time_ns - t->packets[p->repeats].time_ns));
}

void packet_remark(char text[PACKET_TEXT_MAX], const struct trace *t, uint32_t index)
{
    const struct trace_packet *p = &t->packets[index];

    text[0] = 0;
    if (p->marks & TRACE_LOST)
        add(text, PACKET_TEXT_MAX, "lost");
    if (p->marks & TRACE_DAMAGED)
        add(text, PACKET_TEXT_MAX, "%sdamaged", text[0] ? ", " : "");
    if (p->marks & TRACE_AGAIN) {
        add(text, PACKET_TEXT_MAX, "%s", text[0] ? ", " : "");
        add_reason(text, t, p);
    }
    if (p->marks & TRACE_LATE)
        add(text, PACKET_TEXT_MAX, "%slate", text[0] ? ", " : "");
    if (p->marks & TRACE_TWICE)
        add(text, PACKET_TEXT_MAX, "%ssent twice", text[0] ? ", " : "");
    if (p->marks & TRACE_CE)
        add(text, PACKET_TEXT_MAX, "%scongestion (ECN)", text[0] ? ", " : "");
    if (p->marks & TRACE_MALFORMED)
        add(text, PACKET_TEXT_MAX, "%sheaders that can't be read", text[0] ? ", " : "");
}

/* --- all that is known -------------------------------------------------------------------------------------------- */

static void add_headers(char *text, size_t max, const struct trace_packet *p)
{
    uint16_t headers = op_table[p->opcode].headers;

    if (p->marks & TRACE_MALFORMED)
        return;
    if (headers & (OP_HAS_RETH | OP_HAS_ATOMICETH))
        add(text, max, "\nVA 0x%" PRIx64 ", rkey 0x%" PRIx32, p->va, p->rkey);
    if (headers & OP_HAS_RETH)
        add(text, max, ", %" PRIu32 " bytes", p->dmalen);
    if (headers & OP_HAS_AETH)
        add(text, max, "\nMSN %" PRIu32 ", syndrome 0x%02x", p->msn, p->syndrome);
    if (p->len)
        add(text, max, "\npayload %" PRIu32 " bytes", p->len);
}

void packet_details(char text[PACKET_DETAILS_MAX], const struct trace *t, const struct messages *m, uint32_t index)
{
    const struct trace_packet *p = &t->packets[index];
    const struct trace_flow *flow = t->flows[p->flow];
    char src[TRACE_ADDRESS_MAX], dst[TRACE_ADDRESS_MAX], part[PACKET_TEXT_MAX], time[SVG_NUMBER_MAX];
    char cm[CM_TEXT_MAX];
    _Static_assert(CM_TEXT_MAX >= PACKET_TEXT_MAX, "room for both kinds of text");

    trace_address(t->hosts[flow->key.src]->address, src);
    trace_address(t->hosts[flow->key.dst]->address, dst);
    snprintf(text, PACKET_DETAILS_MAX, "frame %" PRIu32 "\n%s %s, PSN %" PRIu32 "\n%s", p->frame,
             op_service_name(p->opcode), op_table[p->opcode].name ? op_table[p->opcode].name : "?", psn_of(p), src);
    if (flow->qpn_of_sender)
        add(text, PACKET_DETAILS_MAX, " QP 0x%06" PRIx32, flow->qpn_of_sender);
    add(text, PACKET_DETAILS_MAX, " \xe2\x86\x92 %s QP 0x%06" PRIx32, dst, flow->key.qpn);
    if (p->mad != TRACE_NONE)
        cm_text(t->mads[p->mad].bytes, cm);
    else
        packet_message(cm, t, m, index);
    if (cm[0])
        add(text, PACKET_DETAILS_MAX, "\n%s", cm);
    packet_remark(part, t, index);
    if (part[0])
        add(text, PACKET_DETAILS_MAX, "\n%s", part);
    add_headers(text, PACKET_DETAILS_MAX, p);
    if (p->has_wr)
        add(text, PACKET_DETAILS_MAX, "\nwr_id 0x%" PRIx64, p->wr_id);
    if (flow->pid)
        add(text, PACKET_DETAILS_MAX, "\n%s (pid %" PRIu32 ")", flow->comm, flow->pid);
    if (p->arrival_ns)
        add(text, PACKET_DETAILS_MAX, "\narrived %s later", svg_duration(time, p->arrival_ns - p->time_ns));
}

/* --- exchanges ---------------------------------------------------------------------------------------------------- */

/* Writes the title of a connection: its service, and why it was refused. */
static void connection_title(char text[PACKET_TEXT_MAX], const struct trace *t, const struct exchange *x)
{
    bool named = false;
    struct cm_msg m;

    add(text, PACKET_TEXT_MAX, "%s", exchange_name(x->kind));
    for (uint32_t i = 0; i < x->num_packets; i++) {
        const struct trace_packet *p = &t->packets[x->packets[i]];

        if (p->mad == TRACE_NONE || cm_msg_decode(t->mads[p->mad].bytes, &m) != CM_DECODE_OK)
            continue;
        if (!named && (m.attribute == CM_REQ || m.attribute == CM_SIDR_REQ)) {
            add_port_space(text, " to ", m.attribute == CM_REQ ? m.req.service_id : m.sidr_req.service_id);
            named = true;
        } else if (m.attribute == CM_REJ) {
            add(text, PACKET_TEXT_MAX, ", refused: %s", cm_reject_reason_text(m.rej.reason));
            return;
        }
    }
}

void exchange_title(char text[PACKET_TEXT_MAX], const struct trace *t, const struct messages *m,
                    const struct exchange *x)
{
    const struct message *message = x->message != TRACE_NONE ? &m->list[x->message] : NULL;

    text[0] = 0;
    switch (x->kind) {
    case EXCHANGE_CONNECT:
    case EXCHANGE_DISCONNECT:
    case EXCHANGE_LOOKUP:
        connection_title(text, t, x);
        break;
    case EXCHANGE_RENDEZVOUS:
        add(text, PACKET_TEXT_MAX, "rendezvous");
        add_bytes(text, PACKET_TEXT_MAX, " of ", x->bytes);
        if (t->packets[message->first].tm != TRACE_NONE)
            add(text, PACKET_TEXT_MAX, ", tag 0x%" PRIx64, t->tms[t->packets[message->first].tm].tmh.tag);
        break;
    default:
        if (!message) {
            add(text, PACKET_TEXT_MAX, "%s", exchange_name(x->kind));
            break;
        }
        add(text, PACKET_TEXT_MAX, "%s #%" PRIu32, message_name(message), message->number);
        if (x->bytes)
            add_bytes(text, PACKET_TEXT_MAX, " of ", x->bytes);
    }
}
