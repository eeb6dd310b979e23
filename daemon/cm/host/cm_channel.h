// SPDX-License-Identifier: BSD-2-Clause
/* A channel: what a program has when it opens the rdma_cm device. It holds IDs, and the events that wait for the
 * program. For each event, a byte is in the channel's pipe (cm_pipe.h), as far as the pipe has room. */
#ifndef PUMICE_DAEMON_CM_HOST_CM_CHANNEL_H
#define PUMICE_DAEMON_CM_HOST_CM_CHANNEL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "daemon/cm/host/cm_host.h"
#include "daemon/cm/host/cm_pipe.h"
#include "daemon/cm/host/ucma_abi.h"

struct ucma_id;
struct ucma_join;
TAILQ_HEAD(ucma_id_list, ucma_id);

/* An event that waits for the program. */
struct cm_note {
    TAILQ_ENTRY(cm_note) link;
    struct ucma_id *id; /* of the event; for CONNECT_REQUEST the listener */
    struct ucma_id *child; /* CONNECT_REQUEST: the new ID, which ends if the program never sees it; else NULL */
    struct ucma_join *join; /* of a multicast group; else NULL */
    struct rdma_ucm_event_resp resp; /* what the program gets */
};
TAILQ_HEAD(cm_note_list, cm_note);

struct cm_channel {
    TAILQ_ENTRY(cm_channel) link;
    LIST_ENTRY(cm_channel) same_bucket;
    struct cm_host *host;
    uint64_t token; /* by which its users name it; nobody can guess it */
    struct quota_owner owner;
    pid_t pid; /* that created it */
    struct cm_pipe pipe;
    ev_io no_reader; /* reports that the pipe has no reader any more */
    void (*ended)(struct cm_channel *ch); /* called then, in the loop */
    bool over; /* nobody finds it any more, and its IDs are being destroyed */
    struct ucma_id_list ids;
    struct cm_note_list notes; /* oldest first */
    unsigned num_notes;
    unsigned unsent; /* of them, those that have no byte in the pipe, because it was full */
};

/* Creates a channel. *read_fd is for the client; the caller closes it after it was sent. Returns 0, or -errno with
 * why. */
int cm_channel_create(struct cm_host *h, uid_t uid, pid_t pid, void (*ended)(struct cm_channel *ch),
                      struct cm_channel **out, int *read_fd, char why[QUOTA_WHY_MAX]);
/* The channel must have no IDs and no notes. */
void cm_channel_free(struct cm_channel *ch);
/* Finds the channel of a user by its token. NULL: there is none. */
struct cm_channel *cm_channel_find(struct cm_host *h, uid_t uid, uint64_t token);
/* Nobody finds the channel from now on. */
void cm_channel_hide(struct cm_channel *ch);

/* Appends an event. The note belongs to the channel until cm_channel_next or cm_channel_remove. */
void cm_channel_add(struct cm_channel *ch, struct cm_note *n);
/* Takes the oldest event, whose byte the client has taken. NULL: there is none. */
struct cm_note *cm_channel_next(struct cm_channel *ch);
/* Takes the events for which `which` is true out of the channel, with their bytes, and appends them to *out. */
void cm_channel_remove(struct cm_channel *ch, bool (*which)(const struct cm_note *n, const void *arg), const void *arg,
                       struct cm_note_list *out);

#endif
