// SPDX-License-Identifier: BSD-2-Clause
/* The two ways between a device's thread and the connection management thread: MADs that came to the device's QP 1, MADs
 * that it shall send, and a copy of the device's addresses. Both sides take and give under a mutex that is held for a
 * copy of one entry only, so that none of the threads waits for the other. A full box drops the MAD and counts it: the
 * sender's timer repeats it, as if the network had lost it. */
#ifndef PUMICE_DAEMON_DEVICE_MAD_BOX_H
#define PUMICE_DAEMON_DEVICE_MAD_BOX_H

#include <ev.h>
#include <net/if.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/loop_wake.h"
#include "daemon/core/cm/cm_types.h"

#define MAD_BOX_SLOTS 1024u /* of each direction */

/* The part of a device that connection management must know. */
struct mad_device {
    uint64_t guid;
    uint32_t ifindex; /* interface of the device's address */
    uint8_t active_mtu; /* enum ibv_mtu */
    uint8_t num_gids;
    uint8_t gid_v1; /* as in struct device_limits */
    uint8_t gids[ENGINE_MAX_GIDS][16]; /* by GID index; all zeros: the entry is empty */
    uint32_t scope[ENGINE_MAX_GIDS]; /* interface of a link-local address; 0: not link-local */
};

struct mad_ring {
    /* head and tail count up; an entry is at its count % MAD_BOX_SLOTS. */
    uint32_t head, tail;
    uint64_t dropped; /* MADs without room */
    struct cm_datagram *slot; /* MAD_BOX_SLOTS; allocated with the first MAD */
};
struct mad_box {
    pthread_mutex_t lock; /* protects all that follows, except pending and to_device */
    struct mad_ring received, to_send;
    struct mad_device device;
    /* to_send has MADs. The device's thread reads it once per pass, without the lock (relaxed), and then looks under the
     * lock. That suffices: to_device is sent after it was set. */
    atomic_bool pending;
    bool device_runs;
    struct loop_wake *to_cm; /* NULL: the connection management thread does not run */
    struct loop_wake to_device; /* protected by itself */
};

void mad_box_init(struct mad_box *b);
void mad_box_fini(struct mad_box *b);

/* --- the device's thread ------------------------------------------------------------------------- */

/* The loop wakes up for MADs to send. Returns 0, or -errno. */
int mad_box_start(struct mad_box *b, struct ev_loop *loop);
void mad_box_stop(struct mad_box *b);
/* Copies the addresses of the device for the other thread. Called at the start and after each change of them. */
void mad_box_describe(struct mad_box *b, const struct mad_device *d);
/* Are there MADs to send? Called in each pass. */
static inline bool mad_box_pending(const struct mad_box *b)
{
    return atomic_load_explicit(&b->pending, memory_order_relaxed);
}
/* Hands over a MAD that was received. While no thread is attached, it is dropped. */
void mad_box_received(struct mad_box *b, const struct cm_datagram *d);
/* Takes the oldest MAD to send. False: there is none. */
bool mad_box_next_to_send(struct mad_box *b, struct cm_datagram *out);

/* --- the connection management thread ------------------------------------------------------------------ */

/* Sends `wake` when a MAD was received, or when the addresses changed. NULL: no longer. The MADs that wait in both
 * directions stay. */
void mad_box_attach(struct mad_box *b, struct loop_wake *wake);
void mad_box_device(struct mad_box *b, struct mad_device *out);
bool mad_box_next_received(struct mad_box *b, struct cm_datagram *out);
/* Lets the device send a MAD. d->sgid_index is the local address. */
void mad_box_send(struct mad_box *b, const struct cm_datagram *d);

#endif
