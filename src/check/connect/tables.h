// SPDX-License-Identifier: BSD-2-Clause
/* Lines of this process's file (report.h) about its connections and regions. At the end of the run, `pumice run` compares
 * those of the two ends of each connection. Numbers are decimal, GIDs are 32 hexadecimal digits, times are ns of the monotonic
 * clock.
 *
 *     Q context qpn type peer path_mtu rq_psn dest_rd_atomic access sq_psn rd_atomic since where ready_at access_at gid peer_gid
 *           a connection; a later line of the same context, qpn and since replaces it
 *     R time context rkey addr length access where      a region was registered
 *     U time context rkey where                         it was deregistered
 *     E time context qpn status opcode wr_id rkey addr length where
 *           a request failed
 */
#ifndef PUMICE_SRC_CHECK_CONNECT_TABLES_H
#define PUMICE_SRC_CHECK_CONNECT_TABLES_H

#include "src/check/objects/records.h"

void tables_connection(const struct qp_record *q);
void tables_registered(const struct mr_record *mr);
void tables_deregistered(const struct mr_record *mr, const struct trace *where);
void tables_failed(const struct qp_record *q, const struct request *r, enum ibv_wc_status status);

#endif
