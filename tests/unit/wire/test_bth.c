// SPDX-License-Identifier: BSD-2-Clause
/* Single fields of a BTH. */
#include <criterion/criterion.h>

#include "wire/bth.h"
#include "wire/pkt.h"

/* The bytes around a field are the complement of its own, so that a wrong offset or width is found. */
Test(bth, fields_are_those_that_the_codec_writes)
{
    static const uint32_t qpns[] = {0, 1, 0x010203, 0x7fffff, 0x800000, QPN_MASK};

    for (size_t i = 0; i < sizeof qpns / sizeof qpns[0]; i++) {
        for (unsigned ones = 0; ones < 2; ones++) {
            struct pkt p = {.opcode = OP_ACK,
                            .dest_qpn = qpns[i],
                            .psn = ones ? PSN_MASK : 0,
                            .fecn = ones,
                            .becn = ones,
                            .ackreq = ones,
                            .pkey = ones ? 0xffff : 0};
            uint8_t bytes[PKT_HEADERS_MAX];

            pkt_encode(&p, bytes);
            cr_expect_eq(bth_opcode(bytes), OP_ACK);
            cr_expect_eq(bth_dest_qpn(bytes), qpns[i]);
            cr_expect_eq(bth_psn(bytes), ones ? PSN_MASK : 0);
            p.psn = qpns[i];
            p.dest_qpn = ones ? QPN_MASK : 0;
            pkt_encode(&p, bytes);
            cr_expect_eq(bth_psn(bytes), qpns[i]);
        }
    }
}

Test(bth, the_uncovered_byte_holds_fecn_and_becn)
{
    struct pkt p = {.opcode = OP_ACK, .fecn = true};
    uint8_t marked[PKT_HEADERS_MAX], plain[PKT_HEADERS_MAX];

    size_t len = pkt_encode(&p, marked);
    p.fecn = false;
    pkt_encode(&p, plain);
    for (size_t i = 0; i < len; i++)
        cr_expect_eq(marked[i] != plain[i], i == BTH_UNCOVERED_BYTE, "byte %zu", i);
}
