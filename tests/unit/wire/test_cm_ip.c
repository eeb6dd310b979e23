// SPDX-License-Identifier: BSD-2-Clause
/* The RDMA IP CM service: service IDs and the header with IP addresses. */
#include <criterion/criterion.h>
#include <string.h>

#include "wire/cm_ip.h"
#include "wire/gid.h"

Test(cm_ip, service_ids)
{
    cr_expect_eq(cm_service_id(CM_PS_TCP, 0x12b7), 0x010612b7u);
    cr_expect_eq(cm_service_id(CM_PS_UDP, 0xffff), 0x0111ffffu);
    cr_expect_eq(cm_service_id(CM_PS_IPOIB, 0), 0x00020000u);
    cr_expect_eq(cm_service_id(CM_PS_IB, 1), 0x013f0001u);
    cr_expect_eq(cm_service_id(0xffff, 0xffff), 0xffffffffu);
}

Test(cm_ip, ipv4_addresses_are_the_last_bytes)
{
    static const uint8_t expected[CM_IP_HEADER_LEN] = {0, 0x40, 0x12, 0xb7, [16] = 10, 1, 2, 3, [32] = 10, 4, 5, 6};
    struct cm_ip_header h = {.ip_version = 4, .source_port = 0x12b7}, got;
    uint8_t data[CM_IP_HEADER_LEN];

    gid_from_v4(h.source, (const uint8_t[]){10, 1, 2, 3});
    gid_from_v4(h.destination, (const uint8_t[]){10, 4, 5, 6});
    memset(data, 0xaa, sizeof(data));
    cm_ip_header_encode(&h, data);
    cr_expect_arr_eq(data, expected, sizeof(expected));
    memset(data + 4, 0xbb, 12); /* of no meaning */
    cr_assert(cm_ip_header_decode(data, &got));
    cr_expect_eq(got.ip_version, 4);
    cr_expect_eq(got.source_port, 0x12b7);
    cr_expect_arr_eq(got.source, h.source, 16);
    cr_expect_arr_eq(got.destination, h.destination, 16);
}

Test(cm_ip, ipv6)
{
    struct cm_ip_header h = {.ip_version = 6, .source_port = UINT16_MAX, .source = {0xfd, [15] = 1}}, got;
    uint8_t data[CM_IP_HEADER_LEN];

    memset(h.destination, 0xff, 16);
    cm_ip_header_encode(&h, data);
    cr_expect_eq(data[1], 0x60);
    cr_expect_arr_eq(data + 4, h.source, 16);
    cr_expect_arr_eq(data + 20, h.destination, 16);
    cr_assert(cm_ip_header_decode(data, &got));
    cr_expect_eq(got.ip_version, 6);
    cr_expect_eq(got.source_port, UINT16_MAX);
    cr_expect_arr_eq(got.source, h.source, 16);
    cr_expect_arr_eq(got.destination, h.destination, 16);
}

Test(cm_ip, only_version_0_with_ipv4_or_ipv6)
{
    uint8_t data[CM_IP_HEADER_LEN] = {0};
    struct cm_ip_header got;

    for (unsigned version = 0; version < 256; version++) {
        for (unsigned ip = 0; ip < 256; ip++) {
            data[0] = (uint8_t)version;
            data[1] = (uint8_t)ip;
            cr_assert_eq(cm_ip_header_decode(data, &got), version == 0 && (ip >> 4 == 4 || ip >> 4 == 6));
        }
    }
}
