// SPDX-License-Identifier: BSD-2-Clause
/* The state of a completion counter, and the counting itself, which is on the data path. */
#ifndef PUMICE_DAEMON_CORE_QP_COMP_CNTR_STATE_H
#define PUMICE_DAEMON_CORE_QP_COMP_CNTR_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/base/list.h"

/* The kinds of requests that a counter can count: the bit numbers of enum ibv_qp_attach_comp_cntr_op. */
enum cntr_op {
    CNTR_SEND,
    CNTR_RECV, /* receive requests, also those that a WRITE with immediate data takes */
    CNTR_READ,
    CNTR_REMOTE_READ, /* the peer's READs */
    CNTR_WRITE,
    CNTR_REMOTE_WRITE, /* the peer's WRITEs */
    CNTR_OPS,
};
#define CNTR_ALL ((1u << CNTR_OPS) - 1)

struct comp_cntr {
    uint64_t done; /* requests that completed with success, or their bytes; wraps */
    uint64_t failed; /* requests that completed with an error; wraps */
    bool bytes; /* done counts bytes */
    uint32_t users; /* kinds of requests of all QPs that it counts */
    struct list_node changed; /* in engine.changed_cntrs while its owner has not taken the new values */
};

/* Counts a request that has completed. changed: the engine's list of counters with new values. */
static inline void comp_cntr_add(struct comp_cntr *c, struct list_node *changed, bool ok, uint64_t bytes)
{
    if (ok)
        c->done += c->bytes ? bytes : 1;
    else
        c->failed++;
    if (list_empty(&c->changed))
        list_append(changed, &c->changed);
}

#endif
