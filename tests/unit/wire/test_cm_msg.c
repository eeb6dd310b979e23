// SPDX-License-Identifier: BSD-2-Clause
/* The messages of connection management: where each field is, fixed messages, and hostile bytes. */
#include <criterion/criterion.h>
#include <stddef.h>
#include <string.h>

#include "wire/cm_msg.h"
#include "wire/pkt.h"

#define BITS (8 * MAD_DATA_LEN)

/* A field as the specification's tables place it: first bit of the message, width. */
struct place {
    uint16_t attribute;
    size_t member, size;
    unsigned bit, width;
};
#define AT(attribute, m, byte, bit, width)                                                                             \
    {                                                                                                                  \
        attribute, offsetof(struct cm_msg, m), sizeof(((struct cm_msg *)0)->m), 8 * (byte) + (bit), width              \
    }
#define PATH_AT(attribute, m, byte)                                                                                    \
    AT(attribute, m.local_lid, byte, 0, 16), AT(attribute, m.remote_lid, (byte) + 2, 0, 16),                           \
        AT(attribute, m.local_gid, (byte) + 4, 0, 128), AT(attribute, m.remote_gid, (byte) + 20, 0, 128),              \
        AT(attribute, m.flow_label, (byte) + 36, 0, 20)
/* clang-format off */
static const struct place places[] = {
    AT(CM_REQ, req.local_comm_id, 0, 0, 32),
    AT(CM_REQ, req.ece_vendor_id, 5, 0, 24),
    AT(CM_REQ, req.service_id, 8, 0, 64),
    AT(CM_REQ, req.local_ca_guid, 16, 0, 64),
    AT(CM_REQ, req.local_qkey, 28, 0, 32),
    AT(CM_REQ, req.local_qpn, 32, 0, 24),
    AT(CM_REQ, req.responder_resources, 35, 0, 8),
    AT(CM_REQ, req.local_eecn, 36, 0, 24),
    AT(CM_REQ, req.initiator_depth, 39, 0, 8),
    AT(CM_REQ, req.remote_eecn, 40, 0, 24),
    AT(CM_REQ, req.remote_response_timeout, 43, 0, 5),
    AT(CM_REQ, req.transport, 43, 5, 2),
    AT(CM_REQ, req.flow_control, 43, 7, 1),
    AT(CM_REQ, req.starting_psn, 44, 0, 24),
    AT(CM_REQ, req.local_response_timeout, 47, 0, 5),
    AT(CM_REQ, req.retry_count, 47, 5, 3),
    AT(CM_REQ, req.pkey, 48, 0, 16),
    AT(CM_REQ, req.path_mtu, 50, 0, 4),
    AT(CM_REQ, req.rdc_exists, 50, 4, 1),
    AT(CM_REQ, req.rnr_retry_count, 50, 5, 3),
    AT(CM_REQ, req.max_cm_retries, 51, 0, 4),
    AT(CM_REQ, req.srq, 51, 4, 1),
    AT(CM_REQ, req.extended_transport, 51, 5, 3),
    PATH_AT(CM_REQ, req.primary, 52),
    AT(CM_REQ, req.primary.packet_rate, 91, 2, 6),
    AT(CM_REQ, req.primary.traffic_class, 92, 0, 8),
    AT(CM_REQ, req.primary.hop_limit, 93, 0, 8),
    AT(CM_REQ, req.primary.sl, 94, 0, 4),
    AT(CM_REQ, req.primary.subnet_local, 94, 4, 1),
    AT(CM_REQ, req.primary.local_ack_timeout, 95, 0, 5),
    PATH_AT(CM_REQ, req.alternate, 96),
    AT(CM_REQ, req.alternate.packet_rate, 135, 2, 6),
    AT(CM_REQ, req.alternate.traffic_class, 136, 0, 8),
    AT(CM_REQ, req.alternate.hop_limit, 137, 0, 8),
    AT(CM_REQ, req.alternate.sl, 138, 0, 4),
    AT(CM_REQ, req.alternate.subnet_local, 138, 4, 1),
    AT(CM_REQ, req.alternate.local_ack_timeout, 139, 0, 5),
    AT(CM_REQ, req.private_data, 140, 0, 736),

    AT(CM_MRA, mra.local_comm_id, 0, 0, 32),
    AT(CM_MRA, mra.remote_comm_id, 4, 0, 32),
    AT(CM_MRA, mra.answers, 8, 0, 2),
    AT(CM_MRA, mra.service_timeout, 9, 0, 5),
    AT(CM_MRA, mra.private_data, 10, 0, 1776),

    AT(CM_REJ, rej.local_comm_id, 0, 0, 32),
    AT(CM_REJ, rej.remote_comm_id, 4, 0, 32),
    AT(CM_REJ, rej.answers, 8, 0, 2),
    AT(CM_REJ, rej.ari_len, 9, 0, 7),
    AT(CM_REJ, rej.reason, 10, 0, 16),
    AT(CM_REJ, rej.ari, 12, 0, 576),
    AT(CM_REJ, rej.private_data, 84, 0, 1184),

    AT(CM_REP, rep.local_comm_id, 0, 0, 32),
    AT(CM_REP, rep.remote_comm_id, 4, 0, 32),
    AT(CM_REP, rep.local_qkey, 8, 0, 32),
    AT(CM_REP, rep.local_qpn, 12, 0, 24),
    AT(CM_REP, rep.local_eecn, 16, 0, 24),
    AT(CM_REP, rep.starting_psn, 20, 0, 24),
    AT(CM_REP, rep.responder_resources, 24, 0, 8),
    AT(CM_REP, rep.initiator_depth, 25, 0, 8),
    AT(CM_REP, rep.target_ack_delay, 26, 0, 5),
    AT(CM_REP, rep.failover_accepted, 26, 5, 2),
    AT(CM_REP, rep.flow_control, 26, 7, 1),
    AT(CM_REP, rep.rnr_retry_count, 27, 0, 3),
    AT(CM_REP, rep.srq, 27, 3, 1),
    AT(CM_REP, rep.local_ca_guid, 28, 0, 64),
    AT(CM_REP, rep.private_data, 36, 0, 1568),

    AT(CM_RTU, rtu.local_comm_id, 0, 0, 32),
    AT(CM_RTU, rtu.remote_comm_id, 4, 0, 32),
    AT(CM_RTU, rtu.private_data, 8, 0, 1792),
    AT(CM_DREP, rtu.local_comm_id, 0, 0, 32),
    AT(CM_DREP, rtu.remote_comm_id, 4, 0, 32),
    AT(CM_DREP, rtu.private_data, 8, 0, 1792),
    AT(CM_DREQ, dreq.local_comm_id, 0, 0, 32),
    AT(CM_DREQ, dreq.remote_comm_id, 4, 0, 32),
    AT(CM_DREQ, dreq.remote_qpn, 8, 0, 24),
    AT(CM_DREQ, dreq.private_data, 12, 0, 1760),

    AT(CM_SIDR_REQ, sidr_req.request_id, 0, 0, 32),
    AT(CM_SIDR_REQ, sidr_req.pkey, 4, 0, 16),
    AT(CM_SIDR_REQ, sidr_req.service_id, 8, 0, 64),
    AT(CM_SIDR_REQ, sidr_req.private_data, 16, 0, 1728),

    AT(CM_SIDR_REP, sidr_rep.request_id, 0, 0, 32),
    AT(CM_SIDR_REP, sidr_rep.status, 4, 0, 8),
    AT(CM_SIDR_REP, sidr_rep.info_len, 5, 0, 8),
    AT(CM_SIDR_REP, sidr_rep.qpn, 8, 0, 24),
    AT(CM_SIDR_REP, sidr_rep.service_id, 12, 0, 64),
    AT(CM_SIDR_REP, sidr_rep.qkey, 20, 0, 32),
    AT(CM_SIDR_REP, sidr_rep.info, 24, 0, 576),
    AT(CM_SIDR_REP, sidr_rep.private_data, 96, 0, 1088),

    AT(CM_LAP, lap.local_comm_id, 0, 0, 32),
    AT(CM_LAP, lap.remote_comm_id, 4, 0, 32),
    AT(CM_LAP, lap.remote_qpn, 12, 0, 24),
    AT(CM_LAP, lap.remote_response_timeout, 15, 0, 5),
    PATH_AT(CM_LAP, lap.alternate, 20),
    AT(CM_LAP, lap.alternate.traffic_class, 59, 0, 8),
    AT(CM_LAP, lap.alternate.hop_limit, 60, 0, 8),
    AT(CM_LAP, lap.alternate.packet_rate, 61, 2, 6),
    AT(CM_LAP, lap.alternate.sl, 62, 0, 4),
    AT(CM_LAP, lap.alternate.subnet_local, 62, 4, 1),
    AT(CM_LAP, lap.alternate.local_ack_timeout, 63, 0, 5),
    AT(CM_LAP, lap.private_data, 64, 0, 1344),

    AT(CM_APR, apr.local_comm_id, 0, 0, 32),
    AT(CM_APR, apr.remote_comm_id, 4, 0, 32),
    AT(CM_APR, apr.info_len, 8, 0, 8),
    AT(CM_APR, apr.ap_status, 9, 0, 8),
    AT(CM_APR, apr.info, 12, 0, 576),
    AT(CM_APR, apr.private_data, 84, 0, 1184),
};
/* clang-format on */
#define PLACES (sizeof(places) / sizeof(places[0]))

static bool bit_of(const uint8_t *data, unsigned bit)
{
    return data[bit / 8] >> (7 - bit % 8) & 1;
}

static void set_bits(uint8_t *data, unsigned bit, unsigned width, bool value)
{
    for (unsigned i = bit; i < bit + width; i++)
        data[i / 8] = (uint8_t)((data[i / 8] & ~(0x80 >> i % 8)) | (value ? 0x80 >> i % 8 : 0));
}

/* The value of a field that is a number. */
static uint64_t number(const struct cm_msg *m, const struct place *p)
{
    uint64_t v = 0;

    memcpy(&v, (const uint8_t *)m + p->member, p->size); /* little-endian host */
    return v;
}

static bool is_all(const struct cm_msg *m, const struct place *p, bool ones)
{
    const uint8_t *member = (const uint8_t *)m + p->member;

    if (p->width <= 64)
        return number(m, p) == (ones ? UINT64_MAX >> (64 - p->width) : 0);
    for (size_t i = 0; i < p->size; i++)
        if (member[i] != (ones ? 0xff : 0))
            return false;
    return true;
}

static void encode_one(const struct place *p, uint8_t fill, uint8_t mad[MAD_LEN])
{
    struct cm_msg m = {.attribute = p->attribute};

    memset((uint8_t *)&m + p->member, fill, p->size);
    if (p->size == 1 && p->width == 1) /* perhaps a bool */
        ((uint8_t *)&m)[p->member] = fill & 1;
    cm_msg_encode(&m, mad);
}

/* A header that the decoder accepts, and data of ones or zeros. */
static void message(uint16_t attribute, bool ones, uint8_t mad[MAD_LEN])
{
    struct cm_msg m = {.attribute = attribute};

    cm_msg_encode(&m, mad);
    memset(mad + MAD_HEADER_LEN, ones ? 0xff : 0, MAD_DATA_LEN);
}

Test(cm_msg, each_field_is_written_to_its_place_only)
{
    uint8_t mad[MAD_LEN];

    for (size_t i = 0; i < PLACES; i++) {
        const struct place *p = &places[i];

        encode_one(p, 0xff, mad); /* wider than most fields: the neighbours must stay 0 */
        for (unsigned bit = 0; bit < BITS; bit++)
            cr_assert_eq(bit_of(mad + MAD_HEADER_LEN, bit), bit >= p->bit && bit < p->bit + p->width,
                         "row %zu (%s), bit %u", i, cm_attribute_name(p->attribute), bit);
    }
}

Test(cm_msg, each_field_is_read_from_its_place_only)
{
    struct cm_msg m;
    uint8_t mad[MAD_LEN];

    for (size_t i = 0; i < 2 * PLACES; i++) {
        const struct place *p = &places[i / 2];
        bool ones = i % 2;

        message(p->attribute, !ones, mad);
        set_bits(mad + MAD_HEADER_LEN, p->bit, p->width, ones);
        memset(&m, 0x55, sizeof(m));
        cr_assert_eq(cm_msg_decode(mad, &m), CM_DECODE_OK);
        cr_assert(is_all(&m, p, ones), "row %zu (%s)", i / 2, cm_attribute_name(p->attribute));
    }
}

Test(cm_msg, each_bit_of_a_number_has_its_weight)
{
    struct cm_msg m;
    uint8_t mad[MAD_LEN];

    for (size_t i = 0; i < PLACES; i++) {
        const struct place *p = &places[i];

        for (unsigned k = 0; k < p->width && p->width <= 64; k++) {
            message(p->attribute, false, mad);
            set_bits(mad + MAD_HEADER_LEN, p->bit + k, 1, true);
            cm_msg_decode(mad, &m);
            cr_assert_eq(number(&m, p), (uint64_t)1 << (p->width - 1 - k), "row %zu bit %u", i, k);
        }
    }
}

/* The specification has so many reserved bits in each message. The bits of the vendor ID are not among them. */
Test(cm_msg, all_other_bits_are_reserved)
{
    static const unsigned reserved[] = {[CM_REQ - CM_REQ] = 8 + 32 + 2 * (6 + 3 + 3),
                                        [CM_MRA - CM_REQ] = 6 + 3,
                                        [CM_REJ - CM_REQ] = 6 + 1,
                                        [CM_REP - CM_REQ] = 4,
                                        [CM_RTU - CM_REQ] = 0,
                                        [CM_DREQ - CM_REQ] = 8,
                                        [CM_DREP - CM_REQ] = 0,
                                        [CM_SIDR_REQ - CM_REQ] = 16,
                                        [CM_SIDR_REP - CM_REQ] = 0,
                                        [CM_LAP - CM_REQ] = 32 + 3 + 32 + 4 + 2 + 3 + 3,
                                        [CM_APR - CM_REQ] = 16};
    uint8_t mad[MAD_LEN], again[MAD_LEN];
    struct cm_msg m;

    for (uint16_t a = CM_REQ; a <= CM_APR; a++) {
        unsigned lost = 0;

        message(a, true, mad);
        cr_assert_eq(cm_msg_decode(mad, &m), CM_DECODE_OK);
        cm_msg_encode(&m, again);
        for (unsigned bit = 0; bit < BITS; bit++)
            lost += !bit_of(again + MAD_HEADER_LEN, bit);
        cr_expect_eq(lost, reserved[a - CM_REQ], "%s: %u", cm_attribute_name(a), lost);
    }
}

Test(cm_msg, a_vendor_id_in_parts)
{
    struct cm_msg m = {.attribute = CM_REP, .rep = {.ece_vendor_id = 0xff123456, .ece_attr_mod = 0x89abcdef}}, got;
    uint8_t mad[MAD_LEN];

    cm_msg_encode(&m, mad);
    cr_expect_eq(mad[24 + 15], 0x12);
    cr_expect_eq(mad[24 + 19], 0x34);
    cr_expect_eq(mad[24 + 23], 0x56);
    cr_expect_arr_eq(mad + 20, "\x89\xab\xcd\xef", 4);
    cr_assert_eq(cm_msg_decode(mad, &got), CM_DECODE_OK);
    cr_expect_eq(got.rep.ece_vendor_id, 0x123456);
    cr_expect_eq(got.rep.ece_attr_mod, 0x89abcdef);

    m = (struct cm_msg){.attribute = CM_SIDR_REP, .sidr_rep = {.ece_vendor_id = 0xff123456, .ece_attr_mod = 7}};
    cm_msg_encode(&m, mad);
    cr_expect_arr_eq(mad + 24 + 6, "\x12\x34", 2);
    cr_expect_eq(mad[24 + 11], 0x56);
    cr_assert_eq(cm_msg_decode(mad, &got), CM_DECODE_OK);
    cr_expect_eq(got.sidr_rep.ece_vendor_id, 0x123456);
    cr_expect_eq(got.sidr_rep.ece_attr_mod, 7);

    m = (struct cm_msg){.attribute = CM_REQ, .req = {.ece_attr_mod = 0x01020304}};
    cm_msg_encode(&m, mad);
    cr_expect_arr_eq(mad + 20, "\1\2\3\4", 4);
    cr_assert_eq(cm_msg_decode(mad, &got), CM_DECODE_OK);
    cr_expect_eq(got.req.ece_attr_mod, 0x01020304);
}

Test(cm_msg, a_whole_message)
{
    static const uint8_t expected[48] = {1,    7, 2,    3, 0, 0, 0, 0, 0x11, 0x22,   0x33, 0x44, 0x55, 0x66, 0x77,
                                         0x88, 0, 0x12, 0, 0, 0, 0, 0, 0, /* header */
                                         1,    2, 3,    4, 5, 6, 7, 8, 0x40, 3 << 1, 0,    28,   'a',  'r',  'i'};
    struct cm_msg m = {.transaction_id = 0x1122334455667788,
                       .attribute = CM_REJ,
                       .rej = {0x01020304, 0x05060708, CM_ANSWERS_REP, CM_REJ_CONSUMER_DEFINED, 3, "ari", {0}}},
                  got;
    uint8_t mad[MAD_LEN];

    cm_msg_encode(&m, mad);
    cr_expect_arr_eq(mad, expected, sizeof(expected));
    cr_assert_eq(cm_msg_decode(mad, &got), CM_DECODE_OK);
    cr_expect_eq(got.transaction_id, m.transaction_id);
    cr_expect_eq(got.attribute, CM_REJ);
    cr_expect_eq(memcmp(&got.rej, &m.rej, sizeof(m.rej)), 0);
}

Test(cm_msg, what_is_no_message)
{
    struct cm_msg m;
    uint8_t mad[MAD_LEN];

    message(CM_REQ, true, mad);
    mad[1] = 6;
    cr_expect_eq(cm_msg_decode(mad, &m), CM_DECODE_OTHER_CLASS);
    message(CM_REQ, true, mad);
    mad[3] = 0x83; /* a response */
    cr_expect_eq(cm_msg_decode(mad, &m), CM_DECODE_OTHER_CLASS);
    for (int at = 0; at <= 2; at += 2) {
        message(CM_REQ, true, mad);
        mad[8] = 0x77;
        mad[at] = 9;
        cr_expect_eq(cm_msg_decode(mad, &m), CM_DECODE_VERSION);
        cr_expect_eq(m.transaction_id, 0x7700000000000000u);
        cr_expect_eq(m.attribute, CM_REQ);
        cr_expect_eq(m.req.local_comm_id, UINT32_MAX);
        cr_expect_eq(m.req.service_id, 0);
    }
    for (unsigned a = 0; a <= UINT16_MAX; a++) {
        bool known = a >= 0x10 && a <= 0x1a;

        message(CM_REQ, true, mad);
        mad[16] = (uint8_t)(a >> 8);
        mad[17] = (uint8_t)a;
        cr_assert_eq(cm_msg_decode(mad, &m), known ? CM_DECODE_OK : CM_DECODE_ATTRIBUTE);
        cr_assert_eq(m.attribute, a);
        cr_assert_eq(strcmp(cm_attribute_name((uint16_t)a), "unknown") != 0, known);
    }
}

Test(cm_msg, the_message_of_a_packet)
{
    struct pkt p = {.opcode = OP_SERVICE_UD | OP_SEND_ONLY, .dest_qpn = MAD_QPN};
    uint8_t buf[PKT_HEADERS_MAX + MAD_LEN];
    size_t head = pkt_encode(&p, buf);

    for (uint16_t a = CM_REQ - 1; a <= CM_APR + 1; a++) {
        message(CM_REQ, true, buf + head);
        buf[head + 17] = (uint8_t)a;
        cr_expect_eq(cm_attribute_of_packet(buf, head + MAD_LEN), a >= CM_REQ && a <= CM_APR ? a : 0);
    }
    message(CM_REQ, true, buf + head);
    cr_expect_eq(cm_attribute_of_packet(buf, head + MAD_LEN - 1), 0);
    buf[head + 1] = 3; /* another class */
    cr_expect_eq(cm_attribute_of_packet(buf, head + MAD_LEN), 0);
}

Test(cm_msg, reasons_have_texts)
{
    for (unsigned r = 1; r <= 35; r++)
        cr_expect_eq(strcmp(cm_reject_reason_text((uint16_t)r), "unknown") == 0, r == 34, "%u", r);
    cr_expect_str_eq(cm_reject_reason_text(0), "unknown");
    cr_expect_str_eq(cm_reject_reason_text(36), "unknown");
    cr_expect_str_eq(cm_reject_reason_text(UINT16_MAX), "unknown");
    cr_expect_str_eq(cm_reject_reason_text(CM_REJ_INVALID_SERVICE_ID), "invalid service ID");
}
