// SPDX-License-Identifier: BSD-2-Clause
/* A small MPI-style point-to-point layer over the tag matching of verbs.
 *
 * Messages go from rank to rank with a tag and a communicator. A receive says which it wants, with wildcards; of several
 * receives that a message matches the one posted first gets it, and messages from one rank never overtake each other. With
 * the offload on, the device does the matching: it keeps a list of the receives, puts the data of a message into the right
 * buffer, and fetches a large one (a rendezvous) all by itself. What it can't know, because the message came before its
 * receive, the layer matches in software. With the offload off software matches everything.
 *
 * One thread per process. Nothing happens but within calls: a rank that computes for long should call tagmpi_progress now
 * and then, as with most MPIs. Errors are fatal, as is MPI's default: a message on stderr, exit code 1. A message that is
 * longer than the buffer of its receive is such an error. */
#ifndef TAGMPI_H
#define TAGMPI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "examples/tagmpi/boot.h"

enum { TAGMPI_ANY_SOURCE = -1, TAGMPI_ANY_TAG = -1 };
enum {
    TAGMPI_WORLD = 0, /* a communicator to begin with; any number up to TAGMPI_MAX_COMM will do */
    TAGMPI_MAX_COMM = (1 << 12) - 2,
    TAGMPI_EAGER_MAX = 8192 /* bytes. Longer messages are rendezvous: their data stays until the receiver wants it */
};

struct tagmpi; /* the layer's state */
struct tagmpi_request; /* a send or receive under way */

/* What came. */
struct tagmpi_status {
    int source; /* rank */
    int tag;
    size_t length; /* bytes */
};

/* Who matched what. */
struct tagmpi_counts {
    uint64_t device_eager; /* messages that the device matched and stored */
    uint64_t device_rendezvous; /* that it matched, fetched and acknowledged */
    uint64_t software_arriving; /* that software matched when they came: their receive was posted, but not yet active */
    uint64_t software_waiting; /* that waited in the unexpected queue until a receive was posted */
    uint64_t adds, dels, syncs; /* operations on the device's list */
};

/* Opens the first device (TAGMPI_DEVICE: the one of that name; TAGMPI_GID_INDEX: not GID 0) and connects all ranks; all call
 * it, with the same offload. offload: the device matches; ends the process if it can't. The result is good until
 * tagmpi_close. b must stay until then. */
struct tagmpi *tagmpi_open(const struct boot *b, bool offload);

/* All ranks call it, when all their requests are done. Ends everything, and frees t. */
void tagmpi_close(struct tagmpi *t);

/* Makes memory known to the device. Buffers of receives, and of sends longer than TAGMPI_EAGER_MAX, must lie in memory
 * that was registered in one piece; it must stay until tagmpi_close. */
void tagmpi_register(struct tagmpi *t, void *memory, size_t size);

/* Begins to send to rank dest. tag: 0 or more. Up to TAGMPI_EAGER_MAX bytes are copied away before it returns; longer
 * messages must stay as they are until the request is done. May make progress while it waits for a free buffer. The request
 * ends with tagmpi_wait or a successful tagmpi_test. */
struct tagmpi_request *tagmpi_isend(struct tagmpi *t, const void *buf, size_t length, unsigned dest, int tag,
                                    unsigned comm);

/* Begins to receive up to capacity bytes from a rank or TAGMPI_ANY_SOURCE, with a tag or TAGMPI_ANY_TAG, of one communicator.
 * buf is the layer's until the request is done. */
struct tagmpi_request *tagmpi_irecv(struct tagmpi *t, void *buf, size_t capacity, int source, int tag, unsigned comm);

/* Is there a message that a receive with these arguments would get at once? Then *status (unless NULL) tells of it. */
bool tagmpi_iprobe(struct tagmpi *t, int source, int tag, unsigned comm, struct tagmpi_status *status);

/* Waits until there is one. */
void tagmpi_probe(struct tagmpi *t, int source, int tag, unsigned comm, struct tagmpi_status *status);

/* Is the request done? Then it is freed, and *status (unless NULL) tells of what was received; of a send nothing. */
bool tagmpi_test(struct tagmpi *t, struct tagmpi_request *r, struct tagmpi_status *status);

/* Is it done? Makes no progress, and does not free it: for a look at many. */
bool tagmpi_done(const struct tagmpi_request *r);

/* Waits until it is, and frees it; *status as above. */
void tagmpi_wait(struct tagmpi *t, struct tagmpi_request *r, struct tagmpi_status *status);

/* Sends and receives that are complete when they return. */
void tagmpi_send(struct tagmpi *t, const void *buf, size_t length, unsigned dest, int tag, unsigned comm);
void tagmpi_recv(struct tagmpi *t, void *buf, size_t capacity, int source, int tag, unsigned comm,
                 struct tagmpi_status *s);

/* Waits until all ranks are here. */
void tagmpi_barrier(struct tagmpi *t);

/* Lets everything under way move on. */
void tagmpi_progress(struct tagmpi *t);

/* Of this rank, since tagmpi_open. */
struct tagmpi_counts tagmpi_counts(const struct tagmpi *t);

#endif
