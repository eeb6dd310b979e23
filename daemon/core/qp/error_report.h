// SPDX-License-Identifier: BSD-2-Clause
/* Makes the reports of base/report.h: NAKs, dropped packets, timeouts, QPs that fail. A packet that is handled without
 * an error makes no report. */
#ifndef PUMICE_DAEMON_CORE_QP_ERROR_REPORT_H
#define PUMICE_DAEMON_CORE_QP_ERROR_REPORT_H

#include "daemon/core/base/report.h"
#include "daemon/core/base/rx_meta.h"

struct engine;
struct pkt;
struct qp;

/* Takes the oldest report. False: there is none. While the owner takes none, reports that find no room are counted. */
bool engine_pop_report(struct engine *e, struct report *r);
/* Number of reports for which the ring had no slot. */
uint64_t engine_reports_lost(const struct engine *e);
/* Adds to a report the fields of a packet: opcode and PSN, and key and address if the packet has them. The first packet
 * of a message has more of these fields than the following ones. */
void report_packet(struct report *r, const struct pkt *p);

/* --- inside the engine ------------------------------------------------------------------------ */

/* p: the packet that the NAK answers; NULL: no packet in particular. A NAK that ends the connection also becomes the
 * QP's failure; call report_error after it. */
void report_nak_sent(struct qp *qp, uint8_t syndrome, uint32_t psn, const struct pkt *p);
void report_nak_rcvd(struct qp *qp, const struct pkt *p);
void report_timeout(struct qp *qp);
void report_drop(struct engine *e, enum drop_cause cause, const struct pkt *p, const struct rx_meta *meta);
void report_drop_qp(struct qp *qp, enum drop_cause cause, const struct pkt *p);
/* The QP is about to go to ERR or SQE. Only the first call since the last report_forget counts. status: enum wc_status
 * of the completion that reports it; 0: no completion does. */
void report_error(struct qp *qp, enum error_cause cause, uint8_t status, uint8_t syndrome);
/* Clears the failure of a QP that is started again. */
void report_forget(struct qp *qp);

#endif
