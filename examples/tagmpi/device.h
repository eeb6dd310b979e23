// SPDX-License-Identifier: BSD-2-Clause
/* What the layer has of the verbs device: queue pairs to every rank, the shared receive queue, buffers. This is where the
 * program is like any other RDMA program; what is special to tag matching is in offload.c.
 *
 * Each rank has two queue pairs to each rank, itself included:
 *
 *     tx: what this rank sends, and RDMA READs of its software. Its other end is the peer's rx.
 *     rx: what the peer sends comes here, and with the offload on the device itself sends from here: the READ and the FIN of
 *         a rendezvous. The program posts nothing to it, because its send queue belongs to the device.
 *
 * All rx share one receive queue, the TM-SRQ: so there is one order of all arrivals, and one list of receives whatever
 * rank they are for. With the offload off it is an ordinary SRQ. A FIN of a device comes to the tx, so these have a
 * small SRQ of their own; a FIN of software comes to the rx, like any message. */
#ifndef DEVICE_H
#define DEVICE_H

#include <infiniband/tm_types.h>
#include <infiniband/verbs.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include "examples/tagmpi/boot.h"
#include "examples/tagmpi/tagmpi.h"

enum {
    SLOT_SIZE = sizeof(struct ibv_tmh) + TAGMPI_EAGER_MAX, /* one message as it is on the wire */
    RECV_SLOTS = 512, /* for what comes and is not matched by the device */
    FIN_SLOTS = 64,
    SEND_SLOTS = 256, /* messages being sent */
    LINK_SENDS = 64, /* requests in one tx */
    MAX_TAGS = 1023, /* entries in the device's list, if it can have so many */
    MAX_REGIONS = 16
};

struct link {
    struct ibv_qp *tx, *rx;
    unsigned room; /* requests that fit into tx */
};

struct device {
    unsigned rank;
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq_ex *rx_cq; /* of srq */
    struct ibv_cq *tx_cq; /* of all tx, in both directions */
    struct ibv_srq *srq, *fin_srq;
    uint32_t max_tags, max_ops; /* of the TM-SRQ; 0: an ordinary one */
    uint32_t max_inline; /* bytes */
    uint8_t *memory; /* all slots: to receive, for FINs, to send */
    struct ibv_mr *memory_mr;
    struct ibv_mr *region[MAX_REGIONS]; /* what the program has registered */
    unsigned regions;
    struct link link[BOOT_MAX_RANKS];
    unsigned ranks;
    unsigned free_slot[SEND_SLOTS], free_slots; /* a stack */
    unsigned slot_peer[SEND_SLOTS]; /* whom it is being sent to */
};

/* One completion of the shared receive queue. */
struct arrival {
    enum ibv_wc_opcode opcode;
    unsigned flags;
    uint64_t wr_id; /* of a slot its number; of an entry of the device's list the receive; of an operation its number */
    uint32_t length; /* bytes */
    uint64_t tag; /* of a match */
};

/* Prints the text and ends the process. */
void fatal(unsigned rank, const char *format, ...) __attribute__((format(printf, 2, 3), noreturn));

/* Opens the device, makes all objects, connects all ranks, and posts all receives. Errors are fatal. */
void device_open(struct device *d, const struct boot *b, bool offload);
void device_close(struct device *d);

/* Makes memory known. */
void device_register(struct device *d, void *memory, size_t size);

/* The region that has these bytes; fatal if there is none. Empty ones are in every region: NULL. */
const struct ibv_mr *device_region(const struct device *d, const void *p, size_t size);

/* The next thing that came; false: nothing. A failed one is fatal. */
bool device_poll(struct device *d, struct arrival *a);

/* The bytes of a slot for arrivals, and its way back to the receive queue. */
void *device_slot(const struct device *d, uint64_t slot);
void device_repost(struct device *d, uint64_t slot);

/* The bytes of a FIN that came to a tx, and its way back. */
void *device_fin(const struct device *d, uint64_t slot);
void device_repost_fin(struct device *d, uint64_t slot);

/* A free slot to send a message from; *slot is its number. NULL: all are under way, or this peer's tx is full. */
void *device_send_slot(struct device *d, unsigned peer, unsigned *slot);

/* Sends the first length bytes of that slot. flags: 0 or IBV_SEND_FENCE, which waits for READs before it to be done. */
void device_send(struct device *d, unsigned peer, unsigned slot, uint32_t length, unsigned flags);

/* A message has left its slot, says a completion. */
void device_sent(struct device *d, uint64_t slot);

/* Fetches length bytes of a peer's memory. wr_id comes back with the completion; then the caller adds 1 to the link's
 * room. The caller has seen to it that there is room. */
void device_read(struct device *d, unsigned peer, const struct ibv_sge *to, uint64_t va, uint32_t rkey, uint64_t wr_id);

#endif
