// SPDX-License-Identifier: BSD-2-Clause
#include "wire/cm_msg.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "wire/bit_field.h"
#include "wire/bytes.h"

/* A row of a table: byte and bit in the message, width in bits, member of struct cm_msg. PART is one part of a member
 * whose bits are at several places: the member's bits from `low` on. BYTES is an array. */
#define SIZE(m) sizeof(((struct cm_msg *)0)->m)
#define PART(byte, bit, width, m, low)                                                                                 \
    {                                                                                                                  \
        (byte), (bit), (width), offsetof(struct cm_msg, m), SIZE(m), (low)                                             \
    }
#define FIELD(byte, bit, width, m) PART(byte, bit, width, m, 0)
#define BYTES(byte, m) PART(byte, 0, 8 * SIZE(m), m, 0)

/* A path of a REQ, at byte b. */
#define REQ_PATH(b, m)                                                                                                 \
    FIELD((b), 0, 16, m.local_lid), FIELD((b) + 2, 0, 16, m.remote_lid), BYTES((b) + 4, m.local_gid),                  \
        BYTES((b) + 20, m.remote_gid), FIELD((b) + 36, 0, 20, m.flow_label), FIELD((b) + 39, 2, 6, m.packet_rate),     \
        FIELD((b) + 40, 0, 8, m.traffic_class), FIELD((b) + 41, 0, 8, m.hop_limit), FIELD((b) + 42, 0, 4, m.sl),       \
        FIELD((b) + 42, 4, 1, m.subnet_local), FIELD((b) + 43, 0, 5, m.local_ack_timeout)

/* clang-format off */
static const struct bit_field req[] = { /* IBA 12.6.5, table 106 */
    FIELD(  0, 0, 32, req.local_comm_id),
    FIELD(  5, 0, 24, req.ece_vendor_id),
    FIELD(  8, 0, 64, req.service_id),
    FIELD( 16, 0, 64, req.local_ca_guid),
    FIELD( 28, 0, 32, req.local_qkey),
    FIELD( 32, 0, 24, req.local_qpn),
    FIELD( 35, 0,  8, req.responder_resources),
    FIELD( 36, 0, 24, req.local_eecn),
    FIELD( 39, 0,  8, req.initiator_depth),
    FIELD( 40, 0, 24, req.remote_eecn),
    FIELD( 43, 0,  5, req.remote_response_timeout),
    FIELD( 43, 5,  2, req.transport),
    FIELD( 43, 7,  1, req.flow_control),
    FIELD( 44, 0, 24, req.starting_psn),
    FIELD( 47, 0,  5, req.local_response_timeout),
    FIELD( 47, 5,  3, req.retry_count),
    FIELD( 48, 0, 16, req.pkey),
    FIELD( 50, 0,  4, req.path_mtu),
    FIELD( 50, 4,  1, req.rdc_exists),
    FIELD( 50, 5,  3, req.rnr_retry_count),
    FIELD( 51, 0,  4, req.max_cm_retries),
    FIELD( 51, 4,  1, req.srq),
    FIELD( 51, 5,  3, req.extended_transport),
    REQ_PATH(52, req.primary),
    REQ_PATH(96, req.alternate),
    BYTES(140, req.private_data),
};
static const struct bit_field mra[] = { /* IBA 12.6.6, table 107 */
    FIELD(  0, 0, 32, mra.local_comm_id),
    FIELD(  4, 0, 32, mra.remote_comm_id),
    FIELD(  8, 0,  2, mra.answers),
    FIELD(  9, 0,  5, mra.service_timeout),
    BYTES( 10, mra.private_data),
};
static const struct bit_field rej[] = { /* IBA 12.6.7, table 108 */
    FIELD(  0, 0, 32, rej.local_comm_id),
    FIELD(  4, 0, 32, rej.remote_comm_id),
    FIELD(  8, 0,  2, rej.answers),
    FIELD(  9, 0,  7, rej.ari_len),
    FIELD( 10, 0, 16, rej.reason),
    BYTES( 12, rej.ari),
    BYTES( 84, rej.private_data),
};
static const struct bit_field rep[] = { /* IBA 12.6.8, table 110 */
    FIELD(  0, 0, 32, rep.local_comm_id),
    FIELD(  4, 0, 32, rep.remote_comm_id),
    FIELD(  8, 0, 32, rep.local_qkey),
    FIELD( 12, 0, 24, rep.local_qpn),
    PART ( 15, 0,  8, rep.ece_vendor_id, 16),
    FIELD( 16, 0, 24, rep.local_eecn),
    PART ( 19, 0,  8, rep.ece_vendor_id, 8),
    FIELD( 20, 0, 24, rep.starting_psn),
    PART ( 23, 0,  8, rep.ece_vendor_id, 0),
    FIELD( 24, 0,  8, rep.responder_resources),
    FIELD( 25, 0,  8, rep.initiator_depth),
    FIELD( 26, 0,  5, rep.target_ack_delay),
    FIELD( 26, 5,  2, rep.failover_accepted),
    FIELD( 26, 7,  1, rep.flow_control),
    FIELD( 27, 0,  3, rep.rnr_retry_count),
    FIELD( 27, 3,  1, rep.srq),
    FIELD( 28, 0, 64, rep.local_ca_guid),
    BYTES( 36, rep.private_data),
};
static const struct bit_field rtu[] = { /* IBA 12.6.9 and 12.6.11, tables 111 and 113 */
    FIELD(  0, 0, 32, rtu.local_comm_id),
    FIELD(  4, 0, 32, rtu.remote_comm_id),
    BYTES(  8, rtu.private_data),
};
static const struct bit_field dreq[] = { /* IBA 12.6.10, table 112 */
    FIELD(  0, 0, 32, dreq.local_comm_id),
    FIELD(  4, 0, 32, dreq.remote_comm_id),
    FIELD(  8, 0, 24, dreq.remote_qpn),
    BYTES( 12, dreq.private_data),
};
static const struct bit_field sidr_req[] = { /* IBA 12.11.1, table 119 */
    FIELD(  0, 0, 32, sidr_req.request_id),
    FIELD(  4, 0, 16, sidr_req.pkey),
    FIELD(  8, 0, 64, sidr_req.service_id),
    BYTES( 16, sidr_req.private_data),
};
static const struct bit_field sidr_rep[] = { /* IBA 12.11.2, table 120 */
    FIELD(  0, 0, 32, sidr_rep.request_id),
    FIELD(  4, 0,  8, sidr_rep.status),
    FIELD(  5, 0,  8, sidr_rep.info_len),
    PART (  6, 0, 16, sidr_rep.ece_vendor_id, 8),
    FIELD(  8, 0, 24, sidr_rep.qpn),
    PART ( 11, 0,  8, sidr_rep.ece_vendor_id, 0),
    FIELD( 12, 0, 64, sidr_rep.service_id),
    FIELD( 20, 0, 32, sidr_rep.qkey),
    BYTES( 24, sidr_rep.info),
    BYTES( 96, sidr_rep.private_data),
};
static const struct bit_field lap[] = { /* IBA 12.8.1, table 115 */
    FIELD(  0, 0, 32, lap.local_comm_id),
    FIELD(  4, 0, 32, lap.remote_comm_id),
    FIELD( 12, 0, 24, lap.remote_qpn),
    FIELD( 15, 0,  5, lap.remote_response_timeout),
    FIELD( 20, 0, 16, lap.alternate.local_lid),
    FIELD( 22, 0, 16, lap.alternate.remote_lid),
    BYTES( 24, lap.alternate.local_gid),
    BYTES( 40, lap.alternate.remote_gid),
    FIELD( 56, 0, 20, lap.alternate.flow_label),
    FIELD( 59, 0,  8, lap.alternate.traffic_class),
    FIELD( 60, 0,  8, lap.alternate.hop_limit),
    FIELD( 61, 2,  6, lap.alternate.packet_rate),
    FIELD( 62, 0,  4, lap.alternate.sl),
    FIELD( 62, 4,  1, lap.alternate.subnet_local),
    FIELD( 63, 0,  5, lap.alternate.local_ack_timeout),
    BYTES( 64, lap.private_data),
};
static const struct bit_field apr[] = { /* IBA 12.8.2, table 116 */
    FIELD(  0, 0, 32, apr.local_comm_id),
    FIELD(  4, 0, 32, apr.remote_comm_id),
    FIELD(  8, 0,  8, apr.info_len),
    FIELD(  9, 0,  8, apr.ap_status),
    BYTES( 12, apr.info),
    BYTES( 84, apr.private_data),
};

/* The layout of the messages with one attribute. Bytes count from the start of the message, byte MAD_HEADER_LEN of the
 * MAD. */
struct layout {
    uint16_t attribute; /* enum cm_attribute */
    const char *name;
    const struct bit_field *fields;
    uint16_t count;
    uint16_t ece_attr_mod; /* offset in struct cm_msg of what is the attribute modifier of the MAD; 0: nothing */
};

#define ROWS(t) t, sizeof(t) / sizeof((t)[0])
static const struct layout layouts[] = { /* in the order of the attribute IDs, which have no gap */
    {CM_REQ,      "REQ",      ROWS(req),      offsetof(struct cm_msg, req.ece_attr_mod)},
    {CM_MRA,      "MRA",      ROWS(mra),      0},
    {CM_REJ,      "REJ",      ROWS(rej),      0},
    {CM_REP,      "REP",      ROWS(rep),      offsetof(struct cm_msg, rep.ece_attr_mod)},
    {CM_RTU,      "RTU",      ROWS(rtu),      0},
    {CM_DREQ,     "DREQ",     ROWS(dreq),     0},
    {CM_DREP,     "DREP",     ROWS(rtu),      0},
    {CM_SIDR_REQ, "SIDR_REQ", ROWS(sidr_req), 0},
    {CM_SIDR_REP, "SIDR_REP", ROWS(sidr_rep), offsetof(struct cm_msg, sidr_rep.ece_attr_mod)},
    {CM_LAP,      "LAP",      ROWS(lap),      0},
    {CM_APR,      "APR",      ROWS(apr),      0},
};
/* clang-format on */
static_assert(sizeof(layouts) / sizeof(layouts[0]) == CM_APR - CM_REQ + 1, "a layout for each attribute");

/* The layout of the messages with this attribute. NULL: there are none. */
static const struct layout *layout_of(uint16_t attribute)
{
    return attribute >= CM_REQ && attribute <= CM_APR ? &layouts[attribute - CM_REQ] : NULL;
}

enum cm_decode_result cm_msg_decode(const uint8_t mad[MAD_LEN], struct cm_msg *out)
{
    const uint8_t *data = mad + MAD_HEADER_LEN;
    struct mad_header h;

    memset(out, 0, sizeof(*out));
    mad_decode(mad, &h);
    out->transaction_id = h.transaction_id;
    out->attribute = h.attribute_id;
    if (h.mgmt_class != MAD_CLASS_CM || h.method != MAD_METHOD_SEND)
        return CM_DECODE_OTHER_CLASS;
    if (h.base_version != MAD_BASE_VERSION || h.class_version != MAD_CLASS_CM_VERSION) {
        if (h.attribute_id == CM_REQ)
            get_be32(data, &out->req.local_comm_id);
        return CM_DECODE_VERSION;
    }
    const struct layout *l = layout_of(h.attribute_id);
    if (!l)
        return CM_DECODE_ATTRIBUTE;
    bit_fields_decode(data, l->fields, l->count, out);
    if (l->ece_attr_mod)
        memcpy((uint8_t *)out + l->ece_attr_mod, &h.attribute_modifier, sizeof(h.attribute_modifier));
    return CM_DECODE_OK;
}

void cm_msg_encode(const struct cm_msg *m, uint8_t mad[MAD_LEN])
{
    const struct layout *l = layout_of(m->attribute);
    struct mad_header h = {
        .base_version = MAD_BASE_VERSION,
        .mgmt_class = MAD_CLASS_CM,
        .class_version = MAD_CLASS_CM_VERSION,
        .method = MAD_METHOD_SEND,
        .transaction_id = m->transaction_id,
        .attribute_id = m->attribute,
    };

    memset(mad, 0, MAD_LEN);
    if (l && l->ece_attr_mod)
        memcpy(&h.attribute_modifier, (const uint8_t *)m + l->ece_attr_mod, sizeof(h.attribute_modifier));
    mad_encode(&h, mad);
    if (l)
        bit_fields_encode(m, l->fields, l->count, mad + MAD_HEADER_LEN);
}

const char *cm_attribute_name(uint16_t attribute)
{
    const struct layout *l = layout_of(attribute);

    return l ? l->name : "unknown";
}

uint16_t cm_attribute_of_packet(const uint8_t *pkt, size_t len)
{
    const uint8_t *mad = mad_of_packet(pkt, len);
    struct mad_header h;

    if (!mad)
        return 0;
    mad_decode(mad, &h);
    return h.mgmt_class == MAD_CLASS_CM && layout_of(h.attribute_id) ? h.attribute_id : 0;
}

const char *cm_reject_reason_text(uint16_t reason)
{
    /* clang-format off */
    static const char *const text[] = { /* IBA 12.6.7.2, table 109 */
        [CM_REJ_NO_QP] = "no QP available",
        [CM_REJ_NO_EEC] = "no EE context available",
        [CM_REJ_NO_RESOURCES] = "no resources available",
        [CM_REJ_TIMEOUT] = "timeout",
        [CM_REJ_UNSUPPORTED] = "unsupported request",
        [CM_REJ_INVALID_COMM_ID] = "invalid communication ID",
        [CM_REJ_INVALID_COMM_INSTANCE] = "invalid communication instance",
        [CM_REJ_INVALID_SERVICE_ID] = "invalid service ID",
        [CM_REJ_INVALID_TRANSPORT_TYPE] = "invalid transport service type",
        [CM_REJ_STALE_CONN] = "stale connection",
        [CM_REJ_RDC_NOT_EXIST] = "the RD channel does not exist",
        [CM_REJ_INVALID_GID] = "invalid primary remote GID",
        [CM_REJ_INVALID_LID] = "invalid primary remote LID",
        [CM_REJ_INVALID_SL] = "invalid primary service level",
        [CM_REJ_INVALID_TRAFFIC_CLASS] = "invalid primary traffic class",
        [CM_REJ_INVALID_HOP_LIMIT] = "invalid primary hop limit",
        [CM_REJ_INVALID_PACKET_RATE] = "invalid primary packet rate",
        [CM_REJ_INVALID_ALT_GID] = "invalid alternate remote GID",
        [CM_REJ_INVALID_ALT_LID] = "invalid alternate remote LID",
        [CM_REJ_INVALID_ALT_SL] = "invalid alternate service level",
        [CM_REJ_INVALID_ALT_TRAFFIC_CLASS] = "invalid alternate traffic class",
        [CM_REJ_INVALID_ALT_HOP_LIMIT] = "invalid alternate hop limit",
        [CM_REJ_INVALID_ALT_PACKET_RATE] = "invalid alternate packet rate",
        [CM_REJ_PORT_CM_REDIRECT] = "redirected to another port and communication manager",
        [CM_REJ_PORT_REDIRECT] = "redirected to another port",
        [CM_REJ_INVALID_MTU] = "invalid path MTU",
        [CM_REJ_INSUFFICIENT_RESP_RESOURCES] = "insufficient responder resources",
        [CM_REJ_CONSUMER_DEFINED] = "rejected by the program",
        [CM_REJ_INVALID_RNR_RETRY] = "invalid RNR retry count",
        [CM_REJ_DUPLICATE_LOCAL_COMM_ID] = "duplicate local communication ID",
        [CM_REJ_INVALID_CLASS_VERSION] = "invalid class version",
        [CM_REJ_INVALID_FLOW_LABEL] = "invalid primary flow label",
        [CM_REJ_INVALID_ALT_FLOW_LABEL] = "invalid alternate flow label",
        [CM_REJ_VENDOR_OPTION_NOT_SUPPORTED] = "vendor option not supported",
    };
    /* clang-format on */

    return reason < sizeof(text) / sizeof(text[0]) && text[reason] ? text[reason] : "unknown";
}

const char *cm_sidr_status_text(uint8_t status)
{
    static const char *const text[] = {
        [CM_SIDR_SUCCESS] = "valid queue pair",
        [CM_SIDR_UNSUPPORTED] = "service ID not supported",
        [CM_SIDR_REJECT] = "rejected by the program",
        [CM_SIDR_NO_QP] = "no queue pair available",
        [CM_SIDR_REDIRECT] = "redirected",
        [CM_SIDR_UNSUPPORTED_VERSION] = "version not supported",
    };

    return status < sizeof(text) / sizeof(text[0]) ? text[status] : "unknown";
}
