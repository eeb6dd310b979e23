// SPDX-License-Identifier: BSD-2-Clause
/* The verbs objects of the layer: queue pairs to every rank, the shared receive queue, buffers. This part is like
 * any other RDMA program. The part for tag matching is in offload.c.
 *
 * Each rank has two queue pairs to each rank, itself included:
 *
 *     tx: sends the messages of this rank, and the RDMA READs of its software. Its other end is the peer's rx.
 *     rx: receives the messages of the peer. With the offload on, the device itself sends from here: the READ and the
 *         FIN of a rendezvous. The program posts nothing to it, because its send queue belongs to the device.
 *
 * All rx share one receive queue, the TM-SRQ. So all arrivals have one order, and there is one list of receives for
 * all ranks. With the offload off, it is an ordinary SRQ. The FIN of a device arrives at the tx, so all tx share a
 * small SRQ of their own. The FIN of software arrives at the rx, like any message. */
#ifndef PUMICE_EXAMPLES_TAGMPI_DEVICE_H
#define PUMICE_EXAMPLES_TAGMPI_DEVICE_H

#include <infiniband/tm_types.h>
#include <infiniband/verbs.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include "examples/tagmpi/boot.h"
#include "examples/tagmpi/tagmpi.h"

enum {
    SLOT_SIZE = sizeof(struct ibv_tmh) + TAGMPI_EAGER_MAX, /* one message with its header */
    RECV_SLOTS = 512, /* for messages that the device does not match */
    FIN_SLOTS = 64,
    SEND_SLOTS = 256, /* messages being sent */
    LINK_SENDS = 64, /* send requests that one tx can hold */
    MAX_TAGS = 1023, /* entries in the device's list, if the device allows so many */
    MAX_REGIONS = 16
};

struct link {
    struct ibv_qp *tx, *rx;
    unsigned room; /* free places in the send queue of tx */
};

struct device {
    unsigned rank;
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq_ex *rx_cq; /* of srq */
    struct ibv_cq *tx_cq; /* of all tx, for sends and receives */
    struct ibv_srq *srq, *fin_srq;
    uint32_t max_tags, max_ops; /* of the TM-SRQ; 0: an ordinary SRQ */
    uint32_t max_inline; /* bytes */
    uint8_t *memory; /* all slots: for receives, for FINs, for sends */
    struct ibv_mr *memory_mr;
    struct ibv_mr *region[MAX_REGIONS]; /* memory that the program registered */
    unsigned regions;
    struct link link[BOOT_MAX_RANKS];
    unsigned ranks;
    unsigned free_slot[SEND_SLOTS], free_slots; /* a stack */
    unsigned slot_peer[SEND_SLOTS]; /* the rank that a slot is being sent to */
};

/* One completion of the shared receive queue. */
struct arrival {
    enum ibv_wc_opcode opcode;
    unsigned flags;
    uint64_t wr_id; /* a slot's number, the receive of an entry of the device's list, or an operation's number */
    uint32_t length; /* bytes */
    uint64_t tag; /* of a match */
};

/* Prints the text and ends the process. */
void fatal(unsigned rank, const char *format, ...) __attribute__((format(printf, 2, 3), noreturn));

/* Opens the device, makes all objects, connects all ranks, and posts all receives. Errors are fatal. */
void device_open(struct device *d, const struct boot *b, bool offload);
void device_close(struct device *d);

/* Registers memory. */
void device_register(struct device *d, void *memory, size_t size);

/* The region that contains these bytes; fatal if there is none. NULL if length is 0. */
const struct ibv_mr *device_region(const struct device *d, const void *p, size_t size);

/* Takes the next completion of the shared receive queue. False: there is none. A completion with an error is fatal. */
bool device_poll(struct device *d, struct arrival *a);

/* The bytes of a receive slot; and the call that posts it to the receive queue again. */
void *device_slot(const struct device *d, uint64_t slot);
void device_repost(struct device *d, uint64_t slot);

/* The bytes of a FIN that arrived at a tx; and the call that posts its slot again. */
void *device_fin(const struct device *d, uint64_t slot);
void device_repost_fin(struct device *d, uint64_t slot);

/* A free slot for a message to a peer; *slot is its number. NULL: all slots are in use, or this peer's tx is full. */
void *device_send_slot(struct device *d, unsigned peer, unsigned *slot);

/* Sends the first length bytes of that slot. flags: 0, or IBV_SEND_FENCE to wait for the READs before it. */
void device_send(struct device *d, unsigned peer, unsigned slot, uint32_t length, unsigned flags);

/* Frees the slot of a message, after its completion. */
void device_sent(struct device *d, uint64_t slot);

/* Fetches length bytes of a peer's memory. The caller makes sure that there is room. The completion has the same
 * wr_id; then the caller adds 1 to the link's room. */
void device_read(struct device *d, unsigned peer, const struct ibv_sge *to, uint64_t va, uint32_t rkey, uint64_t wr_id);

#endif
