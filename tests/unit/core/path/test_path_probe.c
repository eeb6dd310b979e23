// SPDX-License-Identifier: BSD-2-Clause
/* Connectivity checks. The engine sends them for its owner and answers those of others. It reports both to the
 * owner. */
#include <errno.h>

#include "tests/unit/core/core_fixture.h"
#include "wire/pumice/probe.h"

#define TOKEN 0x1122334455667788u

static struct fixture fix;
static struct av to = {.dgid = {[15] = 2}};

static void setup(void)
{
    fix_init(&fix);
}
static void teardown(void)
{
    fix_fini(&fix);
}
TestSuite(check, .init = setup, .fini = teardown);

static void rx_probe(uint8_t kind, uint8_t purpose, uint32_t size, uint8_t from)
{
    static uint8_t payload[4096];
    struct probe probe = {.kind = kind, .purpose = purpose, .sequence = 9, .size = size, .token = TOKEN};
    struct pkt p = {.opcode = OP_SERVICE_UD | OP_SEND_ONLY,
                    .pkey = PKEY_DEFAULT,
                    .dest_qpn = PROBE_QPN,
                    .deth = {.qkey = PROBE_QKEY, .src_qpn = PROBE_QPN},
                    .payload = payload,
                    .payload_len = kind == PROBE_ASK ? size : PROBE_LEN};
    struct rx_meta meta = {.src_gid = {[15] = from}, .dst_gid = {[15] = 1}};
    memset(payload, 0, sizeof(payload));
    probe_encode(&probe, payload);
    engine_rx(fix.e, &p, &meta, fix.now);
}

static void sends_one_of(uint32_t size)
{
    uint8_t buf[65536];
    struct pkt p[4];
    struct probe probe;

    cr_assert_eq(engine_check(fix.e, &to, size, 9, TOKEN), 0);
    cr_assert_eq(fix_tx(&fix, buf, p, 4), 1);
    cr_assert(p[0].opcode == (OP_SERVICE_UD | OP_SEND_ONLY) && p[0].dest_qpn == PROBE_QPN);
    cr_assert_eq(p[0].payload_len, size);
    cr_assert(probe_decode(p[0].payload, p[0].payload_len, &probe));
    cr_expect(probe.kind == PROBE_ASK && probe.purpose == PROBE_CHECK && probe.sequence == 9 && probe.size == size &&
              probe.token == TOKEN);
    for (uint32_t i = PROBE_LEN; i < size; i++)
        cr_assert_eq(p[0].payload[i], 0);
}

Test(check, probes_of_every_size)
{
    sends_one_of(PROBE_LEN);
    sends_one_of(1021); /* needs padding */
    sends_one_of(4096);
}

Test(check, probes_that_can_not_be_sent)
{
    struct av group = {.dgid = {0xff, 2, [15] = 2}}, nowhere = to;
    nowhere.sgid_index = 1;
    cr_expect_eq(engine_check(fix.e, &to, PROBE_LEN - 1, 1, 1), -EINVAL);
    cr_expect_eq(engine_check(fix.e, &to, 4097, 1, 1), -EINVAL);
    cr_expect_eq(engine_check(fix.e, &group, 64, 1, 1), -EINVAL);
    cr_expect_eq(engine_check(fix.e, &nowhere, 64, 1, 1), -EINVAL);
    int rc = 0;
    for (int i = 0; i < 1000 && rc == 0; i++)
        rc = engine_check(fix.e, &to, 64, 1, 1);
    cr_expect_eq(rc, -EAGAIN);
}

Test(check, answers_are_reported_with_their_source)
{
    struct check c;
    rx_probe(PROBE_ANSWER, PROBE_CHECK, 1024, 3);
    cr_assert(engine_pop_check(fix.e, &c));
    cr_expect(c.answer && c.peer[15] == 3 && c.sequence == 9 && c.size == 1024 && c.token == TOKEN);
    cr_expect_not(engine_pop_check(fix.e, &c));
}

Test(check, probes_of_peers_are_answered_and_reported)
{
    uint8_t buf[65536];
    struct pkt p[4];
    struct check c;
    struct probe probe;
    rx_probe(PROBE_ASK, PROBE_CHECK, 2000, 2);
    cr_assert(engine_pop_check(fix.e, &c));
    cr_expect(!c.answer && c.peer[15] == 2 && c.size == 2000);
    cr_assert_eq(fix_tx(&fix, buf, p, 4), 1);
    cr_assert(probe_decode(p[0].payload, p[0].payload_len, &probe));
    cr_expect(probe.kind == PROBE_ANSWER && probe.size == 2000 && p[0].payload_len == PROBE_LEN);
    cr_expect(probe.icrc_ids);
}

Test(check, answers_to_flow_control_probes_are_not_reported)
{
    struct check c;
    rx_probe(PROBE_ASK, PROBE_FLOW, PROBE_LEN, 2);
    rx_probe(PROBE_ANSWER, PROBE_FLOW, PROBE_LEN, 2);
    cr_expect_not(engine_pop_check(fix.e, &c));
}

Test(check, answers_that_the_owner_does_not_fetch_are_dropped)
{
    struct check c;
    unsigned n = 0;
    for (int i = 0; i < 100; i++)
        rx_probe(PROBE_ANSWER, PROBE_CHECK, 64, 2);
    while (engine_pop_check(fix.e, &c))
        n++;
    cr_expect(n > 0 && n < 100);
}
