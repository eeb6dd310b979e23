// SPDX-License-Identifier: BSD-2-Clause
/* The engine's tables and queues. engine.c makes them; each module uses its own part. */
#ifndef PUMICE_DAEMON_CORE_QP_ENGINE_STATE_H
#define PUMICE_DAEMON_CORE_QP_ENGINE_STATE_H

#include "daemon/core/base/config.h"
#include "daemon/core/base/mem_ops.h"
#include "daemon/core/base/owner_ops.h"
#include "daemon/core/base/qp_table.h"
#include "daemon/core/base/read_copies.h"
#include "daemon/core/base/reorder.h"
#include "daemon/core/base/report.h"
#include "daemon/core/base/scheduler.h"
#include "daemon/core/base/timer_wheel.h"
#include "daemon/core/memory/key.h"
#include "daemon/core/path/datagram_flow.h"
#include "daemon/core/path/gsi.h"
#include "daemon/core/path/mcast.h"
#include "daemon/core/path/peer_window.h"
#include "daemon/core/qp/srq_state.h"
#include "daemon/core/qp/time_wait.h"

struct qp;

struct engine {
    struct engine_config cfg;
    struct mem_access mem;
    struct owner_calls owner;
    struct key_table keys;
    struct read_copies copies;
    struct reorder_pool reorder; /* no slots unless cfg.selective */
    struct qp_table qps;
    uint32_t next_qpn;
    struct srq **srqs; /* by number & srq_mask */
    uint32_t srq_mask, srq_count, next_srqn;
    struct peer_window_table peers;
    struct datagram_flow_table flows;
    struct gsi gsi; /* QP 1 */
    struct timer_wheel *timers;
    struct time_wait_ring time_wait;
    struct mcast mcast;
    struct scheduler scheduler;
    struct list_node urgent; /* qp.urgent */
    bool backlog; /* the last batch had no room for everything */
    bool recv_withheld; /* engine_withhold_recv */
    bool rx_like_pumice; /* rx_meta.like_pumice of the packet that is taken in */
    /* tm_entry.job of matched entries that are to be flushed: their QPs were destroyed or reset */
    struct list_node detached;
    struct completion *done; /* ring */
    uint32_t done_mask, done_head, done_tail;
    struct event *events; /* ring */
    uint32_t event_mask, event_head, event_tail;
    struct list_node changed_cntrs; /* comp_cntr.changed of counters with values that the owner has not taken */
    struct engine_counters counters;
    struct report_ring reports;
};

/* NULL: there is no SRQ of this number. */
static inline struct srq *srq_find(const struct engine *e, uint32_t number)
{
    struct srq *srq = e->srqs[number & e->srq_mask];
    return srq && srq->number == number ? srq : NULL;
}

#endif
