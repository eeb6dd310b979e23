// SPDX-License-Identifier: BSD-2-Clause
/* pumice ping: verdicts and hints for each result of the probes. tests/e2e/cli/ping.sh makes networks with these
 * results. It can't make an answer from another address: a Pumice daemon answers from the address that was asked, and
 * if the network changes the address, the ICRC is wrong. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "src/cmd/net/ping_text.h"

static const uint8_t asked[16] = {[10] = 0xff, 0xff, 10, 0, 0, 2}, other[16] = {[10] = 0xff, 0xff, 10, 0, 0, 9};
static const struct pm_check_rep silence = {.state = PM_CHECK_WAITING};

static struct pm_check_rep answer(const uint8_t from[16])
{
    struct pm_check_rep r = {.state = PM_CHECK_ANSWERED, .rtt_ns = 1000};
    memcpy(r.from, from, 16);
    return r;
}

static struct ping ping_of(struct pm_check_rep small, struct pm_check_rep large)
{
    struct ping p = {.host = "there",
                     .own = {[10] = 0xff, 0xff, 10, 0, 0, 1},
                     .name = "pumice0",
                     .mtu = 4096,
                     .probe = {[SMALL_ONE] = {.size = 24, .sent = 3, .result = small},
                               [LARGE] = {.size = 4096, .sent = 3, .result = large}}};
    memcpy(p.gid, asked, 16);
    return p;
}

/* Expects this verdict, and these words in one of the hints; "": there must be no hint. */
static void expect(const struct ping *p, int code, const char *verdict, const char *words)
{
    json_t *o = ping_json(p);
    const json_t *hints = json_object_get(o, "hints"), *one;
    bool found = !words[0] && json_array_size(hints) == 0;
    size_t i;

    cr_expect_eq(ping_exit_code(p), code);
    cr_expect_str_eq(json_string_value(json_object_get(o, "verdict")), verdict);
    json_array_foreach (hints, i, one)
        found = found || (words[0] && strstr(json_string_value(one), words));
    cr_expect(found, "no \"%s\" for %s", words, verdict);
    json_decref(o);
}

Test(pingtext, small_and_large_probes_arrive)
{
    struct ping p = ping_of(answer(asked), answer(asked));
    expect(&p, 0, "ok", "");
}

Test(pingtext, an_answer_from_another_address)
{
    struct ping p = ping_of(answer(asked), answer(other));
    expect(&p, 0, "ok", "ASYMMETRIC: the probe went to 10.0.0.2, but 10.0.0.9 answered.");
    p = ping_of(answer(other), silence);
    expect(&p, 2, "large_lost", "ASYMMETRIC: the probe went to 10.0.0.2, but 10.0.0.9 answered.");
}

Test(pingtext, large_probes_are_lost)
{
    struct pm_check_rep router = {.state = PM_CHECK_TOO_LONG, .by_icmp = 1, .mtu = 1400};
    memcpy(router.from, other, 16);
    struct ping p = ping_of(answer(asked), silence);
    expect(&p, 2, "large_lost", "are lost without an error message");
    p = ping_of(answer(asked), router);
    expect(&p, 2, "large_lost", "10.0.0.9 reports (ICMP, fragmentation needed) that it forwards at most 1400 bytes");
    expect(&p, 2, "large_lost", "--mtu 1024");
    p = ping_of(answer(asked), (struct pm_check_rep){.state = PM_CHECK_TOO_LONG, .mtu = 1400});
    expect(&p, 2, "large_lost", "This host does not send packets of 4148 bytes");
}

Test(pingtext, small_probes_are_lost)
{
    struct ping p = ping_of(silence, answer(asked));
    expect(&p, 3, "small_lost", "The MTU is not the reason");
}

Test(pingtext, no_probe_arrives)
{
    struct ping p = ping_of(silence, silence);
    expect(&p, 4, "both_lost", "Check that 10.0.0.2 is the address of a running pumiced");
    p.heard_here = 2;
    expect(&p, 4, "both_lost", "ONE-WAY: 2 probes of 10.0.0.2 arrived here");
    p = ping_of(silence, silence);
    p.knows_there = true;
    expect(&p, 4, "both_lost", "None of the probes arrived at 10.0.0.2");
    p.heard_there = 6;
    expect(&p, 4, "both_lost", "ONE-WAY: 6 of the probes arrived at 10.0.0.2 and were answered");
    p = ping_of(silence, silence);
    p.damaged_here = 6;
    expect(&p, 4, "both_lost", "6 packets arrived here with a wrong ICRC");
    static const struct {
        int error;
        uint32_t by_icmp;
        const char *words;
    } errors[] = {{ECONNREFUSED, 1, "No program listens on UDP port 4791 of 10.0.0.2"},
                  {EHOSTUNREACH, 1, "ICMP from 10.0.0.9: No route to host"},
                  {ENETUNREACH, 0, "This host can't send to it: Network is unreachable"},
                  {EPERM, 0, "A firewall of this host forbids it"}};
    for (unsigned i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        struct pm_check_rep r = {
            .state = PM_CHECK_ERROR, .error = (uint32_t)errors[i].error, .by_icmp = errors[i].by_icmp};
        memcpy(r.from, other, 16);
        p = ping_of(r, r);
        expect(&p, 4, "both_lost", errors[i].words);
    }
}
