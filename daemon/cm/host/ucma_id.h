// SPDX-License-Identifier: BSD-2-Clause
/* An ID of a program: an ID of connection management (struct cm_id) in a channel, with the program's own number and
 * context. */
#ifndef PUMICE_DAEMON_CM_HOST_UCMA_ID_H
#define PUMICE_DAEMON_CM_HOST_UCMA_ID_H

#include "daemon/base/slice.h"
#include "daemon/cm/host/cm_channel.h"
#include "daemon/cm/host/ucma_sockaddr.h"

TAILQ_HEAD(ucma_join_list, ucma_join);

struct ucma_id {
    TAILQ_ENTRY(ucma_id) link;
    struct cm_channel *channel;
    struct quota_owner owner; /* pays for it: the user of the channel that it was made in */
    struct cm_id *cm;
    uint32_t number; /* by which the program names it */
    uint64_t uid; /* the program's context; 0: a new connection that was not accepted yet */
    uint32_t reported; /* events that the program has got */
    uint32_t backlog; /* listeners: requests that may wait for the program */
    uint32_t requests; /* of them, those that wait */
    uint32_t scope; /* interface of the link-local addresses; 0: none */
    bool is_ib; /* the program bound it to an address of AF_IB */
    struct ucma_join_list joins;
};

/* A multicast group that the program has joined. */
struct ucma_join {
    TAILQ_ENTRY(ucma_join) link;
    struct ucma_id *id;
    uint32_t number;
    uint64_t uid; /* the program's context */
    uint32_t reported; /* events that the program has got */
    uint8_t mgid[16];
};

/* Makes an ID of cm, which is the caller's again after an error. Returns 0, or -errno with why. */
int ucma_id_create(struct cm_channel *ch, struct cm_id *cm, uint64_t uid, struct ucma_id **out,
                   char why[QUOTA_WHY_MAX]);
/* Ends the ID, its groups and its events. Returns the number of events that the program has got. */
uint32_t ucma_id_destroy(struct ucma_id *id, uint64_t now);
/* Finds an ID of the channel. -ENOENT: there is none. -EINVAL: it is in another channel of the user. */
int ucma_id_find(const struct cm_channel *ch, uint32_t number, struct ucma_id **out);
/* Moves the ID and its events to another channel. */
void ucma_id_move(struct ucma_id *id, struct cm_channel *to);

/* Returns 0, or -errno with why. */
int ucma_join_create(struct ucma_id *id, uint64_t uid, struct ucma_join **out, char why[QUOTA_WHY_MAX]);
/* Ends the membership and its events. Returns the number of events that the program has got. */
uint32_t ucma_join_destroy(struct ucma_join *j);
/* Finds a membership of an ID of the channel. Errors as ucma_id_find. */
int ucma_join_find(const struct cm_channel *ch, uint32_t number, struct ucma_join **out);

/* Ends a channel: nobody finds it any more. Its IDs end now, as far as that takes no longer than a slice, and the others
 * in later turns of the loop. */
void ucma_channel_end(struct cm_channel *ch);
/* Ends all channels at once. */
void ucma_channels_end(struct cm_host *h);
/* Prepares the list of channels. */
void ucma_channels_init(struct cm_host *h);

#endif
