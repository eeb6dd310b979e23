// SPDX-License-Identifier: BSD-2-Clause
/* Invariants of a QP. Test builds (PUMICE_CHECK) assert them at the exit of each call of the engine that touches a QP:
 * the unit tests, the simulator and the fuzzers link an engine that was built so. */
#ifndef PUMICE_DAEMON_CORE_QP_QP_CHECK_H
#define PUMICE_DAEMON_CORE_QP_QP_CHECK_H

struct engine;
struct qp;

/* Asserts that the parts of a QP agree with each other:
 *   send queue   head <= una <= cur <= unsent <= tail; the PSNs are in the same order
 *   windows      inflight is the cost of the packets [una_psn, next_psn); nothing is in flight in ERR
 *   credits      the READ and atomic credits are in the order of PSNs and end within what was sent
 *   resources    the counts of pending ones are right
 *   offload      the counts of its requests in the send queue are right
 *   SRQ          the QP is on the list of the takers exactly if it holds a request */
void qp_check(const struct qp *qp);

/* Asserts that the engine's tables agree with its QPs: number of QPs, ready list, windows of the destinations, requests
 * that QPs hold of SRQs. The time that it takes grows with the number of QPs, so it does nothing while there are
 * many. */
void engine_check_tables(const struct engine *e);

#ifdef PUMICE_CHECK
#define QP_CHECK(qp) qp_check(qp)
#define ENGINE_CHECK(e) engine_check_tables(e)
#else
#define QP_CHECK(qp) ((void)(qp))
#define ENGINE_CHECK(e) ((void)(e))
#endif

#endif
