// SPDX-License-Identifier: BSD-2-Clause
/* Quotas: how much of the daemon each user (uid) may have. The module counts what each user has, and refuses a request
 * that exceeds the user's limit. All threads may call it: a mutex protects the counts. No other work is done under this
 * mutex. Only control operations call it, never the data path.
 *
 * The default limit of a user is a share (QUOTA_AUTO): half of what the other users leave. A single user can have half
 * of everything. With n users that all want as much as they can get, each gets 1/(n + 1), and the same amount stays
 * free for the next user. Each user may always have at least 1/QUOTA_FLOOR.
 *
 * Root and the daemon's own user have no limits, because they can stop the daemon anyway. They are counted, too. */
#ifndef PUMICE_DAEMON_BASE_QUOTA_H
#define PUMICE_DAEMON_BASE_QUOTA_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "pumice/abi.h"

enum quota_kind {
    QUOTA_SESSIONS,
    QUOTA_CONNECTIONS, /* without a session */
    QUOTA_PDS,
    QUOTA_QPS,
    QUOTA_CQS,
    QUOTA_SRQS,
    QUOTA_MRS,
    QUOTA_MWS,
    QUOTA_CHANNELS,
    QUOTA_XRCDS,
    QUOTA_GROUPS, /* multicast groups */
    QUOTA_CM_CONNECTIONS, /* processes that use connection management */
    QUOTA_CM_CHANNELS,
    QUOTA_CM_IDS, /* of connection management, and memberships of multicast groups there */
    QUOTA_MAPPINGS, /* mappings in the daemon's address space */
    QUOTA_DESCRIPTORS, /* open files of the daemon */
    QUOTA_BYTES, /* of rings, of queues inside the daemon, and of layouts */
    QUOTA_KINDS, /* their number */
};

/* The name of the kind in the option and in the status. */
const char *quota_kind_name(enum quota_kind kind);

#define QUOTA_NONE UINT64_MAX /* no limit */
#define QUOTA_AUTO (UINT64_MAX - 1) /* a share, see above */
#define QUOTA_FLOOR 64u

/* The limit of each kind for each user: a number, QUOTA_AUTO or QUOTA_NONE. PDs, QPs, SRQs, MRs, MWs, XRC domains and
 * groups are counted for each device, so this is the limit on each device. The other kinds are counted for the whole
 * daemon. */
struct quota_limits {
    uint64_t of[QUOTA_KINDS];
};
/* Parses limits such as "qps=100,bytes=2G,mrs=none,cqs=auto". "all=" sets the kinds that the text does not name.
 * Numbers may end with K, M or G. A kind that is not named gets QUOTA_AUTO; so does "" for all. 0, or -EINVAL, which
 * leaves *out undefined. */
int quota_limits_parse(const char *text, struct quota_limits *out);

struct quota_user;
struct quota_cell {
    uint64_t used;
    uint64_t refused; /* requests */
};
struct quota {
    pthread_mutex_t lock; /* protects all that follows */
    struct quota_limits limits;
    /* The amount that exists of each kind, on each device or in the daemon. */
    uint64_t capacity[QUOTA_KINDS];
    uint64_t total[QUOTA_KINDS][PM_DEVICES_MAX]; /* used by all users */
    struct quota_user *users; /* those that have something */
    uid_t self; /* the daemon's user */
};

/* capacity: of each kind. For connections, mappings and descriptors it is also the limit of all users together, root
 * and the daemon's user included. The others have limits elsewhere, or none. */
void quota_init(struct quota *q, const struct quota_limits *limits, const uint64_t capacity[QUOTA_KINDS]);
/* Everything must have been released. */
void quota_fini(struct quota *q);
/* Later requests have these limits. Users keep the objects that they have beyond them. */
void quota_set_limits(struct quota *q, const struct quota_limits *limits);

/* True if the user has no limits. */
bool quota_is_exempt(const struct quota *q, uid_t uid);

/* The user who pays for an object, and the device of the object. quota NULL: nothing is counted. */
struct quota_owner {
    struct quota *quota;
    uid_t uid;
    uint32_t device; /* below PM_DEVICES_MAX */
};
#define QUOTA_WHY_MAX 192
/* A user gets at most one line in the log for each kind in this time. */
#define QUOTA_LOG_SECONDS 10u

/* Charges the owner for an object, with the descriptors that the daemon keeps for it. If that fails, why has a text for
 * the user, and the log a line.
 * -EDQUOT: the user's limit. -EUSERS, -EMFILE, -ENOMEM: the daemon has no more connections, descriptors, mappings. */
int quota_charge(const struct quota_owner *o, enum quota_kind object, char why[QUOTA_WHY_MAX]);
void quota_release(const struct quota_owner *o, enum quota_kind object);

/* Charges the owner for memory of the daemon, and releases the same amount. mappings: 0 for allocated memory. */
int quota_charge_memory(const struct quota_owner *o, uint32_t mappings, uint64_t bytes, char why[QUOTA_WHY_MAX]);
void quota_release_memory(const struct quota_owner *o, uint32_t mappings, uint64_t bytes);

/* Counts a file that is open already, even beyond the limits. Later charges are refused for it. False: out of memory, and
 * it is not counted. */
bool quota_charge_open_file(const struct quota_owner *o);
void quota_release_open_file(const struct quota_owner *o);
/* How many open files there are beyond those that the daemon can have for clients. */
uint64_t quota_excess_files(struct quota *q);

/* Returns the amount of this kind that all users have together. */
uint64_t quota_total(struct quota *q, enum quota_kind kind);

/* One line of the status: what a user has of a kind. */
struct quota_row {
    uid_t uid;
    enum quota_kind kind;
    int device; /* -1: the daemon */
    uint64_t used;
    uint64_t limit; /* at this moment; QUOTA_NONE: no limit */
    uint64_t refused; /* requests, since the user has anything */
};
/* Returns the rows in which a number is not 0, of all users. The caller frees the array. NULL: there are none, or no
 * memory. */
struct quota_row *quota_rows(struct quota *q, size_t *num);

#endif
