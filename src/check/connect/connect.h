// SPDX-License-Identifier: BSD-2-Clause
/* The rules that hold when a program connects queue pairs and makes address handles. */
#ifndef PUMICE_SRC_CHECK_CONNECT_CONNECT_H
#define PUMICE_SRC_CHECK_CONNECT_CONNECT_H

#include <infiniband/verbs.h>

#include "src/check/base/trace.h"
#include "src/check/objects/records.h"

/* The program has asked for a change of a queue pair. rc: what the library returned. Takes the lock of records.h itself. */
void connect_modified(struct ibv_qp *qp, const struct ibv_qp_attr *attr, int mask, int rc, const struct trace *where);

/* The queue pair is in state RESET, or about to be destroyed. Under the lock. */
void connect_reset(struct qp_record *q);

/* The program has asked for an address handle. Takes the lock itself. */
void connect_made_ah(struct ibv_context *context, const struct ibv_ah_attr *attr, const struct trace *where);

#endif
