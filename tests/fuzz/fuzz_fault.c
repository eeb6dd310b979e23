// SPDX-License-Identifier: BSD-2-Clause
/* libFuzzer target: fault specifications and scripts, which any user of the control socket can send. An accepted specification is
 * within its bounds, and its decisions depend on nothing but their input. */
#include <stdlib.h>
#include <string.h>

#include "daemon/fault/fault.h"
#include "daemon/fault/fault_script.h"
#include "wire/cm_msg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition)
{
    if (!condition)
        abort();
}

static void check_rule(const struct fault_rule *r)
{
    must(r->loss <= FAULT_ALWAYS && r->ack_loss <= FAULT_ALWAYS && r->dup <= FAULT_ALWAYS &&
         r->corrupt <= FAULT_ALWAYS && r->reorder <= FAULT_ALWAYS);
    must(r->delay_ns <= FAULT_DELAY_MAX_NS && r->jitter_ns <= FAULT_DELAY_MAX_NS &&
         r->reorder_ns <= FAULT_DELAY_MAX_NS);
    must(r->truncate <= FAULT_ALWAYS && r->rnr <= FAULT_ALWAYS && r->ce <= FAULT_ALWAYS);
    must(r->qpn <= 0xffffff && r->src_qpn <= 0xffffff && r->only <= FAULT_OPCODES && r->effect <= FAULT_ON_DAEMON);
    must(r->from_ns <= FAULT_TIME_MAX_NS && r->from_ns < r->until_ns && r->for_ns <= FAULT_TIME_MAX_NS);
    must(r->after <= FAULT_COUNT_MAX && r->count <= FAULT_COUNT_MAX && r->nth_message <= FAULT_COUNT_MAX);
    must(r->message == 0 || (r->only == FAULT_CM && r->message >= CM_REQ && r->message <= CM_APR));
}

static void check_decisions(const struct fault_spec *spec)
{
    static struct fault a, b;
    static const uint8_t gid[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};
    uint8_t packet[64] = {0}, copy[64] = {0};

    fault_init(&a, spec, 1, 0, 0);
    fault_init(&b, spec, 1, 0, 0);
    for (unsigned i = 0; i < 256; i++) {
        struct fault_pkt p = {
            .src_gid = gid, .dst_gid = gid, .dest_qpn = 17, .psn = i / 2, .opcode = (uint8_t)i, .tm = i % 5 == 0};
        uint64_t now = (uint64_t)i * i * i * 1000000; /* up to 16,000 s */

        if (i % 3 == 0)
            p.cm_attribute = (uint16_t)(CM_REQ + i % (CM_APR - CM_REQ + 1));
        struct fault_verdict v, w;

        fault_advance(&a, now);
        fault_advance(&b, now);
        must(fault_deadline(&a) > now && fault_deadline(&a) == fault_deadline(&b));
        must(fault_refuses(&a, &p, now) == fault_refuses(&b, &p, now));
        fault_decide(&a, &p, now, &v);
        fault_decide(&b, &p, now, &w);
        must(v.action == w.action && v.delay_ns == w.delay_ns && v.random == w.random);
        must(v.action <= FAULT_TRUNCATE && v.delay_ns <= 3 * FAULT_DELAY_MAX_NS);
        must(fault_truncated_len(&v, i) <= i && fault_truncated_len(&v, i) == fault_truncated_len(&w, i));
        fault_corrupt(&v, packet, i % sizeof(packet));
        fault_corrupt(&w, copy, i % sizeof(copy));
    }
    must(memcmp(packet, copy, sizeof(packet)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fault_spec spec;
    char why[FAULT_WHY_MAX];
    char *text = malloc(size + 1);

    must(text != NULL);
    memcpy(text, data, size);
    text[size] = 0;
    if (fault_parse(text, &spec, why, sizeof(why)) == 0) {
        must(spec.n <= FAULT_RULES_MAX);
        for (unsigned i = 0; i < spec.n; i++)
            check_rule(&spec.rule[i]);
        if (spec.n)
            check_decisions(&spec);
    } else {
        must(spec.n == 0 && why[0] && strlen(why) < sizeof(why));
    }
    if (fault_script_parse(text, 0, size % 4, &spec, why, sizeof(why)) == 0) {
        must(spec.n <= FAULT_RULES_MAX);
        for (unsigned i = 0; i < spec.n; i++)
            check_rule(&spec.rule[i]);
        if (spec.n)
            check_decisions(&spec);
    } else {
        must(spec.n == 0 && strncmp(why, "line ", 5) == 0 && strlen(why) < sizeof(why));
    }
    free(text);
    return 0;
}
