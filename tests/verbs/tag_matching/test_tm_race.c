// SPDX-License-Identifier: BSD-2-Clause
/* The race that the synchronization of tag matching prevents. Messages m1 and m2 arrive while the program posts
 * receives b1 and b2. The test tries every order, and lets the program look at its completions in between or not. The
 * first message must match the first receive, and every completion must equal the one of the reference model. */
#include "tests/verbs/tag_matching/tags_mpi.h"

#define TAG 5

static struct mpi mpi;

/* order: the digits 0, 1 are messages, 2, 3 receives. looks: bit i, the program polls after step i. */
static bool run(const char *order, unsigned looks, bool two_qps, bool wildcard, uint32_t len)
{
    struct mpi *m = &mpi;
    int sent[2], num_sent = 0, posted[2], num_posted = 0, base = m->taken;
    for (int i = 0; i < 4; i++) {
        int n = order[i] - '0';
        if (n < 2) {
            sent[num_sent++] = base + n;
            mpi_send_exact(m, m->p->s.qp[two_qps && n], base + n, TAG, len + (uint32_t)n);
        } else {
            uint64_t mask = wildcard && n == 2 ? 0 : EXACT;
            posted[num_posted++] = mpi_post(m, TAG & mask, mask);
        }
        if (looks >> i & 1)
            mpi_poll_due(m);
    }
    mpi_poll_due(m);
    for (int i = 0; i < 2; i++)
        MPI_SAME(m, "message of a receive", m->recv[posted[i]].msg, sent[i]);
    need(tm_sync(&m->p->r, m->count));
    model_report(&m->model, m->count);
    MPI_SAME(m, "entries in the end", m->model.n, 0);
    if (m->strange)
        printf("# order %s (0, 1: messages; 2, 3: receives), polls after %x, %s, length %u\n", order, looks,
               two_qps ? "two QPs" : "one QP", len);
    return !m->strange;
}

/* The next order of the digits, as a number grows; false: that was the last. */
static bool next_order(char *o)
{
    int i = 2, k = 3;
    while (i >= 0 && o[i] > o[i + 1])
        i--;
    if (i < 0)
        return false;
    while (o[k] < o[i])
        k--;
    char c = o[i];
    o[i] = o[k];
    o[k] = c;
    if (i < 2) { /* what follows becomes the least again */
        c = o[i + 1];
        o[i + 1] = o[3];
        o[3] = c;
    }
    return true;
}

static void every_order(struct tm_pair *p)
{
    static const struct {
        const char *what;
        bool two_qps, wildcard;
        uint32_t len;
    } kinds[] = {{"messages of one QP", false, false, 10},
                 {"messages of several packets", false, false, 2000},
                 {"messages of two QPs", true, false, 10},
                 {"a wildcard", false, true, 10}};
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        char order[5] = "0123";
        unsigned runs = 0, matched = (unsigned)(mpi.taken - mpi.unexpected);
        bool right = true;
        do {
            for (unsigned looks = 0; looks < 8 && right; looks++, runs++)
                right = run(order, looks, kinds[k].two_qps, kinds[k].wildcard, kinds[k].len);
        } while (right && next_order(order));
        matched = (unsigned)(mpi.taken - mpi.unexpected) - matched;
        ok(right && runs == 24 * 8, kinds[k].what);
        ok(!right || (matched > runs / 2 && matched < 2 * runs), "some matched, some did not");
    }
    (void)p;
}

/* The proposal's own words. count: unexpected messages before. */
static void verbatim(struct tm_pair *p, uint32_t count)
{
    struct tm_side *r = &p->r, *s = &p->s;
    struct tm_add b = {.id = 1, .tag = TAG, .mask = EXACT, .len = 64, .flags = IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC};
    uint32_t handle;
    tm_add(r, 0, 9, 0, 64); /* b0 */
    b.count = count;
    need(tm_eager(s, 0, TAG, 1)); /* m1 */
    ok(tm_try_add(r, &b, &handle) == 0, "b1 is added when m1 is there, which the program has not seen");
    need(tm_eager(s, 0, TAG, 2)); /* m2 */
    struct tm_wc m1 = tm_next(r), add = tm_next(r), m2 = tm_next(r);
    ok(m1.opcode == IBV_WC_TM_RECV && m1.flags == 0 && m1.byte_len == 17, "m1 is unexpected");
    ok(tm_is(&add, IBV_WC_TM_ADD, 1, IBV_WC_TM_SYNC_REQ), "the ADD asks for synchronization");
    ok(m2.opcode == IBV_WC_TM_RECV && m2.flags == 0 && m2.byte_len == 18, "m2 does not match b1");
    need(tm_eager(s, 1, 9, 3));
    ok(tm_matched(r, 0, 9, 3), "b0, which was there before, matches all the while");
    ok(tm_op(r, 2, IBV_WR_TAG_DEL, IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC, handle, count + 2) == 0 &&
           tm_got(r, IBV_WC_TM_DEL, 2, 0),
       "the program gives m1 to b1, and reports both messages");
    b.count = count + 2;
    ok(tm_try_add(r, &b, NULL) == 0 && tm_got(r, IBV_WC_TM_ADD, 1, 0), "what is added then");
    need(tm_eager(s, 0, TAG, 4));
    ok(tm_matched(r, 1, TAG, 4), "matches");
}

static void test(struct ibv_context *a, struct ibv_context *b)
{
    struct tm_pair p;
    tm_open(&p, a, b);
    mpi_begin(&mpi, &p, true);
    every_order(&p);
    verbatim(&p, mpi.count);
    tm_close(&p);
}

int main(void)
{
    return tm_everywhere(test);
}
