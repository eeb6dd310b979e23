// SPDX-License-Identifier: BSD-2-Clause
/* How long a copy of client memory may last, for each user. While a copy lasts, the device serves nobody. So a user whose
 * memory did not answer gets half of the time for the next ten minutes, and half of that after the next time. After
 * MEMORY_STRIKES_MAX times the user gets no new session. So all its programs together can't stop a device for much longer
 * than twice the limit. (A daemon that only one user may use waits longer for a lock, see memory_lock_limit.) The module is
 * pure. */
#ifndef PUMICE_DAEMON_DEVICE_MEMORY_STRIKES_H
#define PUMICE_DAEMON_DEVICE_MEMORY_STRIKES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define MEMORY_STRIKES_USERS 32u /* remembered at a time; then the oldest is forgotten */
#define MEMORY_LIMIT_MIN_MS 20u /* no limit is halved below this */

#define MEMORY_STRIKES_MAX 8u /* so many within ten minutes, and a user gets no new session */

/* All zero is the initialized state. */
struct memory_strikes {
    struct memory_strike {
        uid_t uid;
        unsigned n; /* 0: the entry is free */
        uint64_t until; /* ns */
    } user[MEMORY_STRIKES_USERS];
};

/* Remembers that memory of the user did not answer. */
void memory_strikes_add(struct memory_strikes *m, uid_t uid, uint64_t now);
/* Returns the limit of the user in ms. usual: the limit of others. */
unsigned memory_strikes_limit(const struct memory_strikes *m, uid_t uid, unsigned usual, uint64_t now);
/* Returns how many seconds the user must wait before it gets a new session. 0: it gets one now. */
unsigned memory_strikes_wait(const struct memory_strikes *m, uid_t uid, uint64_t now);

/* The lock of a program's mappings may be held by a thread that has no processor, such as the kernel's khugepaged. If
 * nobody but the daemon's own user and root may use the daemon, a copy waits so many times as long for it: on this host,
 * only their own programs wait with it. With a group, one program must not keep others waiting. */
#define MEMORY_LOCK_TIMES 20u
/* How long a copy may wait for that lock, if it may wait for limit_ms for a page. shared: a group may use the daemon. */
static inline unsigned memory_lock_limit(unsigned limit_ms, bool shared)
{
    return shared ? limit_ms : MEMORY_LOCK_TIMES * limit_ms;
}

#endif
