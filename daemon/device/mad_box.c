// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/device/mad_box.h"

#include <stdlib.h>
#include <string.h>

void mad_box_init(struct mad_box *b)
{
    memset(b, 0, sizeof(*b));
    pthread_mutex_init(&b->lock, NULL);
}

void mad_box_fini(struct mad_box *b)
{
    free(b->received.slot);
    free(b->to_send.slot);
    pthread_mutex_destroy(&b->lock);
}

/* --- a ring ------------------------------------------------------------------------------------ */

/* Allocates the slots before the first MAD. Only the thread that adds MADs calls it, so the lock need not be held while
 * memory is allocated. */
static void make_slots(struct mad_box *b, struct mad_ring *r)
{
    if (r->slot)
        return;
    struct cm_datagram *slot = calloc(MAD_BOX_SLOTS, sizeof(*slot));
    pthread_mutex_lock(&b->lock);
    r->slot = slot;
    pthread_mutex_unlock(&b->lock);
}

/* The caller holds the lock. */
static bool put(struct mad_ring *r, const struct cm_datagram *d)
{
    if (!r->slot || r->tail - r->head == MAD_BOX_SLOTS) {
        r->dropped++;
        return false;
    }
    r->slot[r->tail++ % MAD_BOX_SLOTS] = *d;
    return true;
}

/* The caller holds the lock. */
static bool take(struct mad_ring *r, struct cm_datagram *out)
{
    if (r->head == r->tail)
        return false;
    *out = r->slot[r->head++ % MAD_BOX_SLOTS];
    return true;
}

/* --- the device's thread ----------------------------------------------------------------------- */

/* The loop need not do more than wake up: the next pass looks at `pending`. */
static void on_wake(void *arg)
{
    (void)arg;
}

int mad_box_start(struct mad_box *b, struct ev_loop *loop)
{
    int rc = loop_wake_start(&b->to_device, loop, on_wake, NULL);

    pthread_mutex_lock(&b->lock);
    b->device_runs = rc == 0;
    pthread_mutex_unlock(&b->lock);
    return rc;
}

void mad_box_stop(struct mad_box *b)
{
    pthread_mutex_lock(&b->lock);
    b->device_runs = false;
    pthread_mutex_unlock(&b->lock);
    loop_wake_stop(&b->to_device);
}

/* The caller holds the lock, so that the other thread does not end its loop meanwhile. */
static void wake_cm(struct mad_box *b)
{
    if (b->to_cm)
        loop_wake_send(b->to_cm);
}

void mad_box_describe(struct mad_box *b, const struct mad_device *d)
{
    pthread_mutex_lock(&b->lock);
    if (memcmp(&b->device, d, sizeof(*d)) != 0) {
        b->device = *d;
        wake_cm(b);
    }
    pthread_mutex_unlock(&b->lock);
}

void mad_box_received(struct mad_box *b, const struct cm_datagram *d)
{
    make_slots(b, &b->received);
    pthread_mutex_lock(&b->lock);
    if (!b->to_cm)
        b->received.dropped++;
    else if (put(&b->received, d))
        wake_cm(b);
    pthread_mutex_unlock(&b->lock);
}

bool mad_box_next_to_send(struct mad_box *b, struct cm_datagram *out)
{
    pthread_mutex_lock(&b->lock);
    bool found = take(&b->to_send, out);
    if (b->to_send.head == b->to_send.tail)
        atomic_store_explicit(&b->pending, false, memory_order_relaxed);
    pthread_mutex_unlock(&b->lock);
    return found;
}

/* --- the connection management thread ----------------------------------------------------------- */

void mad_box_attach(struct mad_box *b, struct loop_wake *wake)
{
    pthread_mutex_lock(&b->lock);
    b->to_cm = wake;
    pthread_mutex_unlock(&b->lock);
}

void mad_box_device(struct mad_box *b, struct mad_device *out)
{
    pthread_mutex_lock(&b->lock);
    *out = b->device;
    pthread_mutex_unlock(&b->lock);
}

bool mad_box_next_received(struct mad_box *b, struct cm_datagram *out)
{
    pthread_mutex_lock(&b->lock);
    bool found = take(&b->received, out);
    pthread_mutex_unlock(&b->lock);
    return found;
}

void mad_box_send(struct mad_box *b, const struct cm_datagram *d)
{
    make_slots(b, &b->to_send);
    pthread_mutex_lock(&b->lock);
    if (put(&b->to_send, d)) {
        atomic_store_explicit(&b->pending, true, memory_order_relaxed);
        if (b->device_runs)
            loop_wake_send(&b->to_device);
    }
    pthread_mutex_unlock(&b->lock);
}
