// SPDX-License-Identifier: BSD-2-Clause
/* The processors that a device recommends to its clients (daemon/loop/cpu_advice.h). */
#include "daemon/loop/cpu_advice.h"

#include <criterion/criterion.h>

static struct cpu_advice_traffic last, now;

/* A look after so much more traffic. */
static enum cpu_advice look(uint64_t inside, uint64_t outside, uint64_t datagrams)
{
    now.inside += inside;
    now.outside += outside;
    now.datagrams += datagrams;
    return cpu_advice_look(&last, &now, 2, 2);
}

Test(cpu_advice, messages_within_the_device)
{
    cr_expect_eq(look(0, 0, 0), CPU_ADVICE_NONE, "no message");
    cr_expect_eq(look(10, 0, 0), CPU_ADVICE_APART);
    cr_expect_eq(look(20, 2, 2), CPU_ADVICE_APART, "and few others");
    cr_expect_eq(look(0, 0, 0), CPU_ADVICE_NONE, "no further one");
}

Test(cpu_advice, short_messages_of_others)
{
    cr_expect_eq(look(0, 20, 20), CPU_ADVICE_BESIDE);
    cr_expect_eq(look(2, 20, 10), CPU_ADVICE_BESIDE, "with ACKs, and few within the device");
    cr_expect_eq(look(0, 0, 0), CPU_ADVICE_NONE, "no further one");
    cr_expect_eq(look(0, 7, 7), CPU_ADVICE_NONE, "too few to tell");
    cr_expect_eq(look(20, 20, 20), CPU_ADVICE_NONE, "as many within the device");
}

/* A look after packets with so many bytes out and in. */
static enum cpu_advice look_at_stream(uint64_t packets, uint64_t datagrams, uint64_t out, uint64_t in)
{
    now.bytes_out += out;
    now.bytes_in += in;
    return look(0, packets, datagrams);
}

Test(cpu_advice, streams_of_others)
{
    cr_expect_eq(look_at_stream(320, 20, 1u << 20, 1000), CPU_ADVICE_AWAY, "long messages leave");
    cr_expect_eq(look_at_stream(320, 20, 1000, 1u << 20), CPU_ADVICE_BESIDE_CROWDED, "long messages come");
    cr_expect_eq(look_at_stream(320, 20, 1u << 20, 1u << 20), CPU_ADVICE_NONE, "both");
    cr_expect_eq(look_at_stream(320, 20, 32000, 1000), CPU_ADVICE_NONE, "short messages");
}

Test(cpu_advice, more_programs_than_processors)
{
    struct cpu_advice_traffic none = {0}, inside = {.inside = 10}, outside = {.outside = 10, .datagrams = 10};

    cr_expect_eq(cpu_advice_look(&none, &inside, 9, 8), CPU_ADVICE_NONE);
    none = (struct cpu_advice_traffic){0};
    cr_expect_eq(cpu_advice_look(&none, &outside, 9, 8), CPU_ADVICE_NONE);
    none = (struct cpu_advice_traffic){0};
    cr_expect_eq(cpu_advice_look(&none, &outside, 8, 8), CPU_ADVICE_BESIDE);
}

Test(cpu_advice, many_sessions_crowd_each_other)
{
    cr_expect_not(cpu_advice_many(24, 2));
    cr_expect(cpu_advice_many(25, 2));
    cr_expect_not(cpu_advice_many(25, 16));
}
