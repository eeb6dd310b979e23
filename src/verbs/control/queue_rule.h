// SPDX-License-Identifier: BSD-2-Clause
/* How adapters size the queues of a QP. Their libraries compute the size of a send request from what the QP may send, and
 * refuse queues that become too large, although each single limit holds. They also grant less inline data than Pumice
 * does. A device with a profile (pm_open_rep.queue_rule) does the same. */
#ifndef PUMICE_SRC_VERBS_CONTROL_QUEUE_RULE_H
#define PUMICE_SRC_VERBS_CONTROL_QUEUE_RULE_H

#include <infiniband/verbs.h>
#include <stdint.h>

#include "pumice/abi.h"

/* The queues that a program asks for. */
struct vb_queue_ask {
    enum ibv_qp_type type;
    /* The requests that it may send, enum ibv_qp_create_send_ops_flags; 0: the program did not say, so all of its type. */
    uint64_t send_ops;
    struct ibv_qp_cap cap;
};

/* Checks the queues, and sets ask->cap.max_inline_data to what is granted. Returns 0 or -EINVAL. PM_QUEUE_OWN: changes
 * nothing. */
int vb_queue_rule(enum pm_queue_rule rule, struct vb_queue_ask *ask);

#endif
