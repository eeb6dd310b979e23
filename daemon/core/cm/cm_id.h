// SPDX-License-Identifier: BSD-2-Clause
/* The structs of connection management: the instance and its IDs, with the pool of IDs, their events and their timers.
 * The other files of this folder work on them. Test builds assert that the parts agree (cm_check.c). */
#ifndef PUMICE_DAEMON_CORE_CM_CM_ID_H
#define PUMICE_DAEMON_CORE_CM_CM_ID_H

#include "daemon/core/cm/cm.h"
#include "daemon/core/cm/comm_id.h"
#include "daemon/core/cm/event_list.h"
#include "daemon/core/cm/port_space.h"
#include "daemon/core/cm/timer_heap.h"

#define CM_UDP_QKEY 0x01234567u /* RDMA_UDP_QKEY of Linux */
#define CM_HOP_LIMIT 64u /* of messages and QPs of the passive side; that of Linux's packets by default */
#define CM_SERVICE_TIMEOUT 24u /* in MRAs: how long a program may work on a message, 67 s; as in Linux */
#define CM_PKEY 0xffffu
#define CM_OUT_SLOTS 512u /* datagrams that wait for the network; further ones are lost */

/* The purpose of an ID's timer. */
enum cm_timer_use {
    CM_TIMER_NONE,
    CM_TIMER_RETRY, /* the message in `kept` is sent again, until there was no answer for too long */
    CM_TIMER_FORGET, /* the message in `kept` no longer answers repeated ones of the peer */
    CM_TIMER_TIME_WAIT,
};

struct cm_id {
    struct cm *cm;
    struct list_node all; /* in cm.ids; or free */
    struct list_node ending; /* in cm.ending: the owner has destroyed the ID, and the protocol still needs it */
    void *owner;
    bool is_ending;
    uint8_t state; /* enum cm_id_state */
    uint8_t qp_type; /* enum qp_type; 0: any (listeners) */

    /* Addresses and options. */
    struct binding bind; /* with the local address */
    struct cm_addr dst;
    struct cm_route route;
    bool afonly_set, tos_set, ack_timeout_set;
    uint8_t tos, ack_timeout;

    /* A listener and its new connections. */
    uint32_t backlog;
    uint32_t waiting; /* children that are not answered */
    uint32_t unowned; /* of them, those that nobody owns yet */
    struct list_node children; /* that are not answered */
    struct list_node sibling; /* in the list of the listener */
    struct cm_id *listener; /* of a child that is not answered */

    struct list_node events; /* that wait, as queued_event.of_id */

    /* The connection. */
    bool has_comm; /* it connects or was connected to: it has a communication ID */
    bool passive;
    bool disconnected; /* DISCONNECTED was reported: only the end of time wait is reported after it */
    bool may_delay; /* the program is working on the peer's message: repeated ones are answered by an MRA */
    bool mra_received; /* the peer's program is working on our message */
    struct comm_node by_local, by_remote, by_remote_qp;
    uint64_t tid, remote_guid;
    uint32_t local_comm_id, remote_comm_id;
    uint32_t local_qpn, remote_qpn, qkey; /* qkey 0: not chosen yet */
    uint32_t rq_psn, sq_psn; /* own first PSN for the peer, and the peer's */
    uint8_t responder_resources, initiator_depth;
    uint8_t retry_count, rnr_retry_count, target_ack_delay;
    uint8_t ack_timeout_code; /* of the QP, and of the time wait: 4.096 us * 2^n */
    uint8_t max_retries;
    uint64_t response_ns; /* how long the peer may take to answer */
    struct cm_ece ece; /* own */

    /* The message that is repeated until it is answered, or that answers repeated ones. */
    bool has_kept;
    uint8_t kept[MAD_LEN];
    struct heap_timer timer;
    uint8_t timer_use; /* enum cm_timer_use */
    uint8_t retries;
    uint64_t interval, max_interval, give_up; /* of CM_TIMER_RETRY: ns, ns, time */

    /* How it ended. */
    uint16_t last_reject;
    bool sent_reject;
    int32_t last_status;
};

struct cm {
    struct cm_config cfg;
    struct cm_counters counters;
    struct cm_id *pool;
    uint32_t untouched; /* entries of the pool that were never used */
    uint32_t count; /* IDs in use */
    struct list_node free, ids, ending; /* ending: oldest first */
    struct comm_table comm;
    struct port_table ports;
    struct timer_heap timers;
    struct event_list events;
    struct cm_datagram *out; /* a ring of CM_OUT_SLOTS */
    uint32_t out_head, out_tail;
    uint32_t next_psn;
};

/* --- the pool ------------------------------------------------------------------------------------- */

/* A zeroed ID. If there is no room, the oldest ending one is forgotten. NULL: all have owners. */
struct cm_id *cm_id_new(struct cm *cm);
/* Frees an ID: it must have left its listener. Its events are dropped. */
void cm_id_free(struct cm_id *id);
/* The first PSN of a connection. */
uint32_t cm_id_new_psn(struct cm *cm);
/* Gives the ID a communication ID. */
void cm_id_get_comm(struct cm_id *id);
/* Finds the ID that a message names. NULL: there is none. */
struct cm_id *cm_id_by_local(const struct cm *cm, uint32_t comm_id);
/* The ID of a node in the table of communication IDs. */
struct cm_id *cm_id_of_remote(struct comm_node *n);
struct cm_id *cm_id_of_remote_qp(struct comm_node *n);
/* Messages about its connection no longer find it by what the peer knows. */
void cm_id_leave_tables(struct cm_id *id);
/* The child of a listener is answered, or ends. */
void cm_id_leave_listener(struct cm_id *id);
/* Does the datagram come from the peer of the ID, to the ID's address? */
bool cm_id_is_peer(const struct cm_id *id, const struct cm_datagram *d);

/* --- events and timers ------------------------------------------------------------------------------ */

/* Queues an event for the owner. */
void cm_id_report(struct cm_id *id, const struct cm_event *ev);
/* The same, with nothing but a status. */
void cm_id_report_status(struct cm_id *id, enum cm_event_type type, int32_t status);
void cm_id_set_timer(struct cm_id *id, enum cm_timer_use use, uint64_t when);

/* 4.096 us * 2^n, as Linux rounds it: 2^(n-8) ms, at least one. */
uint64_t cm_time_ns(unsigned n);
/* The ACK timeout for a way with this ACK delay and packet life, as Linux adds them. */
uint8_t cm_ack_timeout(uint8_t ack_delay, uint8_t packet_life);

/* --- invariants ----------------------------------------------------------------------------------- */

void cm_id_check(const struct cm_id *id);
void cm_check(const struct cm *cm);
#ifdef PUMICE_CHECK
#define CM_CHECK(cm) cm_check(cm)
#else
#define CM_CHECK(cm) ((void)(cm))
#endif

#endif
