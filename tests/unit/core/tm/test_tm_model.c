// SPDX-License-Identifier: BSD-2-Clause
/* Random histories of additions, deletions, reports, messages, missing buffers and deaths, against the reference. A
 * failure prints the history and the seed that repeats it:
 *
 *     TM_SEED=n TM_COUNT=1 build/tests/unit/test_tm_model --filter 'tm_model/histories'
 *
 * TM_COUNT is the number of histories (100000 if it is not given). */
#include <criterion/criterion.h>

#include "tests/unit/core/tm_fixture.h"
#include "tests/unit/core/tm_history.h"

#define QPS 4

struct qp {
    bool busy;
    struct tm_rx rx;
    bool unexpected; /* as the model decided: it will count */
    uint32_t slot; /* slot of the entry that it matched; UINT32_MAX: none */
};
static struct qp qps[QPS];

static void operate(struct history *h)
{
    struct tm_op op = {0};
    struct tm_op_result r, must;
    choose_op(h, &op);
    must = foretell_op(h, &op);
    tm_op(h->tm, &op, &r, 0);
    SAME(h, "complete", r.complete, must.complete);
    SAME(h, "status", r.status, must.status);
    SAME(h, "opcode", r.opcode, must.opcode);
    SAME(h, "flags", r.flags, must.flags);
}

/* --- messages ---------------------------------------------------------------------------------- */

static void arrive(struct history *h, unsigned n)
{
    static const uint8_t opcodes[] = {TMH_EAGER, TMH_EAGER, TMH_EAGER, TMH_RNDV, TMH_NO_TAG, TMH_FIN, 77};
    struct qp *q = &qps[n];
    struct packet p;
    struct tm_decision d;
    uint8_t opcode = opcodes[below(h, sizeof(opcodes))];
    uint64_t tag = random_tag(h);
    bool short_one = chance(h, 3), buffer = chance(h, 75);
    make_msg(&p, opcode, tag, short_one ? 15 : opcode == TMH_RNDV ? 32 : 100);
    p.msg.qpn = n;
    bool tagged = !short_one && (opcode == TMH_EAGER || opcode == TMH_RNDV);
    int index = tagged ? model_match(&h->model, tag) : -1;
    uint32_t handle = index >= 0 ? h->model.list[index].handle : TM_NO_HANDLE;
    note(h, "QP %u: operation %u tag %" PRIx64 "%s%s\n", n, opcode, tag, short_one ? ", short" : "",
         buffer ? "" : ", no buffer");
    tm_decide(h->tm, &p.msg, &d);
    SAME(h, "matched", d.entry != NULL, index >= 0);
    SAME(h, "handle", d.entry ? d.entry->handle : TM_NO_HANDLE, handle);
    if (!d.entry && !buffer) {
        tm_refuse(h->tm, &d, 0);
        return;
    }
    tm_commit(h->tm, &d, &q->rx, 0);
    if (index >= 0)
        model_remove(&h->model, index);
    q->busy = true;
    q->slot = index >= 0 ? TM_SLOT(handle) : UINT32_MAX;
    q->unexpected = tagged && index < 0;
    h->model.inflight += q->unexpected;
}

static void finish(struct history *h, unsigned n, bool well)
{
    struct qp *q = &qps[n];
    note(h, "QP %u: %s\n", n, well ? "done" : "dies");
    uint8_t flags = 0;
    if (well)
        flags = tm_done(h->tm, &q->rx, 0);
    else
        tm_drop(h->tm, &q->rx, 0);
    q->busy = false;
    if (q->slot != UINT32_MAX)
        h->in_use[q->slot] = false;
    if (q->unexpected)
        model_end(&h->model, well);
    bool ask = q->unexpected && well && (uint16_t)(h->model.hw - h->model.sw) > 16383;
    SAME(h, "flags", flags, ask ? WC_TM_SYNC_REQ : 0);
}

/* --- a history --------------------------------------------------------------------------------- */

static void step(struct history *h)
{
    if (chance(h, 45)) {
        operate(h);
        return;
    }
    unsigned n = below(h, QPS);
    if (!qps[n].busy)
        arrive(h, n);
    else
        finish(h, n, chance(h, 85));
}

/* Some histories begin where the counts are about to wrap. */
static void warm_up(struct history *h)
{
    uint32_t messages = 65530 + below(h, 6);
    for (uint32_t i = 0; i < messages; i++)
        send_eager(h->tm, 0);
    h->model.hw = (uint16_t)messages;
    note(h, "%u unexpected messages\n", messages);
}

static void run(struct history *h, uint64_t seed, void *mem)
{
    history_begin(h, seed);
    memset(qps, 0, sizeof(qps));
    h->tags = 1 + below(h, MAX_TAGS);
    struct tm_params p = {.max_num_tags = h->tags, .max_ops = 64, .trace_slots = 0};
    h->tm = tm_init(memset(mem, 0, tm_size(&p)), &p);
    if (seed % 1000 == 0)
        warm_up(h);
    uint32_t steps = 20 + below(h, 60);
    for (uint32_t i = 0; i < steps && !h->wrong[0]; i++) {
        step(h);
        compare(h);
    }
}

Test(tm_model, histories)
{
    uint64_t seed = from_environment("TM_SEED", 1), count = from_environment("TM_COUNT", HISTORIES);
    struct tm_params largest = {.max_num_tags = MAX_TAGS, .max_ops = 64};
    void *mem = aligned_alloc(64, tm_size(&largest));
    struct history *h = calloc(1, sizeof(*h));
    uint64_t matched = 0, late = 0, dropped = 0, activations = 0;
    for (uint64_t i = 0; i < count; i++) {
        run(h, seed + i, mem);
        struct tm_counters c = info_of(h->tm).counters;
        matched += c.rx_exp + c.rx_exp_rndv;
        late += c.list_del_late;
        dropped += c.rx_dropped;
        activations += c.activations;
        if (!h->wrong[0])
            continue;
        h->log = malloc(LOG_SIZE);
        run(h, seed + i, mem);
        fprintf(stderr, "%s\nTM_SEED=%" PRIu64 " TM_COUNT=1 repeats it\n", h->log, seed + i);
        cr_assert_fail("%s", h->wrong);
    }
    /* Checks that the histories test something. */
    if (count >= 1000)
        cr_assert(matched > count && late > count && dropped > count / 2 && activations > count / 2,
                  "%" PRIu64 " matched, %" PRIu64 " late deletions, %" PRIu64 " died, %" PRIu64 " activations", matched,
                  late, dropped, activations);
    free(h);
    free(mem);
}
