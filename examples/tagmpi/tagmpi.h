// SPDX-License-Identifier: BSD-2-Clause
/* A small MPI-style point-to-point layer over the tag matching of verbs.
 *
 * A message has a sender, a tag and a communicator. A receive selects messages by these, with wildcards. If a
 * message matches several receives, the one that was posted first gets it. Messages from one rank never overtake
 * each other. With the offload on, the device does the matching: it keeps a list of the receives, puts the data of a
 * message into the right buffer, and fetches a large message (a rendezvous) by itself. If a message comes before its
 * receive, the layer matches it in software. With the offload off, software matches everything.
 *
 * A process has one thread. The layer works only within calls. So a rank that computes for a long time should call
 * tagmpi_progress now and then, as with most MPIs. Errors are fatal, as by default in MPI: a message on stderr and
 * exit code 1. A message that is longer than the buffer of its receive is such an error. */
#ifndef PUMICE_EXAMPLES_TAGMPI_TAGMPI_H
#define PUMICE_EXAMPLES_TAGMPI_TAGMPI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "examples/tagmpi/boot.h"

enum { TAGMPI_ANY_SOURCE = -1, TAGMPI_ANY_TAG = -1 };
enum {
    TAGMPI_WORLD = 0, /* the first communicator; every number up to TAGMPI_MAX_COMM is one */
    TAGMPI_MAX_COMM = (1 << 12) - 2,
    /* Bytes. A longer message is a rendezvous: its data stay with the sender until the receiver fetches them. */
    TAGMPI_EAGER_MAX = 8192
};

struct tagmpi; /* the layer's state */
struct tagmpi_request; /* a send or receive under way */

/* The message of a receive. */
struct tagmpi_status {
    int source; /* rank */
    int tag;
    size_t length; /* bytes */
};

/* How many messages the device and software matched. */
struct tagmpi_counts {
    uint64_t device_eager; /* messages that the device matched and stored */
    uint64_t device_rendezvous; /* rendezvous that the device matched, fetched and finished */
    /* Messages that software matched when they came: their receive was posted, but not active yet. */
    uint64_t software_arriving;
    /* Messages that waited in the queue of unexpected messages for their receive. */
    uint64_t software_waiting;
    uint64_t adds, dels, syncs; /* operations on the device's list */
};

/* Opens the first device and connects all ranks. All ranks call it with the same offload. TAGMPI_DEVICE names
 * another device, TAGMPI_GID_INDEX another GID than the first one of RoCE v2. offload: the device matches; ends the
 * process if the device cannot. The result is valid until tagmpi_close. b must stay until then. */
struct tagmpi *tagmpi_open(const struct boot *b, bool offload);

/* Closes everything and frees t. All ranks call it when all their requests are done. */
void tagmpi_close(struct tagmpi *t);

/* Registers memory with the device. Buffers of receives, and of sends longer than TAGMPI_EAGER_MAX, must be in
 * memory that one call registered. The memory must stay until tagmpi_close. */
void tagmpi_register(struct tagmpi *t, void *memory, size_t size);

/* Begins to send to rank dest. tag: 0 or more. Up to TAGMPI_EAGER_MAX bytes are copied before it returns. The caller
 * must not change a longer message until the request is done. May make progress while it waits for a free buffer.
 * The request ends with tagmpi_wait or a successful tagmpi_test. */
struct tagmpi_request *tagmpi_isend(struct tagmpi *t, const void *buf, size_t length, unsigned dest, int tag,
                                    unsigned comm);

/* Begins to receive up to capacity bytes from a rank or TAGMPI_ANY_SOURCE, with a tag or TAGMPI_ANY_TAG, of one
 * communicator. The layer owns buf until the request is done. */
struct tagmpi_request *tagmpi_irecv(struct tagmpi *t, void *buf, size_t capacity, int source, int tag, unsigned comm);

/* Whether there is a message that a receive with these arguments would get at once. If so, *status (unless NULL)
 * describes it. */
bool tagmpi_iprobe(struct tagmpi *t, int source, int tag, unsigned comm, struct tagmpi_status *status);

/* Waits until there is such a message. */
void tagmpi_probe(struct tagmpi *t, int source, int tag, unsigned comm, struct tagmpi_status *status);

/* Whether the request is done. If so, frees it, and *status (unless NULL) describes the message that was received. */
bool tagmpi_test(struct tagmpi *t, struct tagmpi_request *r, struct tagmpi_status *status);

/* Whether the request is done. Makes no progress and does not free it: use it to check many requests. */
bool tagmpi_done(const struct tagmpi_request *r);

/* Waits until the request is done, and frees it; *status as in tagmpi_test. */
void tagmpi_wait(struct tagmpi *t, struct tagmpi_request *r, struct tagmpi_status *status);

/* The same as isend and irecv, and wait until the request is done. */
void tagmpi_send(struct tagmpi *t, const void *buf, size_t length, unsigned dest, int tag, unsigned comm);
void tagmpi_recv(struct tagmpi *t, void *buf, size_t capacity, int source, int tag, unsigned comm,
                 struct tagmpi_status *s);

/* Waits until all ranks are here. */
void tagmpi_barrier(struct tagmpi *t);

/* Handles arrivals and continues requests. */
void tagmpi_progress(struct tagmpi *t);

/* The counts of this rank, since tagmpi_open. */
struct tagmpi_counts tagmpi_counts(const struct tagmpi *t);

#endif
