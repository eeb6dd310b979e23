// SPDX-License-Identifier: BSD-2-Clause
/* libFuzzer target: plans of emulated networks, which users write. Whatever the text is, routes stay within the plan. */
#include <stdlib.h>
#include <string.h>

#include "daemon/netem/netem_plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition)
{
    if (!condition)
        abort();
}

/* Links that no route passes may mark, too. */
static void check_first_mark(const struct netem_plan *plan)
{
    uint64_t first = netem_plan_first_mark(plan);
    bool is_of_link = !first;

    for (unsigned i = 0; i < plan->num_links; i++) {
        must(!plan->link[i].mark_bytes || (first && first <= plan->link[i].mark_bytes));
        is_of_link |= first == plan->link[i].mark_bytes;
    }
    must(is_of_link);
}

static void check_link(const struct netem_link *l)
{
    struct netem_queue q = {0};

    must(l->latency_ns <= NETEM_LATENCY_MAX_NS && l->jitter_ns <= NETEM_LATENCY_MAX_NS);
    must(l->bits_per_s || (!l->queue_bytes && !l->mark_bytes));
    must(!l->mark_all_bytes || l->mark_all_bytes > l->mark_bytes);
    for (uint64_t i = 0; i < 4; i++) {
        struct netem_passage p = netem_link_pass(l, &q, 1000, i * 0x123456789abcdefull, 1000 + i);

        must(p.lost || p.arrival >= 1000 + i + l->latency_ns);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct netem_plan plan;
    char why[NETEM_WHY_MAX];
    char *text = malloc(size + 1);

    must(text != NULL);
    memcpy(text, data, size);
    text[size] = 0;
    if (netem_plan_parse(text, &plan, why) == 0) {
        must(plan.num_links <= NETEM_LINKS && plan.num_racks <= NETEM_RACKS && plan.num_addresses <= NETEM_ADDRESSES);
        for (uint32_t i = 0; i < 8 * 8; i++) {
            struct netem_hop hops[NETEM_HOPS];
            unsigned n = netem_plan_route(&plan, i / 8, i % 8, hops);

            must(n <= NETEM_HOPS);
            for (unsigned k = 0; k < n; k++) {
                must(hops[k].queue < NETEM_QUEUES && hops[k].link >= plan.link &&
                     hops[k].link < plan.link + plan.num_links);
                check_link(hops[k].link);
            }
        }
        check_first_mark(&plan);
        for (unsigned i = 0; i < plan.num_addresses; i++)
            must(netem_plan_host(&plan, plan.address[i].gid) == plan.address[i].host);
    } else {
        must(strncmp(why, "line ", 5) == 0 && strlen(why) < sizeof(why));
    }
    free(text);
    return 0;
}
