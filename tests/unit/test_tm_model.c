// SPDX-License-Identifier: BSD-2-Clause
/* Random histories of additions, deletions, reports, messages, missing buffers and deaths, against the reference. A
 * failure prints the history and the seed that repeats it:
 *
 *     TM_SEED=n TM_COUNT=1 build/tests/unit/test_tm_model --filter 'tm_model/histories'
 *
 * TM_COUNT is the number of histories (100000 if it is not given). */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "tm_fixture.h"
#include "tm_model.h"

#define MAX_TAGS 24u
#define QPS 4
#define HISTORIES 100000

struct qp {
    bool busy;
    struct tm_rx rx;
    bool unexpected; /* the model's view: it will count */
    uint32_t slot; /* that it holds if it matched; UINT32_MAX: none */
};
struct history {
    uint64_t random;
    struct tm *tm;
    uint32_t tags;
    struct model model;
    uint32_t generation[MAX_TAGS];
    bool in_use[MAX_TAGS]; /* listed or consumed */
    struct qp qp[QPS];
    char *log; /* what happened, or NULL */
    size_t log_len;
    char wrong[256]; /* the first difference; empty: none */
};

static uint64_t next_random(struct history *h)
{
    uint64_t z = (h->random += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}
static uint32_t below(struct history *h, uint32_t n)
{
    return (uint32_t)(next_random(h) % n);
}
static bool chance(struct history *h, uint32_t percent)
{
    return below(h, 100) < percent;
}

#define LOG_SIZE (1u << 20)
__attribute__((format(printf, 2, 3))) static void note(struct history *h, const char *format, ...)
{
    if (!h->log)
        return;
    va_list args;
    va_start(args, format);
    h->log_len += (size_t)vsnprintf(h->log + h->log_len, LOG_SIZE - h->log_len, format, args);
    va_end(args);
    if (h->log_len > LOG_SIZE - 256)
        h->log_len = LOG_SIZE - 256;
}
__attribute__((format(printf, 2, 3))) static void differ(struct history *h, const char *format, ...)
{
    if (h->wrong[0])
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(h->wrong, sizeof(h->wrong), format, args);
    va_end(args);
    note(h, "  <-- %s\n", h->wrong);
}
#define SAME(h, what, got, want)                                                                                       \
    do {                                                                                                               \
        if ((long long)(got) != (long long)(want))                                                                     \
            differ(h, "%s is %lld, not %lld", what, (long long)(got), (long long)(want));                              \
    } while (0)

/* --- operations ------------------------------------------------------------------------------------------------------------ */

static uint64_t random_tag(struct history *h)
{
    return below(h, 4) | (chance(h, 10) ? 1ull << 63 : 0);
}
static uint64_t random_mask(struct history *h)
{
    static const uint64_t masks[] = {EXACT, EXACT, EXACT, EXACT, 0, 1, 2, EXACT >> 1, 1ull << 63, 3};
    return masks[below(h, sizeof(masks) / sizeof(*masks))];
}
/* Mostly what an honest program would say. */
static uint32_t random_count(struct history *h)
{
    uint32_t kind = below(h, 10);
    if (kind < 6)
        return h->model.hw + (chance(h, 20) ? below(h, 8) << 16 : 0);
    return kind < 9 ? h->model.hw - below(h, 3) : (uint32_t)next_random(h);
}
/* A handle of the past, the present, or of nobody. */
static uint32_t random_handle(struct history *h)
{
    uint32_t slot = below(h, h->tags);
    if (chance(h, 3))
        return (uint32_t)next_random(h);
    return handle_of(slot, h->generation[slot] - (chance(h, 15) ? 1 + below(h, 2) : 0));
}

static void choose_op(struct history *h, struct tm_op *op)
{
    static const uint8_t opcodes[] = {TM_ADD, TM_ADD, TM_ADD, TM_DEL, TM_DEL, TM_SYNC};
    op->opcode = opcodes[below(h, sizeof(opcodes))];
    op->flags = (uint8_t)(below(h, 2) * TM_OP_SIGNALED + (chance(h, 60) ? TM_OP_SYNC : 0));
    op->unexpected_cnt = random_count(h);
    op->handle = random_handle(h);
    if (op->opcode != TM_ADD)
        return;
    op->tag = random_tag(h);
    op->mask = random_mask(h);
    op->tag &= chance(h, 95) ? op->mask : EXACT;
    uint32_t slot = TM_SLOT(op->handle);
    if (slot < h->tags && !h->in_use[slot])
        op->handle = handle_of(slot, ++h->generation[slot]);
}

static void operate(struct history *h)
{
    struct tm_op op = {0};
    struct tm_op_result r;
    choose_op(h, &op);
    uint32_t slot = TM_SLOT(op.handle);
    int status = WC_SUCCESS, refused = 0, index = model_index(&h->model, op.handle);
    if (op.opcode == TM_SYNC || op.flags & TM_OP_SYNC)
        model_report(&h->model, op.unexpected_cnt);
    if (op.opcode == TM_ADD) {
        refused = slot >= h->tags || h->in_use[slot];
        if (!refused) {
            model_add(&h->model, op.handle, op.tag, op.mask);
            h->in_use[slot] = true;
        }
    } else if (op.opcode == TM_DEL && index >= 0) {
        model_remove(&h->model, index);
        h->in_use[slot] = false;
    }
    if (refused || (op.opcode == TM_DEL && index < 0))
        status = WC_TM_ERR;
    note(h, "%s %x tag %" PRIx64 " mask %" PRIx64 " flags %u count %u\n",
         op.opcode == TM_ADD   ? "ADD"
         : op.opcode == TM_DEL ? "DEL"
                               : "SYNC",
         op.handle, op.tag, op.mask, op.flags, op.unexpected_cnt);
    tm_op(h->tm, &op, &r, 0);
    SAME(h, "complete", r.complete, refused || op.flags & TM_OP_SIGNALED);
    SAME(h, "status", r.status, status);
    SAME(h, "opcode", r.opcode, WC_TM_ADD + op.opcode);
    SAME(h, "flags", r.flags, model_in_sync(&h->model) ? 0 : WC_TM_SYNC_REQ);
}

/* --- messages -------------------------------------------------------------------------------------------------------------- */

static void arrive(struct history *h, unsigned n)
{
    static const uint8_t opcodes[] = {TMH_EAGER, TMH_EAGER, TMH_EAGER, TMH_RNDV, TMH_NO_TAG, TMH_FIN, 77};
    struct qp *q = &h->qp[n];
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
    struct qp *q = &h->qp[n];
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

/* --- a history ------------------------------------------------------------------------------------------------------------- */

static void compare(struct history *h)
{
    struct tm_info info = info_of(h->tm);
    const struct model *m = &h->model;
    SAME(h, "hw_cnt", info.hw_cnt, m->hw);
    SAME(h, "sw_cnt", info.sw_cnt, m->sw);
    SAME(h, "inflight", info.inflight, m->inflight);
    SAME(h, "entries", info.active + info.pending, m->n);
    SAME(h, "in_sync", info.in_sync, model_in_sync(m));
    const struct tm_entry *e = NULL;
    uint32_t active = 0;
    for (int i = 0; i < m->n; i++) {
        e = tm_next_entry(h->tm, e);
        if (!e || e->handle != m->list[i].handle || tm_is_active(h->tm, e) != m->list[i].active) {
            differ(h, "entry %d is another one", i);
            return;
        }
        active += m->list[i].active;
        if (m->list[i].active && active != (uint32_t)i + 1)
            differ(h, "active entries are not a prefix");
    }
    SAME(h, "active", info.active, active);
}

static void step(struct history *h)
{
    if (chance(h, 45)) {
        operate(h);
        return;
    }
    unsigned n = below(h, QPS);
    if (!h->qp[n].busy)
        arrive(h, n);
    else
        finish(h, n, chance(h, 85));
}

/* Some begin where the counts are about to wrap. */
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
    memset(h, 0, offsetof(struct history, log));
    h->wrong[0] = 0;
    h->log_len = 0;
    h->random = seed;
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

static uint64_t from_environment(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 0) : otherwise;
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
    /* They are about something. */
    if (count >= 1000)
        cr_assert(matched > count && late > count && dropped > count / 2 && activations > count / 2,
                  "%" PRIu64 " matched, %" PRIu64 " late deletions, %" PRIu64 " died, %" PRIu64 " activations", matched,
                  late, dropped, activations);
    free(h);
    free(mem);
}
