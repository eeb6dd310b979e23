// SPDX-License-Identifier: BSD-2-Clause
/* Compares the tag matching headers with the structures in rdma-core's public header. */
#include <criterion/criterion.h>
#include <endian.h>
#include <infiniband/tm_types.h>
#include <stdlib.h>
#include <string.h>

#include "wire/tmh.h"

static const uint64_t values[] = {0, 1, 0x0123456789abcdef, 0x8000000080000000, UINT64_MAX};
#define VALUES (sizeof(values) / sizeof(values[0]))

Test(tmh, sizes_and_operations_are_those_of_the_abi)
{
    cr_expect_eq(TMH_LEN, sizeof(struct ibv_tmh));
    cr_expect_eq(RVH_LEN, sizeof(struct ibv_rvh));
    cr_expect_eq((int)TMH_NO_TAG, (int)IBV_TMH_NO_TAG);
    cr_expect_eq((int)TMH_RNDV, (int)IBV_TMH_RNDV);
    cr_expect_eq((int)TMH_FIN, (int)IBV_TMH_FIN);
    cr_expect_eq((int)TMH_EAGER, (int)IBV_TMH_EAGER);
}

Test(tmh, every_field_with_every_other)
{
    for (size_t n = 0; n < VALUES * VALUES * VALUES * VALUES; n++) {
        uint64_t a = values[n % VALUES], b = values[n / VALUES % VALUES], c = values[n / VALUES / VALUES % VALUES],
                 d = values[n / VALUES / VALUES / VALUES];
        struct tmh in = {(uint8_t)a, {(uint8_t)b, (uint8_t)(b >> 8), (uint8_t)(b >> 16)}, (uint32_t)c, d}, out;
        struct ibv_tmh expected = {
            in.opcode, {in.reserved[0], in.reserved[1], in.reserved[2]}, htobe32((uint32_t)c), htobe64(d)};
        uint8_t wire[TMH_LEN + 1];

        memset(wire, 0x77, sizeof(wire));
        memset(&out, 0x55, sizeof(out));
        cr_assert_eq(tmh_encode(&in, wire), TMH_LEN);
        cr_expect_arr_eq(wire, &expected, TMH_LEN);
        cr_expect_eq(wire[TMH_LEN], 0x77);
        cr_assert(tmh_decode(wire, TMH_LEN, &out));
        cr_expect_eq(out.opcode, in.opcode);
        cr_expect_arr_eq(out.reserved, in.reserved, 3);
        cr_expect_eq(out.app_ctx, in.app_ctx);
        cr_expect_eq(out.tag, in.tag);
    }
}

Test(rvh, every_field_with_every_other)
{
    for (size_t n = 0; n < VALUES * VALUES * VALUES; n++) {
        uint64_t a = values[n % VALUES], b = values[n / VALUES % VALUES], c = values[n / VALUES / VALUES];
        struct rvh in = {a, (uint32_t)b, (uint32_t)c}, out;
        struct ibv_rvh expected = {htobe64(a), htobe32((uint32_t)b), htobe32((uint32_t)c)};
        uint8_t wire[RVH_LEN + 1];

        memset(wire, 0x77, sizeof(wire));
        memset(&out, 0x55, sizeof(out));
        cr_assert_eq(rvh_encode(&in, wire), RVH_LEN);
        cr_expect_arr_eq(wire, &expected, RVH_LEN);
        cr_expect_eq(wire[RVH_LEN], 0x77);
        cr_assert(rvh_decode(wire, RVH_LEN, &out));
        cr_expect_eq(out.va, in.va);
        cr_expect_eq(out.rkey, in.rkey);
        cr_expect_eq(out.len, in.len);
    }
}

Test(tmh, truncated)
{
    for (size_t len = 0; len <= 20; len++) {
        uint8_t *wire = calloc(1, len ? len : 1);
        struct tmh t = {.opcode = 0x55}, t0 = t;
        struct rvh r = {.rkey = 0x55}, r0 = r;

        cr_expect_eq(tmh_decode(wire, len, &t), len >= TMH_LEN);
        cr_expect_eq(rvh_decode(wire, len, &r), len >= RVH_LEN);
        cr_expect_eq(t.opcode, len >= TMH_LEN ? 0 : t0.opcode);
        cr_expect_eq(r.rkey, len >= RVH_LEN ? 0 : r0.rkey);
        free(wire);
    }
}
