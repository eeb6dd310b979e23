// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/device/memory_strikes.h"

#include <stddef.h>

#include "daemon/base/clock.h"

#define REMEMBER_NS (600 * NS_PER_S)
#define HALVINGS_MAX 16u

static const struct memory_strike *find(const struct memory_strikes *m, uid_t uid, uint64_t now)
{
    for (unsigned i = 0; i < MEMORY_STRIKES_USERS; i++) {
        if (m->user[i].n && m->user[i].uid == uid && m->user[i].until > now)
            return &m->user[i];
    }
    return NULL;
}

void memory_strikes_add(struct memory_strikes *m, uid_t uid, uint64_t now)
{
    const struct memory_strike *old = find(m, uid, now);
    unsigned at = 0;

    if (old)
        at = (unsigned)(old - m->user);
    for (unsigned i = 0; i < MEMORY_STRIKES_USERS && !old; i++) {
        if (m->user[i].until < m->user[at].until)
            at = i; /* free, or the oldest */
    }
    unsigned n = old && old->n < HALVINGS_MAX ? old->n + 1 : old ? old->n : 1;
    m->user[at] = (struct memory_strike){.uid = uid, .n = n, .until = now + REMEMBER_NS};
}

unsigned memory_strikes_limit(const struct memory_strikes *m, uid_t uid, unsigned usual, uint64_t now)
{
    const struct memory_strike *s = find(m, uid, now);
    unsigned ms = s ? usual >> s->n : usual;

    return ms < MEMORY_LIMIT_MIN_MS ? MEMORY_LIMIT_MIN_MS : ms;
}

unsigned memory_strikes_wait(const struct memory_strikes *m, uid_t uid, uint64_t now)
{
    const struct memory_strike *s = find(m, uid, now);

    return s && s->n >= MEMORY_STRIKES_MAX ? (unsigned)((s->until - now + NS_PER_S - 1) / NS_PER_S) : 0;
}
