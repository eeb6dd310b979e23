// SPDX-License-Identifier: BSD-2-Clause
/* Assertions of test builds about a QP when a call of the engine returns: its state is consistent (qp_check), and
 * something will make it go on (its timer, an answer, or a list that it is on). */
#ifndef PUMICE_DAEMON_CORE_CONTROL_EXIT_CHECK_H
#define PUMICE_DAEMON_CORE_CONTROL_EXIT_CHECK_H

struct qp;

/* Asserts qp_check, and that the timer is set: outstanding packets have a deadline, and the timer is not later. */
void exit_check_qp(const struct qp *qp);
/* To be called after a turn of the QP. Also asserts that requests that are still to be sent wait for something: the QP
 * is ready, or waits for a window, a rate, an answer or a timer. */
void exit_check_turn(const struct qp *qp);

#ifdef PUMICE_CHECK
#define EXIT_CHECK_QP(qp) exit_check_qp(qp)
#define EXIT_CHECK_TURN(qp) exit_check_turn(qp)
#else
#define EXIT_CHECK_QP(qp) ((void)(qp))
#define EXIT_CHECK_TURN(qp) ((void)(qp))
#endif

#endif
