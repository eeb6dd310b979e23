// SPDX-License-Identifier: BSD-2-Clause
/* One TM-SRQ for 64 QPs: matching does not depend on the QP of a message. First the messages come one at a time, and
 * each completion equals the one of the reference model. Then all QPs send at once, and MPI's rules of order must
 * hold. With lost and duplicated packets too, nothing is matched, counted or delivered twice. */
#include "tests/verbs/tag_matching/tags_mpi.h"

#define QPS 64
#define EXACT_MESSAGES 300
#define ROUNDS 16 /* of one message from each QP */
#define TAGS 4

static struct mpi mpi;
static struct ibv_qp *from[QPS], *to[QPS];
static struct {
    int qp;
    uint64_t tag;
} sent[MPI_MAX];
static uint64_t seed;

static uint32_t below(uint32_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % n;
}

static void post_random(struct mpi *m)
{
    uint64_t mask = below(4) ? EXACT : below(2) ? 0 : 1;
    if (m->waiting < MPI_LISTED && m->posted < MPI_MAX)
        mpi_post(m, below(TAGS) & mask, mask);
}
static uint32_t random_len(void)
{
    static const uint32_t most[] = {1, 100, 1008, 3000};
    return below(most[below(4)] + 1);
}
static int next_message(int *n, int qp)
{
    sent[*n].qp = qp;
    sent[*n].tag = below(TAGS);
    return (*n)++;
}

static int one_at_a_time(struct mpi *m, struct tm_pair *p)
{
    int n = 0;
    mpi_begin(m, p, true);
    while (n < EXACT_MESSAGES && !m->strange) {
        for (uint32_t i = below(3); i > 0; i--)
            post_random(m);
        int msg = next_message(&n, (int)below(QPS));
        mpi_send_exact(m, from[sent[msg].qp], msg, sent[msg].tag, random_len());
        if (below(3))
            mpi_poll_due(m);
    }
    mpi_poll_due(m);
    ok(!m->strange && m->taken == n, "from 64 QPs, one at a time: as the model foretells");
    ok(m->unexpected > n / 10 && m->unexpected < n * 9 / 10, "some matched, some did not");
    return n;
}

/* --- all at once */

static void all_at_once(struct mpi *m, int *n)
{
    double end = vt_now() + 40;
    int ends = 0, wanted = *n;
    struct tm_wc wc;
    m->exact = false;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < QPS; i++) {
            int msg = next_message(n, (i + round) % QPS);
            mpi_send(m, from[sent[msg].qp], msg, sent[msg].tag, random_len());
            post_random(m);
            mpi_poll(m);
        }
        wanted += QPS;
        while ((m->taken < wanted || ends < (round + 1) * QPS) && vt_now() < end) {
            if (tm_poll(m->p->s.cq, &wc)) {
                ends++;
                if (wc.status != IBV_WC_SUCCESS)
                    mpi_wrong(m, "status of a send", wc.status, 0);
            }
            if (mpi_poll(m))
                post_random(m);
        }
    }
    ok(!m->strange && m->taken == wanted && ends == ROUNDS * QPS, "from 64 QPs at once: each message arrives");
}

static bool all_there(const struct mpi *m)
{
    for (int n = 0; n < m->posted; n++) {
        if (m->recv[n].msg != NOBODY && !m->recv[n].done)
            return false;
    }
    return true;
}

/* Posts receives until nothing waits on either side. Matched messages may still wait to be polled: their sender knows
 * from the ACK that they arrived. */
static void drain(struct mpi *m)
{
    double end = vt_now() + 10;
    while (!all_there(m) && vt_now() < end)
        mpi_poll(m);
    while (m->queued)
        mpi_post(m, 0, 0);
    for (int n = 0; n < m->posted; n++) {
        if (m->recv[n].msg == NOBODY) {
            mpi_delete(m, m->recv[n].handle);
            m->recv[n].done = true;
        }
    }
}

/* Each message has one receive, which it matches. */
static bool each_once(const struct mpi *m, int n, int *recv_of)
{
    int have = 0;
    for (int i = 0; i < n; i++)
        recv_of[i] = NOBODY;
    for (int r = 0; r < m->posted; r++) {
        const struct mpi_recv *recv = &m->recv[r];
        if (recv->msg == NOBODY)
            continue;
        if (!recv->done || recv->msg < 0 || recv->msg >= n || recv_of[recv->msg] != NOBODY ||
            (sent[recv->msg].tag & recv->mask) != recv->tag)
            return false;
        recv_of[recv->msg] = r;
        have++;
    }
    return have == n;
}
/* If two messages of one QP match a receive, the earlier message gets this receive or an earlier one. */
static bool no_overtaking(const struct mpi *m, int n, const int *recv_of)
{
    for (int a = 0; a < n; a++) {
        for (int b = a + 1; b < n; b++) {
            const struct mpi_recv *has = &m->recv[recv_of[b]];
            if (sent[a].qp == sent[b].qp && (sent[a].tag & has->mask) == has->tag && recv_of[a] > recv_of[b])
                return false;
        }
    }
    return true;
}

static void test(struct ibv_context *a, struct ibv_context *b)
{
    static int recv_of[MPI_MAX];
    struct tm_pair p;
    tm_open(&p, a, b);
    for (int i = 0; i < QPS; i++)
        tm_connect(&p, &to[i], &from[i], &tm_usual);
    seed = 1;
    int n = one_at_a_time(&mpi, &p);
    all_at_once(&mpi, &n);
    drain(&mpi);
    ok(each_once(&mpi, n, recv_of), "each message has one receive, with its tag");
    ok(no_overtaking(&mpi, n, recv_of), "no message overtook another of its QP");
    ok(tm_sync(&p.r, mpi.count), "program and device agree in the end");
    for (int i = 0; i < QPS; i++)
        need(ibv_destroy_qp(to[i]) == 0 && ibv_destroy_qp(from[i]) == 0);
    tm_close(&p);
}

int main(void)
{
    tm_everywhere(test);
    if (!vt_own("lost and duplicated packets"))
        return vt_failed;
    printf("# loss=10%%,dup=10%%\n");
    tm_faults = "loss=10%,dup=10%";
    tm_strike("");
    vt_both(test);
    tm_faults = "";
    tm_strike("");
    return vt_failed;
}
