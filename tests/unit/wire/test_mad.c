// SPDX-License-Identifier: BSD-2-Clause
/* The common header of MADs. */
#include <criterion/criterion.h>
#include <string.h>

#include "wire/mad.h"
#include "wire/pkt.h"

Test(mad, each_field_has_its_place)
{
    static const uint8_t expected[MAD_HEADER_LEN] = {1,    2,    3,    4,    0x51, 0x52, 0x61, 0x62,
                                                     0x71, 0x72, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78,
                                                     0x81, 0x82, 0,    0,    0x91, 0x92, 0x93, 0x94};
    struct mad_header h = {1, 2, 3, 4, 0x5152, 0x6162, 0x7172737475767778, 0x8182, 0x91929394}, got;
    uint8_t mad[MAD_LEN];

    memset(mad, 0xaa, sizeof(mad));
    mad_encode(&h, mad);
    cr_expect_arr_eq(mad, expected, sizeof(expected));
    cr_expect_eq(mad[MAD_HEADER_LEN], 0xaa);
    mad[18] = mad[19] = 0xff; /* reserved */
    mad_decode(mad, &got);
    cr_expect_eq(got.base_version, h.base_version);
    cr_expect_eq(got.mgmt_class, h.mgmt_class);
    cr_expect_eq(got.class_version, h.class_version);
    cr_expect_eq(got.method, h.method);
    cr_expect_eq(got.status, h.status);
    cr_expect_eq(got.class_specific, h.class_specific);
    cr_expect_eq(got.transaction_id, h.transaction_id);
    cr_expect_eq(got.attribute_id, h.attribute_id);
    cr_expect_eq(got.attribute_modifier, h.attribute_modifier);
}

/* A packet with room for a MAD. Returns the length of its headers. */
static size_t packet(uint8_t opcode, uint32_t dest_qpn, uint8_t buf[PKT_HEADERS_MAX + MAD_LEN])
{
    struct pkt p = {
        .opcode = opcode, .pkey = PKEY_DEFAULT, .dest_qpn = dest_qpn, .deth = {.qkey = MAD_QKEY, .src_qpn = MAD_QPN}};

    memset(buf, 0, PKT_HEADERS_MAX + MAD_LEN);
    return pkt_encode(&p, buf);
}

Test(mad, which_packets_carry_one)
{
    uint8_t buf[PKT_HEADERS_MAX + MAD_LEN];
    size_t head = packet(OP_SERVICE_UD | OP_SEND_ONLY, MAD_QPN, buf);

    cr_expect_eq(mad_of_packet(buf, head + MAD_LEN), buf + head);
    cr_expect_eq(mad_of_packet(buf, head + MAD_LEN + ICRC_LEN), buf + head);
    cr_expect_null(mad_of_packet(buf, head + MAD_LEN - 1));
    cr_expect_null(mad_of_packet(buf, 0));
    head = packet(OP_SERVICE_UD | OP_SEND_ONLY, 17, buf);
    cr_expect_null(mad_of_packet(buf, head + MAD_LEN));
    head = packet(OP_SERVICE_UD | OP_SEND_ONLY_IMM, MAD_QPN, buf);
    cr_expect_null(mad_of_packet(buf, head + MAD_LEN));
    head = packet(OP_SEND_ONLY, MAD_QPN, buf);
    cr_expect_null(mad_of_packet(buf, head + MAD_LEN));
}
