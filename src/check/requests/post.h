// SPDX-License-Identifier: BSD-2-Clause
/* The rules that hold when a program posts requests. The checker notes requests before the library gets them, because their
 * completions may come before the call returns. It takes back those that the library refuses. The caller has the lock of
 * records.h. */
#ifndef PUMICE_SRC_CHECK_REQUESTS_POST_H
#define PUMICE_SRC_CHECK_REQUESTS_POST_H

#include "src/check/objects/records.h"

void post_sends(struct qp_record *q, const struct ibv_send_wr *wr, const struct trace *where);
/* The library refused bad and those after it, with this error. */
void post_sends_refused(struct qp_record *q, const struct ibv_send_wr *bad, int rc, const struct trace *where);

/* The library refused the last n. */
void post_last_refused(struct qp_record *q, unsigned n, int rc, const struct trace *where);

/* The library has taken the requests before bad (NULL: all). The other end of the connection may be told. */
void post_sends_taken(struct qp_record *q, const struct ibv_send_wr *wr, const struct ibv_send_wr *bad,
                      const struct trace *where);

/* Receive requests of a QP, or of a shared queue. */
void post_receives(struct qp_record *q, const struct ibv_recv_wr *wr, const struct trace *where);
void post_receives_refused(struct qp_record *q, const struct ibv_recv_wr *bad);
void post_srq_receives(struct srq_record *s, const struct ibv_recv_wr *wr, const struct trace *where);
void post_srq_receives_refused(struct srq_record *s, const struct ibv_recv_wr *bad);

#endif
