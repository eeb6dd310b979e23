// SPDX-License-Identifier: BSD-2-Clause
/* Polling after the death of the daemon. The library takes the completions that the daemon wrote before it died, and
 * then flushes the other requests, however late the last completions come. There is no daemon here: the test writes its
 * last completions at the worst moment, between two loads of the library. */
#include <criterion/criterion.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/verbs/base/lock.h"
#include "src/verbs/datapath/bind.h"
#include "src/verbs/datapath/flush.h"
#include "src/verbs/datapath/poll.h"
#include "src/verbs/datapath/poll_wait.h"
#include "src/verbs/datapath/tm.h"
#include "src/verbs/objects/srq.h"
#include "src/verbs/session/fork.h"

#define SLOTS 16
#define QPN 7
#define WR_ID(slot) (100u + (slot))

static struct vb_context *c; /* on pages of its own, so that a look at it is a fault */
static struct vb_cq cq;
static struct vb_qp qp;
static struct pm_cq_page page;
static struct pm_cqe entries[SLOTS];
static struct pm_send_wqe requests[SLOTS];
static uint32_t last; /* the daemon's last completion is that of this slot */

/* Stand-ins for the other functions that poll.c calls. */
static const uint32_t generation;
const volatile uint32_t *vb_fork_page = &generation;
bool vb_fork_complain(void)
{
    return false;
}
void vb_bind_undo(struct vb_qp *q, const struct pm_send_wqe *w)
{
    (void)q, (void)w;
}
void vb_srq_retire(struct vb_srq *srq, uint32_t wqe_index, const uint8_t *data, uint32_t len)
{
    (void)srq, (void)wqe_index, (void)data, (void)len;
}
void vb_tm_retire(struct vb_srq *srq, const struct pm_cqe *e)
{
    (void)srq, (void)e;
}
void vb_poll_wait(struct vb_cq *q)
{
    (void)q;
}
bool vb_flush_next(struct vb_cq *q, struct pm_cqe *out)
{
    uint32_t head = atomic_load(&qp.sq.head);
    (void)q;
    if (head == qp.sq.tail)
        return false;
    *out = (struct pm_cqe){.wr_id = WR_ID(head), .qpn = QPN, .slot = head, .status = IBV_WC_WR_FLUSH_ERR};
    return true;
}

/* Runs when the library is about to look whether the daemon lives: the daemon completes its last requests and dies. */
static void die(int sig)
{
    (void)sig;
    mprotect(c, sizeof(*c), PROT_READ | PROT_WRITE);
    for (uint32_t i = 0; i <= last; i++) {
        struct pm_cqe *e = &entries[i & (SLOTS - 1)];
        *e = (struct pm_cqe){.wr_id = WR_ID(i), .qpn = QPN, .slot = i, .status = IBV_WC_SUCCESS};
        __atomic_store_n(&e->seq, i + 1, __ATOMIC_RELEASE);
    }
    atomic_store(&c->gone, true);
}

static void setup(void)
{
    struct sigaction sa = {.sa_handler = die};

    c = mmap(NULL, sizeof(*c), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(c, MAP_FAILED);
    cr_assert_eq(vb_table_init(&c->qps), 0);
    cr_assert_eq(vb_table_init(&c->srqs), 0);
    cr_assert_eq(vb_table_set(&c->qps, QPN, &qp), 0);
    cq.cq.context = &c->vctx.context;
    cq.page = &page;
    cq.entries = entries;
    cq.mask = SLOTS - 1;
    vb_lock_init(&cq.lock);
    qp.sq.ring = (uint8_t *)requests;
    qp.sq.stride = sizeof(requests[0]);
    qp.sq.mask = SLOTS - 1;
    qp.sq.tail = 5;
    cr_assert_eq(sigaction(SIGSEGV, &sa, NULL), 0);
    cr_assert_eq(mprotect(c, sizeof(*c), PROT_NONE), 0);
}

TestSuite(poll_after_death, .init = setup, .timeout = 60);

static void expect_all(void)
{
    struct pm_cqe e;

    for (uint32_t i = 0; i < qp.sq.tail; i++) {
        cr_assert(vb_cq_take(&cq, &e));
        cr_expect_eq(e.wr_id, WR_ID(i), "%u: request %u", i, (unsigned)e.wr_id);
        cr_expect_eq(e.status, i <= last ? IBV_WC_SUCCESS : IBV_WC_WR_FLUSH_ERR, "%u: %u", i, e.status);
    }
    cr_expect(!vb_cq_take(&cq, &e), "each request completes once");
    cr_expect_eq(atomic_load(&page.consumer), last + 1);
}

Test(poll_after_death, completions_of_the_daemon_come_before_flushed_ones)
{
    last = 2;
    expect_all();
}

Test(poll_after_death, the_same_in_a_queue_that_may_overrun)
{
    last = 2;
    cq.overruns = true;
    expect_all();
}

Test(poll_after_death, the_daemon_may_have_completed_all)
{
    last = 4;
    expect_all();
}
