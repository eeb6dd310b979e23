// SPDX-License-Identifier: BSD-2-Clause
/* Planned and recorded decisions (daemon/replay/decisions.h), and the checks of the memory that they are in. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdalign.h>
#include <string.h>

#include "daemon/replay/decisions.h"
#include "pumice/abi.h"
#include "wire/opcode.h"

#define PLANNED 5
#define CAPACITY 3

static struct {
    alignas(4096) struct pm_decisions_page page;
    alignas(4096) struct pm_decision decision[PLANNED + CAPACITY];
} memory;
static struct decisions d;

static struct pm_packet packet(uint8_t stream, uint64_t number, uint32_t attempt, uint8_t opcode)
{
    return (struct pm_packet){
        .program = 1, .qp = 2, .stream = stream, .number = number, .attempt = attempt, .opcode = opcode};
}

static void plan(unsigned i, struct pm_packet p, uint8_t strike)
{
    memory.decision[i] = (struct pm_decision){.packet = p, .strike = strike};
}

static int start(const char **why)
{
    return decisions_init(&d, &memory, sizeof(memory), 0, why);
}

static void reset(void)
{
    memset(&memory, 0, sizeof(memory));
    memory.page = (struct pm_decisions_page){
        .magic = PM_DECISIONS_MAGIC, .abi_version = PM_ABI_VERSION, .planned = PLANNED, .capacity = CAPACITY};
    plan(0, packet(PM_STREAM_RESPONSE, 20, 1, OP_ACK), PM_STRIKE_LOST);
    plan(1, packet(PM_STREAM_REQUEST, 17, 2, OP_SEND_MIDDLE), PM_STRIKE_TWICE);
    plan(2, packet(PM_STREAM_REQUEST, 17, 1, OP_SEND_ONLY), PM_STRIKE_LOST);
    plan(3, packet(PM_STREAM_RESPONSE, 8, 1, OP_ACK), PM_STRIKE_LOST);
    plan(4, packet(PM_STREAM_REQUEST, 17, 1, OP_SEND_ONLY), PM_STRIKE_LOST);
    memory.decision[4].packet.device = 1;
}

static void end(void)
{
    decisions_fini(&d);
}
TestSuite(decisions, .init = reset, .fini = end);

static enum fault_action find(struct pm_packet p, uint64_t newest)
{
    struct fault_verdict v = {.action = FAULT_PASS};

    decisions_find(&d, &p, newest, &v);
    return v.action;
}

Test(decisions, the_named_packet_is_struck)
{
    const char *why;

    cr_assert_eq(start(&why), 0);
    cr_expect_eq(find(packet(PM_STREAM_REQUEST, 16, 1, OP_SEND_ONLY), 15), FAULT_PASS);
    cr_expect_eq(find(packet(PM_STREAM_REQUEST, 17, 1, OP_SEND_ONLY), 16), FAULT_DROP);
    cr_expect_eq(find(packet(PM_STREAM_REQUEST, 17, 2, OP_SEND_ONLY), 17), FAULT_DUPLICATE, "divided in another way");
    cr_expect_eq(find(packet(PM_STREAM_REQUEST, 17, 3, OP_SEND_ONLY), 17), FAULT_PASS);
    cr_expect_eq(memory.decision[2].met, PM_MET_STRUCK);
    cr_expect_eq(memory.decision[1].met, PM_MET_STRUCK);
    cr_expect_eq(memory.decision[4].met, PM_MET_NOT, "of another device");
}

Test(decisions, another_kind_of_packet_passes)
{
    const char *why;

    cr_assert_eq(start(&why), 0);
    cr_expect_eq(find(packet(PM_STREAM_REQUEST, 17, 1, OP_WRITE_ONLY), 16), FAULT_PASS);
    cr_expect_eq(memory.decision[2].met, PM_MET_OTHER);
    cr_expect_eq(find(packet(PM_STREAM_REQUEST, 17, 2, OP_SERVICE_UD | OP_SEND_ONLY), 17), FAULT_PASS);
    cr_expect_eq(memory.decision[1].met, PM_MET_OTHER);
}

Test(decisions, an_ack_stands_for_the_ones_it_covers)
{
    const char *why;

    cr_assert_eq(start(&why), 0);
    cr_expect_eq(find(packet(PM_STREAM_RESPONSE, 5, 1, OP_ACK), 0), FAULT_PASS);
    cr_expect_eq(find(packet(PM_STREAM_RESPONSE, 25, 1, OP_ACK), 5), FAULT_DROP, "it acknowledges 8 and 20");
    cr_expect_eq(memory.decision[0].met, PM_MET_STRUCK);
    cr_expect_eq(memory.decision[3].met, PM_MET_STRUCK);
    cr_expect_eq(find(packet(PM_STREAM_RESPONSE, 25, 2, OP_ACK), 25), FAULT_PASS);
    cr_expect_eq(find(packet(PM_STREAM_RESPONSE, 26, 1, OP_ACK), 25), FAULT_PASS);
}

static void record(struct pm_packet p, struct fault_verdict v)
{
    struct pm_decision made = decisions_made(&p, &v);

    decisions_record(&d, &made);
}

Test(decisions, a_packet_without_a_name_is_not_recorded)
{
    const char *why;

    cr_assert_eq(start(&why), 0);
    record((struct pm_packet){.stream = PM_STREAM_REQUEST}, (struct fault_verdict){.action = FAULT_DROP});
    cr_expect_eq(memory.page.recorded, 0);
}

Test(decisions, decisions_are_recorded_until_there_is_no_room)
{
    struct fault_verdict lost = {.action = FAULT_DROP}, none = {.action = FAULT_PASS},
                         late = {.action = FAULT_PASS, .delay_ns = 70, .ce = true};
    struct pm_packet p = packet(PM_STREAM_REQUEST, 1, 1, OP_SEND_ONLY);
    const char *why;

    cr_assert_eq(start(&why), 0);
    record(p, none);
    record(p, lost);
    p.number = 2;
    record(p, late);
    cr_expect_eq(memory.page.recorded, 2);
    struct pm_decision *recorded = memory.decision + PLANNED;
    cr_expect_eq(recorded[0].packet.number, 1);
    cr_expect_eq(recorded[0].packet.attempt, 1);
    cr_expect_eq(recorded[0].strike, PM_STRIKE_LOST);
    cr_expect_eq(recorded[1].packet.number, 2);
    cr_expect_eq(recorded[1].strike, PM_STRIKE_NONE);
    cr_expect_eq(recorded[1].delay_ns, 70);
    cr_expect_eq(recorded[1].marked, 1);
    for (unsigned i = 0; i < 10; i++)
        record(p, lost);
    cr_expect_eq(memory.page.recorded, 12);
}

Test(decisions, messages_of_connection_management_are_counted_by_kind)
{
    struct pm_packet p = {.stream = PM_STREAM_CM, .message = CM_REQ};
    const char *why;

    cr_assert_eq(start(&why), 0);
    decisions_number_cm(&d, &p);
    decisions_number_cm(&d, &p);
    cr_expect_eq(p.number, 2);
    p.message = CM_APR;
    decisions_number_cm(&d, &p);
    cr_expect_eq(p.number, 1);
    p.message = 9999;
    decisions_number_cm(&d, &p);
    cr_expect_eq(p.number, 0);
}

static void refused(const char *part)
{
    const char *why = "";

    cr_expect_eq(start(&why), -EINVAL, "%s", part);
    cr_expect_not_null(strstr(why, part), "%s: %s", part, why);
    cr_expect_not(decisions_on(&d));
}

Test(decisions, arrivals_are_refused_as_planned)
{
    const char *why;

    cr_assert_eq(start(&why), 0);
    cr_expect_not(d.receives);
    decisions_fini(&d);
    plan(1, packet(PM_STREAM_ARRIVAL, 4, 2, OP_SEND_ONLY), PM_STRIKE_REFUSED);
    cr_assert_eq(start(&why), 0, "%s", why);
    cr_expect(d.receives);
    struct pm_packet p = packet(PM_STREAM_ARRIVAL, 4, 1, OP_SEND_ONLY);
    cr_expect_not(decisions_refuse(&d, &p));
    p.attempt = 2;
    cr_expect(decisions_refuse(&d, &p));
    cr_expect_eq(memory.decision[1].met, PM_MET_STRUCK);
    p.opcode = OP_WRITE_ONLY_IMM;
    cr_expect_not(decisions_refuse(&d, &p));
    decisions_record_refusal(&d, &p);
    cr_expect_eq(memory.decision[PLANNED].strike, PM_STRIKE_REFUSED);
    cr_expect_eq(memory.decision[PLANNED].packet.attempt, 2);
}

Test(decisions, a_replay_keeps_the_rules_of_the_link_and_the_daemon_only)
{
    struct fault_spec spec;
    const char *why;
    char text[FAULT_WHY_MAX];

    memory.page.flags = PM_DECISIONS_REPLAY;
    cr_assert_eq(start(&why), 0);
    cr_assert_eq(
        fault_parse("loss=1%;link=down,from=1s,for=1s;rnr=5%;daemon=killed,from=9s;dup=1%", &spec, text, sizeof(text)),
        0, "%s", text);
    decisions_filter(&d, &spec);
    cr_assert_eq(spec.n, 2);
    cr_expect_eq(spec.rule[0].effect, FAULT_ON_LINK);
    cr_expect_eq(spec.rule[1].effect, FAULT_ON_DAEMON);
    decisions_fini(&d);
    memory.page.flags = 0;
    cr_assert_eq(start(&why), 0);
    cr_assert_eq(fault_parse("loss=1%", &spec, text, sizeof(text)), 0);
    decisions_filter(&d, &spec);
    cr_expect_eq(spec.n, 1, "a recording needs its rules");
}

Test(decisions, wrong_memory_is_refused)
{
    const char *why;

    cr_expect_eq(decisions_init(&d, &memory, 4095, 0, &why), -EINVAL);
    memory.page.planned = PLANNED + CAPACITY + 100;
    refused("too small");
    memory.page.planned = UINT32_MAX;
    refused("too small");
    memory.page.planned = PLANNED;
    memory.page.capacity = UINT32_MAX;
    refused("too small");
    reset();
    memory.page.abi_version++;
    refused("version");
    reset();
    memory.page.magic++;
    refused("no decisions");
    reset();
    memory.decision[3].strike = PM_STRIKES_END;
    refused("unknown kind");
    reset();
    memory.decision[3].packet.stream = PM_STREAMS;
    refused("unknown kind");
    reset();
    memory.decision[3].strike = PM_STRIKE_REFUSED;
    refused("does not arrive");
    reset();
    memory.decision[0].delay_ns = UINT64_MAX;
    refused("too long");
}
