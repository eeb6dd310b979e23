// SPDX-License-Identifier: BSD-2-Clause
/* The engine's invariants (daemon/core/qp/qp_check.h). A valid QP passes, and each part of an invalid QP is found.
 * The tests link the engine that asserts the invariants, so an invalid QP also ends the program at the next call of
 * the engine. */
#include <signal.h>

#include "daemon/core/control/exit_check.h"
#include "daemon/core/qp/qp.h"
#include "daemon/core/qp/qp_check.h"
#include "tests/unit/core/one_qp.h"

#define PACKETS 3 /* unacknowledged packets */

static void setup(void)
{
    uint32_t key;
    struct mr_init init = {.pd = FIX_PD,
                           .space = 1,
                           .va = FIX_VA,
                           .iova = FIX_VA,
                           .length = FIX_MEM,
                           .access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_READ};
    fix_init(&fix);
    cr_assert_eq(mr_register(fix.e, &init, &key), 0);
    qp = fix_qp(&fix);
    fix_bring(qp, QPS_RTS); /* MTU 256 */
    struct sge sge = {FIX_VA, 256 * PACKETS, key};
    struct send_wr wr = {.opcode = WR_SEND, .flags = SEND_SIGNALED, .num_sge = 1};
    cr_assert_eq(qp_post_send(qp, &wr, &sge, NULL), 0);
    cr_assert_eq(transmit(), PACKETS);
}
static void teardown(void)
{
    fix_fini(&fix);
}

TestSuite(qp_check, .init = setup, .fini = teardown);

Test(qp_check, a_sound_qp_passes)
{
    exit_check_turn(qp);
    engine_check_tables(fix.e);
}

/* A QP with one changed part does not pass. */
#define CAUGHT(name, change)                                                                                           \
    Test(qp_check, name, .signal = SIGABRT)                                                                            \
    {                                                                                                                  \
        change;                                                                                                        \
        exit_check_turn(qp);                                                                                           \
        engine_check_tables(fix.e);                                                                                    \
    }

CAUGHT(una_beyond_cur, qp->req->una = qp->req->cur + 1)
CAUGHT(cur_beyond_unsent, qp->req->cur = qp->req->unsent + 1)
CAUGHT(unsent_beyond_tail, qp->req->unsent = qp->req->sq.tail + 1)
CAUGHT(next_psn_beyond_sent_psn, qp->req->next_psn = psn_add(qp->req->sent_psn, 1))
CAUGHT(bytes_in_flight, qp->req->inflight--)
CAUGHT(window_of_the_destination, qp->peer->inflight++)
CAUGHT(users_of_the_destination, qp->peer->users++)
CAUGHT(more_credits_than_there_are, qp->req->rd_count = ENGINE_MAX_RD_ATOMIC + 1)
CAUGHT(pending_resources, qp->resp->res_pending++)
CAUGHT(a_request_of_no_srq, (qp->srqn = 1, list_init(&qp->taker), qp->resp->rq.tail++))
CAUGHT(no_congestion_window, qp->peer->congestion.cwnd = 0)
CAUGHT(ready_count, fix.e->scheduler.count++)
CAUGHT(qp_count, fix.e->qps.count++)
CAUGHT(no_timer, timer_wheel_set(fix.e->timers, &qp->timer, NEVER))
CAUGHT(in_flight_in_err, qp->attr.state = QPS_ERR)
CAUGHT(nothing_wakes_it, (qp->req->una_psn = qp->req->sent_psn = qp->req->next_psn, qp->req->inflight = 0,
                          qp->req->una = --qp->req->cur, list_remove(&qp->sched.ready)))

Test(qp_check, the_next_call_of_the_engine_catches_it, .signal = SIGABRT)
{
    struct pkt ack = {.opcode = OP_SERVICE_RC | OP_ACK, .psn = 200, .aeth = {.syndrome = 0x1f}};
    qp->req->inflight += 1000;
    qp->peer->inflight += 1000;
    arrive(ack);
}
