// SPDX-License-Identifier: BSD-2-Clause
/* The numbers of packets (daemon/replay/stream.h): the same packet has the same number, whatever the first PSN is. */
#include <criterion/criterion.h>
#include <string.h>

#include "daemon/replay/stream.h"
#include "wire/pkt.h"

static struct resends resends;
static struct qp_streams streams;

static struct pm_packet number(uint8_t stream, uint32_t first, uint32_t psn)
{
    struct pm_packet p = {.program = 1, .stream = stream};

    stream_number(&streams, &resends, first, psn & PSN_MASK, &p);
    return p;
}

static void expect(struct pm_packet p, uint64_t n, uint32_t attempt)
{
    cr_expect_eq(p.number, n, "packet %lu, not %lu", (unsigned long)p.number, (unsigned long)n);
    cr_expect_eq(p.attempt, attempt, "packet %lu: attempt %u, not %u", (unsigned long)n, p.attempt, attempt);
}

static void reset(void)
{
    memset(&resends, 0, sizeof(resends));
    memset(&streams, 0, sizeof(streams));
}
TestSuite(stream, .init = reset);

Test(stream, numbers_do_not_depend_on_the_first_psn)
{
    static const uint32_t firsts[] = {0, 1, 0x123456, 0x7fffff, 0x800000, PSN_MASK};

    for (unsigned i = 0; i < sizeof(firsts) / sizeof(firsts[0]); i++) {
        uint32_t first = firsts[i];

        reset();
        for (uint32_t n = 0; n < 100; n++)
            expect(number(PM_STREAM_REQUEST, first, first + n), n + 1, 1);
        expect(number(PM_STREAM_REQUEST, first, first + 40), 41, 2);
        expect(number(PM_STREAM_REQUEST, first, first + 41), 42, 2);
        expect(number(PM_STREAM_REQUEST, first, first + 40), 41, 3);
        expect(number(PM_STREAM_REQUEST, first, first + 100), 101, 1);
        expect(number(PM_STREAM_REQUEST, first, first + 40), 41, 4);
    }
}

Test(stream, psns_come_around)
{
    uint64_t n = 1;

    for (; n < 40000000; n += 4000000)
        expect(number(PM_STREAM_REQUEST, 77, (uint32_t)(77 + n - 1)), n, 1);
    expect(number(PM_STREAM_REQUEST, 77, (uint32_t)(77 + n - 4000000 - 1)), n - 4000000, 2);
}

Test(stream, streams_are_counted_separately)
{
    expect(number(PM_STREAM_REQUEST, 5, 5), 1, 1);
    expect(number(PM_STREAM_RESPONSE, 900, 902), 3, 1); /* an ACK for three packets */
    expect(number(PM_STREAM_RESPONSE, 900, 902), 3, 2);
    expect(number(PM_STREAM_REQUEST, 5, 6), 2, 1);
    expect(number(PM_STREAM_RESPONSE, 900, 899), 0, 2); /* before the first */
}

Test(stream, a_reset_begins_anew)
{
    expect(number(PM_STREAM_REQUEST, 5, 5), 1, 1);
    expect(number(PM_STREAM_REQUEST, 5, 5), 1, 2);
    qp_streams_restart(&streams);
    struct pm_packet p = number(PM_STREAM_REQUEST, 900, 900);
    expect(p, 1, 1);
    cr_expect_eq(p.life, 1);
    expect(number(PM_STREAM_REQUEST, 900, 900), 1, 2);
}

Test(stream, many_packets_that_are_sent_again_are_remembered)
{
    for (uint32_t n = 0; n < 8000; n++)
        number(PM_STREAM_REQUEST, 0, n);
    for (uint32_t attempt = 2; attempt < 6; attempt++)
        for (uint32_t n = 0; n < 8000; n++)
            expect(number(PM_STREAM_REQUEST, 0, n), n + 1, attempt);
}
