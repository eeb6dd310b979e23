// SPDX-License-Identifier: BSD-2-Clause
/* The opcode table, checked by the rules that its rows obey. */
#include <criterion/criterion.h>
#include <string.h>

#include "wire/pkt.h"

#define POSITION (OP_IS_FIRST | OP_IS_MIDDLE | OP_IS_LAST | OP_IS_ONLY)
#define KIND (OP_IS_SEND | OP_IS_WRITE | OP_IS_READ | OP_IS_ATOMIC)

/* Every assigned row. */
#define EACH(op, info)                                                                                                 \
    for (unsigned op = 0; op < 256; op++)                                                                              \
        for (const struct op_info *info = &op_table[op]; info && info->name; info = NULL)

static bool single(unsigned set)
{
    return set && !(set & (set - 1));
}

static unsigned service(unsigned op)
{
    return op & OP_SERVICE_MASK;
}

Test(opcode, the_number_of_opcodes)
{
    unsigned n[256] = {0};

    EACH(op, info)
    {
        n[service(op)]++;
    }
    cr_expect_eq(n[OP_SERVICE_RC], 25);
    cr_expect_eq(n[OP_SERVICE_UC], 12);
    cr_expect_eq(n[OP_SERVICE_UD], 2);
    cr_expect_eq(n[OP_SERVICE_CNP], 2);
    cr_expect_eq(n[OP_SERVICE_XRC], 25);
    cr_expect_eq(n[0x40] + n[0xc0] + n[0xe0], 0, "RD and manufacturer opcodes are none");
}

Test(opcode, header_length_is_the_sum_of_the_headers)
{
    static const uint8_t len[] = {XRCETH_LEN, DETH_LEN,         FETH_LEN,  RETH_LEN, ATOMICETH_LEN,
                                  AETH_LEN,   ATOMICACKETH_LEN, IMMDT_LEN, IETH_LEN};

    EACH(op, info)
    {
        unsigned sum = 12;

        for (unsigned i = 0; i < sizeof(len); i++)
            sum += info->headers & 1u << i ? len[i] : 0;
        cr_expect_eq(info->header_len, sum, "opcode %02x", op);
        cr_expect_eq(info->headers >> sizeof(len), 0, "opcode %02x", op);
        cr_expect_leq(info->header_len, PKT_HEADERS_MAX, "opcode %02x", op);
        cr_expect_eq(info->header_len % 4, 0, "opcode %02x", op);
    }
}

Test(opcode, one_position_and_one_sender)
{
    EACH(op, info)
    {
        unsigned sender = info->properties & (OP_IS_REQUEST | OP_IS_RESPONSE);

        cr_expect(single(info->properties & POSITION), "opcode %02x", op);
        cr_expect(service(op) == OP_SERVICE_CNP ? sender == 0 : single(sender), "opcode %02x", op);
        cr_expect((info->properties & KIND) == 0 || single(info->properties & KIND), "opcode %02x", op);
    }
}

Test(opcode, position_decides_the_payload)
{
    EACH(op, info)
    {
        unsigned properties = info->properties;

        if (properties & (OP_IS_FIRST | OP_IS_MIDDLE))
            cr_expect_eq(info->payload, OP_PAYLOAD_FULL, "opcode %02x", op);
        if (properties & OP_IS_LAST)
            cr_expect_eq(info->payload, OP_PAYLOAD_LAST, "opcode %02x", op);
        if (properties & OP_IS_ONLY && properties & (OP_IS_SEND | OP_IS_WRITE))
            cr_expect_eq(info->payload, OP_PAYLOAD_ONLY, "opcode %02x", op);
        if (properties & OP_IS_ATOMIC || (properties & OP_IS_READ && properties & OP_IS_REQUEST))
            cr_expect_eq(info->payload, OP_PAYLOAD_NONE, "opcode %02x", op);
        cr_expect_eq(info->payload == OP_PAYLOAD_8, (op & OP_OPERATION_MASK) == OP_ATOMIC_WRITE, "opcode %02x", op);
        cr_expect_eq(info->payload == OP_PAYLOAD_CNP, op == OP_CNP || op == OP_CNP_ALT, "opcode %02x", op);
    }
}

Test(opcode, headers_follow_from_the_kind)
{
    EACH(op, info)
    {
        unsigned h = info->headers, properties = info->properties, operation = op & OP_OPERATION_MASK;
        bool request = properties & OP_IS_REQUEST, response = properties & OP_IS_RESPONSE;
        bool begins = properties & (OP_IS_FIRST | OP_IS_ONLY);
        bool flush = operation == OP_FLUSH, atomic_write = operation == OP_ATOMIC_WRITE;

        /* Only the first packet of a message holds the remote address. */
        cr_expect_eq(!!(h & OP_HAS_RETH),
                     request && begins && (properties & (OP_IS_WRITE | OP_IS_READ) || flush || atomic_write),
                     "opcode %02x", op);
        cr_expect_eq(!!(h & OP_HAS_ATOMICETH), request && properties & OP_IS_ATOMIC, "opcode %02x", op);
        cr_expect_eq(!!(h & OP_HAS_FETH), flush, "opcode %02x", op);
        /* Every response has an AETH, except for the middle packets of a READ response. */
        cr_expect_eq(!!(h & OP_HAS_AETH), response && !(properties & OP_IS_MIDDLE), "opcode %02x", op);
        cr_expect_eq(!!(h & OP_HAS_ATOMICACKETH), response && properties & OP_IS_ATOMIC, "opcode %02x", op);
        cr_expect_eq(!!(h & OP_HAS_IMMDT), strstr(info->name, "Immediate") != NULL, "opcode %02x", op);
        cr_expect_eq(!!(h & OP_HAS_IETH), strstr(info->name, "Invalidate") != NULL, "opcode %02x", op);
        if (h & (OP_HAS_IMMDT | OP_HAS_IETH))
            cr_expect(properties & (OP_IS_LAST | OP_IS_ONLY), "opcode %02x: what ends a message", op);
        /* Headers of a single service. */
        cr_expect_eq(!!(h & OP_HAS_DETH), service(op) == OP_SERVICE_UD, "opcode %02x", op);
        cr_expect_eq(!!(h & OP_HAS_XRCETH), service(op) == OP_SERVICE_XRC && request, "opcode %02x", op);
    }
}

Test(opcode, opcodes_that_need_a_receive_request)
{
    EACH(op, info)
    {
        bool expected =
            info->properties & OP_IS_SEND || (info->properties & OP_IS_WRITE && info->headers & OP_HAS_IMMDT);

        cr_expect_eq(!!(info->properties & OP_NEEDS_RECV), expected, "opcode %02x", op);
    }
}

Test(opcode, services_are_subsets_of_rc)
{
    EACH(op, info)
    {
        const struct op_info *rc = &op_table[op & OP_OPERATION_MASK];

        if (service(op) == OP_SERVICE_CNP)
            continue;
        cr_assert_not_null(rc->name, "opcode %02x", op);
        cr_expect_eq(strcasecmp(info->name, rc->name), 0, "opcode %02x", op);
        cr_expect_eq(info->properties, rc->properties, "opcode %02x", op);
        cr_expect_eq(info->payload, rc->payload, "opcode %02x", op);
        cr_expect_eq(info->headers & ~(OP_HAS_XRCETH | OP_HAS_DETH), rc->headers, "opcode %02x", op);
    }
}

Test(opcode, the_operations_of_each_service)
{
    for (unsigned op = 0; op < 32; op++) {
        const struct op_info *rc = &op_table[op];
        unsigned properties = rc->properties;
        bool one_way = rc->name && properties & OP_IS_REQUEST && properties & (OP_IS_SEND | OP_IS_WRITE);

        cr_expect_eq(!op_table[OP_SERVICE_XRC | op].name, !rc->name, "operation %02x", op);
        cr_expect_eq(!!op_table[OP_SERVICE_UC | op].name, one_way && !(rc->headers & OP_HAS_IETH), "operation %02x",
                     op);
        cr_expect_eq(!!op_table[OP_SERVICE_UD | op].name,
                     one_way && !(rc->headers & OP_HAS_IETH) && properties & OP_IS_SEND && properties & OP_IS_ONLY,
                     "operation %02x", op);
    }
}

Test(opcode, families_are_complete)
{
    /* An operation with a FIRST packet also has MIDDLE, LAST and ONLY, of the same kind and from the same sender. */
    EACH(op, info)
    {
        unsigned seen = 0;

        if (!(info->properties & OP_IS_FIRST))
            continue;
        for (unsigned other = service(op); other < service(op) + 32u; other++) {
            const struct op_info *o = &op_table[other];
            unsigned same = KIND | OP_IS_REQUEST | OP_IS_RESPONSE;

            if (o->name && (o->properties & same) == (info->properties & same))
                seen |= o->properties & POSITION;
        }
        cr_expect_eq(seen, POSITION, "opcode %02x", op);
    }
}

Test(opcode, the_enumeration_agrees_with_the_names)
{
    static const struct {
        unsigned op;
        const char *name;
    } some[] = {
        {OP_SERVICE_RC | OP_SEND_ONLY, "SEND Only"},
        {OP_SERVICE_RC | OP_SEND_LAST_INV, "SEND Last with Invalidate"},
        {OP_SERVICE_UC | OP_WRITE_ONLY_IMM, "RDMA WRITE Only with Immediate"},
        {OP_SERVICE_RC | OP_READ_REQUEST, "RDMA READ Request"},
        {OP_SERVICE_RC | OP_READ_RESP_ONLY, "RDMA READ response Only"},
        {OP_SERVICE_XRC | OP_ACK, "Acknowledge"},
        {OP_SERVICE_XRC | OP_CMP_SWAP, "CmpSwap"},
        {OP_SERVICE_RC | OP_FETCH_ADD, "FetchAdd"},
        {OP_SERVICE_RC | OP_FLUSH, "FLUSH"},
        {OP_SERVICE_XRC | OP_ATOMIC_WRITE, "ATOMIC WRITE"},
        {OP_SERVICE_UD | OP_SEND_ONLY, "SEND only"},
        {OP_CNP, "CNP"},
        {OP_CNP_ALT, "CNP"},
    };

    for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++)
        cr_expect_str_eq(op_table[some[i].op].name, some[i].name);
}

Test(opcode, service_names)
{
    cr_expect_str_eq(op_service_name(0x04), "RC");
    cr_expect_str_eq(op_service_name(0x24), "UC");
    cr_expect_str_eq(op_service_name(0x64), "UD");
    cr_expect_str_eq(op_service_name(OP_CNP), "CNP");
    cr_expect_str_eq(op_service_name(0xb4), "XRC");
    cr_expect_str_eq(op_service_name(0x44), "?");
    cr_expect_str_eq(op_service_name(0xff), "?");
}
