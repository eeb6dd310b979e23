// SPDX-License-Identifier: BSD-2-Clause
/* Outstanding requests: posted, and their completion was not polled yet. Also the memory that the device may still write
 * for them. All under the lock of records.h. */
#ifndef PUMICE_SRC_CHECK_OBJECTS_REQUEST_H
#define PUMICE_SRC_CHECK_OBJECTS_REQUEST_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "src/check/base/trace.h"
#include "src/check/objects/fingerprint.h"

#define OPCODE_RECV (-1) /* beside those of enum ibv_wr_opcode */

struct target;

struct request {
    TAILQ_ENTRY(request) link;
    uint64_t wr_id;
    int opcode;
    uint32_t rkey; /* of a READ, WRITE or atomic */
    uint64_t remote_addr;
    bool signaled; /* it gets a completion when it succeeds */
    const void *owner; /* the QP or SRQ that it was posted to */
    const struct trace *where; /* the place in the program that posted it */
    bool may_guard; /* guard.h can guard the memory of the list */
    bool lent; /* lent.h knows the memory of the list */
    struct fingerprint sent; /* of a buffer that must not change */
    struct target *targets; /* owned, [num_sge]: memory that the device writes; NULL: none */
    unsigned num_sge;
    struct ibv_sge sge[]; /* addr: in the program; 0: the memory is not there, or not known */
};
TAILQ_HEAD(request_queue, request);

/* Appends a request with a copy of the list, whose addresses the caller may change. The list of an inline request must be given as empty: nobody reads it later. NULL: no memory. */
struct request *request_add(struct request_queue *q, const struct request *like, const struct ibv_sge *list,
                            unsigned n);
void request_remove(struct request_queue *q, struct request *r);
void request_remove_all(struct request_queue *q);

/* The oldest request with this number. NULL: none. */
struct request *request_find(const struct request_queue *q, uint64_t wr_id);

/* The addresses of the list are those in the program from now on. */
void request_lend(struct request *r);
/* The targets of a request count from now on. Returns another request with a target that overlaps one of them; NULL: none.
 * A target that overlaps another one is not kept. */
const struct request *request_add_targets(struct request *r);
/* A request with a target that overlaps this memory. NULL: none. */
const struct request *request_writing(const struct ibv_sge *sge);

/* Lifts the guard of this address (RULE_TOUCH). Returns its request, and the offset from the begin of the target. NULL: the
 * address is not guarded. */
const struct request *request_lift(uint64_t address, uint64_t *offset);
/* The same for a word of *bytes bytes that is watched. NULL: it no longer is. */
const struct request *request_lift_word(uint64_t word, uint64_t *offset, unsigned *bytes);
/* The memory of a request belongs to somebody else from now on: the checker no longer looks at it. */
void request_forget_memory(struct request *r);

/* As people write it: "RDMA READ", "receive request". */
const char *request_kind(int opcode);

#endif
