// SPDX-License-Identifier: BSD-2-Clause
/* Control packets that the peers wait for: CNPs, NAKs and ACKs.
 *
 * A QP sends them in its turn. While the engine has more to send than fits into a batch, its turn may come late: each
 * QP before it sends a burst. So after a full batch, the next one begins with the control packets of all QPs. Packets of
 * one QP keep their order where it matters: an ACK waits for the responses to READs before it. */
#ifndef PUMICE_DAEMON_CORE_URGENT_H
#define PUMICE_DAEMON_CORE_URGENT_H

#include "daemon/core/base/tx_batch.h"

struct engine;
struct qp;

/* The QP may have a CNP, a NAK or an ACK to send. */
void urgent_add(struct qp *qp);
/* Appends the CNP of the QP if one is due. False: the batch is full. */
bool urgent_cnp(struct qp *qp, struct tx_batch *b);
/* Appends the control packets of all QPs. False: the batch is full. */
bool urgent_tx(struct engine *e, struct tx_batch *b, uint64_t now);

#endif
