// SPDX-License-Identifier: BSD-2-Clause
/* Describes objects of clients as JSON (QPs: qp_status.h). There may be a hundred thousand, so it is done in two steps.
 * The device's thread copies the values of an object, and allocates nothing: memory that one thread allocates and
 * another one frees makes later allocations of the first take milliseconds. The thread that asks makes the JSON.
 *
 * PD: pd (number, unique on the device), session, users (objects that use it)
 * SRQ: srq (handle), session, type ("basic", "XRC", "TM"), srqn, xrcd (null: not of XRC), cq (null: not of XRC or TM),
 *     pd, qps (how many use it), max, limit (0: not armed), posted (requests that the engine has),
 *     ring (requests that the client wrote and the daemon has not read; null: the ring is broken),
 *     broken (text, or null), tm (see tm_status.h; null: no tag matching)
 * XRCD: xrcd (number), inode (null: anonymous), and the number of its opens, srqs, targets
 * CQ: cq (handle), session, entries, unread (null: the index is broken), overrun, armed ("no", "solicited", "any";
 *     null: the client wrote an invalid value), channel,
 *     users (queues that use it)
 * COMP_CNTR: comp_cntr (handle), session, type ("requests", "bytes"), done, failed, users (how often it is attached,
 *     each kind of request of a QP counts)
 * MR: key, session, pd, va, length, access (enum ibv_access_flags), mapped (the daemon reads it by a mapping of its own)
 * MW: key (its low byte, which changes, is 0), session, pd, type, max_entries
 * GROUP: gid, members (multicast) */
#ifndef PUMICE_DAEMON_STATUS_OBJECT_STATUS_H
#define PUMICE_DAEMON_STATUS_OBJECT_STATUS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/tm/types.h"
#include "daemon/status/object_walk.h"

/* The values. Pointers are to texts that stay. A number of another object is -1 if there is none. */
struct pd_status {
    uint32_t number, users;
};
struct srq_status {
    uint32_t handle;
    const char *type, *broken;
    int64_t srqn, xrcd, cq, ring;
    uint32_t pd, qps, max, limit, posted;
    bool matches_tags;
    struct tm_info tm; /* if it does */
};
struct cq_status {
    uint32_t handle, entries, users;
    int64_t unread, channel;
    bool overrun;
    const char *armed;
};
struct comp_cntr_status {
    uint32_t handle;
    bool bytes;
    uint64_t done, failed, users;
};
struct mr_status {
    uint32_t key, pd, access;
    uint64_t va, length;
    bool mapped; /* the daemon reads it from its own mapping, see objects/mr_file.h */
};
struct mw_status {
    uint32_t key, pd, type, max_entries;
};

struct xrcd_status {
    uint32_t number;
    bool has_file;
    uint64_t inode; /* if it has a file */
    uint32_t opens, srqs, targets;
};

/* One object of a session, of any kind but a QP. */
struct object_status {
    enum walk_table table;
    uint32_t session;
    union {
        struct pd_status pd;
        struct srq_status srq;
        struct cq_status cq;
        struct comp_cntr_status comp_cntr;
        struct mr_status mr;
        struct mw_status mw;
        struct xrcd_status xrcd;
    };
};

/* Copies the values of an object of this table, for WALK_XRCDS of a struct xrcd. In the device's thread. */
void object_status_take(enum walk_table table, const void *obj, struct object_status *out);
/* In any thread. Returns a new reference. */
json_t *object_status_json(const struct object_status *v);

struct mcast_group;
/* A multicast group as JSON, a new reference. In the device's thread. */
json_t *mcast_group_status(const struct mcast_group *g);

#endif
