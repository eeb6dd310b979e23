// SPDX-License-Identifier: BSD-2-Clause
/* Reads requests from the rings of include/pumice/abi.h. A client writes them, so they may hold anything and may
 * change at any moment. Each entry is copied once, and the copy is validated. Nothing is read twice. The module is
 * pure, so that tests can try invalid rings on it. */
#ifndef PUMICE_DAEMON_SESSION_WQE_RING_H
#define PUMICE_DAEMON_SESSION_WQE_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/engine.h"
#include "daemon/core/tm/tag_list.h"
#include "pumice/abi.h"

/* One queue in a segment. */
struct ring {
    const uint8_t *base; /* address of slot 0; NULL: no such queue */
    _Atomic uint32_t *tail; /* written by the client */
    uint32_t slots; /* a power of two; 0: no such queue */
    uint32_t stride; /* bytes per slot */
    uint32_t head; /* next index to read; the client does not see it */
    uint32_t max_sge;
    uint32_t max_inline; /* send queues */
    /* UD send queues: an address vector follows the header of each request */
    bool has_av;
    /* SRQs: a request is identified by the client's number for it, not by its index */
    bool has_wqe_index;
};

/* Loads the tail once (acquire: pairs with the client's release store, so that the entries before it are visible).
 * Returns the number of requests to read, or -1 if the tail is invalid. */
int64_t ring_waiting(const struct ring *r);

enum ring_verdict {
    RING_OK,
    RING_BAD_SGE, /* more SGEs than the QP's limit */
    RING_BAD_OP, /* no such list operation */
    RING_BAD_INLINE, /* more inline data than the limit */
};
const char *ring_verdict_text(enum ring_verdict v);

/* A private copy of a request. (A send request is copied straight into the engine's queue.) */
struct ring_recv {
    struct recv_wr wr;
    struct sge sge[ENGINE_MAX_SGE];
};
struct ring_tm_op {
    struct tm_op op; /* slot: the handle, which identifies the completion to the client */
    struct sge sge[TM_MAX_SGE];
};
/* Copies and validates the request at head. The caller advances head. */
enum ring_verdict ring_read_send(const struct ring *r, struct send_slot *out);
enum ring_verdict ring_read_recv(const struct ring *r, struct ring_recv *out);
/* op.sge points to out->sge. */
enum ring_verdict ring_read_tm_op(const struct ring *r, struct ring_tm_op *out);

/* When the request at head was posted, as its client says (pm_recv_wqe.wqe_index). */
uint32_t ring_posted_us(const struct ring *r);

/* Bytes of a slot, and slots of a queue (a power of two), for these limits. */
uint32_t ring_send_stride(uint32_t max_sge, uint32_t max_inline, bool has_av);
/* Bytes of inline data that fit into such a slot: at least max_inline. */
uint32_t ring_send_room(uint32_t max_sge, uint32_t max_inline, bool has_av);
uint32_t ring_recv_stride(uint32_t max_sge);
uint32_t ring_tm_stride(uint32_t max_sge);
uint32_t ring_slots(uint32_t max_wr);

#endif
