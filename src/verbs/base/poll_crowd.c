// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/base/poll_crowd.h"

/* --- yields ------------------------------------------------------------------------------------ */

static uint32_t yield_costs(const struct vb_poll_crowd *crowd)
{
    return atomic_load_explicit(&crowd->yield_ns, memory_order_relaxed);
}

/* Lets CROWDED last until the time, at least. */
static void extend(struct vb_poll_crowd *crowd, uint64_t until)
{
    if (atomic_load_explicit(&crowd->slow_until, memory_order_relaxed) < until)
        atomic_store_explicit(&crowd->slow_until, until, memory_order_relaxed);
}

void vb_poll_yielded(struct vb_poll_crowd *crowd, uint64_t before, uint64_t after)
{
    if (after - before <= vb_poll_slow_yield_ns(yield_costs(crowd)))
        return;
    uint64_t until = atomic_load_explicit(&crowd->slow_until, memory_order_relaxed);
    uint64_t last = atomic_load_explicit(&crowd->slow_for, memory_order_relaxed);
    if (before >= until + 2 * last) /* the last slow yield is long ago */
        last = VB_POLL_SLOW_PERIOD_MIN_NS;
    else
        last = vb_poll_doubled(last, VB_POLL_SLOW_PERIOD_MAX_NS);
    atomic_store_explicit(&crowd->slow_for, last, memory_order_relaxed);
    extend(crowd, after + last);
}

/* --- sleeps ------------------------------------------------------------------------------------ */

uint64_t vb_poll_backoff(const struct vb_poll_crowd *crowd)
{
    uint64_t length = atomic_load_explicit(&crowd->backoff_ns, memory_order_relaxed);
    return length < VB_POLL_BACKOFF_MIN_NS ? VB_POLL_BACKOFF_MIN_NS : length;
}

/* With many ranks of a job on each core, a sleep ends late. Then the next sleep is as long as this one was late. So the
 * pollers leave the processors to the daemon and to the threads that work. They wait hardly longer than they would in
 * any case. If the sleep was not late, the next one is half as long. */
void vb_poll_slept(struct vb_poll_crowd *crowd, uint64_t length, uint64_t before, uint64_t after)
{
    uint64_t took = after - before;
    uint64_t late = took > length ? took - length : 0;
    uint64_t most = yield_cost_scaled(yield_costs(crowd), VB_POLL_LATE_NS, VB_POLL_LATE_MAX_NS);
    if (late <= most)
        late = length / 2 > most ? length / 2 : 0;
    atomic_store_explicit(&crowd->backoff_ns, late < VB_POLL_BACKOFF_MAX_NS ? late : VB_POLL_BACKOFF_MAX_NS,
                          memory_order_relaxed);
    if (late) /* still crowded */
        extend(crowd, after + VB_POLL_SLOW_PERIOD_MAX_NS);
}

/* --- sleeps until news ------------------------------------------------------------------------- */

uint64_t vb_poll_nap_limit(const struct vb_poll_nap *nap, const struct vb_poll_crowd *crowd, uint64_t now)
{
    return now < nap->pause_until ? vb_poll_backoff(crowd) : VB_POLL_NAP_NS;
}

static void pause_naps(struct vb_poll_nap *nap, uint64_t now)
{
    if (nap->pause == 0 || nap->good == VB_POLL_NAPS_GOOD)
        nap->pause = VB_POLL_NAP_PAUSE_MIN_NS;
    else
        nap->pause = vb_poll_doubled(nap->pause, VB_POLL_NAP_PAUSE_MAX_NS);
    nap->pause_until = now + nap->pause;
    nap->good = 0;
}

void vb_poll_napped(struct vb_poll_nap *nap, struct vb_poll_crowd *crowd, uint64_t limit, uint64_t before,
                    uint64_t after, bool news)
{
    if (limit != VB_POLL_NAP_NS) {
        vb_poll_slept(crowd, limit, before, after);
    } else if (news) {
        nap->good += nap->good < VB_POLL_NAPS_GOOD;
    } else if (after - before >= limit) { /* otherwise the daemon ended it for another thread */
        pause_naps(nap, after);
    }
}
