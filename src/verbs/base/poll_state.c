// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/base/poll_state.h"

#include "pumice/abi_rings.h"

/* --- is it the thread's turn? ------------------------------------------------------------------ */

/* The daemon published something, or the thread polls another context now: the thread yields again, and its next wait
 * is the shortest. */
static void start_yielding(struct vb_poll_thread *t)
{
    t->phase = VB_POLL_YIELDING;
    t->yields = 0;
    t->wait_us = VB_POLL_WAIT_MIN_US;
}

/* Counts the empty polls of one context in a row. */
static void note_context(struct vb_poll_thread *t, const void *context)
{
    if (t->context != context) {
        t->context = context;
        t->alone = 0;
        start_yielding(t);
    } else if (t->alone < VB_POLL_ALONE) {
        t->alone++;
    }
}

static void note_pause(struct vb_poll_thread *t, uint64_t now)
{
    if (t->paused_at && now - t->paused_at < VB_POLL_PAUSES_NEAR_NS)
        t->pauses_until = now + VB_POLL_PAUSES_PERIOD_NS;
    t->paused_at = now;
}

/* Ends BUSY after a pause. */
static void note_rhythm(struct vb_poll_thread *t, uint64_t now)
{
    if (now - t->last > yield_cost_scaled(t->brief.yield_ns, VB_POLL_BUSY_GAP_NS, VB_POLL_BUSY_GAP_MAX_NS)) {
        t->rhythm = VB_POLL_OCCASIONAL;
        t->polls = 0;
        note_pause(t, now);
    }
    t->last = now;
}

/* Notes that this thread polls the queue. Returns whether other threads poll it, too. The pollers may alternate seldom.
 * Another thread can poll only after this thread was interrupted at a moment when it did not hold the lock around the
 * queue. So one poll by a second thread makes the queue count as shared for a long time. */
static bool note_poller(const struct vb_poll_thread *t, struct vb_poll_queue *queue, uint64_t now)
{
    const void *last = atomic_load_explicit(&queue->poller, memory_order_relaxed);
    if (last != t) {
        atomic_store_explicit(&queue->poller, t, memory_order_relaxed);
        if (last)
            atomic_store_explicit(&queue->shared_until, now + VB_POLL_SHARED_PERIOD_NS, memory_order_relaxed);
    }
    return now < atomic_load_explicit(&queue->shared_until, memory_order_relaxed);
}

bool vb_poll_turn(struct vb_poll_thread *t, const void *context, struct vb_poll_queue *queue, uint64_t now)
{
    note_context(t, context);
    note_rhythm(t, now);
    if (t->posted) {
        t->posted = false;
        return false;
    }
    if (t->rhythm == VB_POLL_OCCASIONAL) {
        if (++t->polls == VB_POLL_BUSY_POLLS)
            t->rhythm = VB_POLL_BUSY;
        return false;
    }
    if (note_poller(t, queue, now) && now - t->turn_at < VB_POLL_SHARED_NS)
        return false;
    if (queue != t->turn_queue && t->others < VB_POLL_OTHERS_MAX) {
        t->others++;
        return false;
    }
    t->turn_queue = queue;
    t->others = 0;
    return true;
}

/* --- the action of a turn --------------------------------------------------------------------- */

bool vb_poll_is_alone(const struct vb_poll_thread *t, const void *page, bool gone)
{
    return t->alone == VB_POLL_ALONE && t->page == page && !gone;
}

static bool is_crowded(const struct vb_poll_thread *t, const struct vb_poll_crowd *crowd, uint64_t now)
{
    return vb_poll_crowded(crowd, now) || vb_poll_is_brief(&t->brief, now);
}

/* The action of a thread that does not wait for the daemon. */
static enum vb_poll_action give_way(const struct vb_poll_thread *t, const struct vb_poll_crowd *crowd,
                                    const struct vb_poll_view *view)
{
    if (!is_crowded(t, crowd, view->now))
        return VB_POLL_YIELD;
    return view->alone ? VB_POLL_SLEEP_OR_NEWS : VB_POLL_SLEEP;
}

enum vb_poll_action vb_poll_choose(struct vb_poll_thread *t, const struct vb_poll_crowd *crowd,
                                   const struct vb_poll_view *view)
{
    if (!view->alone || view->daemon_sleeps)
        return give_way(t, crowd, view);
    if (t->phase == VB_POLL_YIELDING && ++t->yields % (view->same_cpu ? VB_POLL_YIELDS_SAME : VB_POLL_YIELDS) == 0) {
        if (!view->same_cpu)
            return VB_POLL_COUNT_SWITCHES;
        t->phase = VB_POLL_WAITING;
    }
    return t->phase == VB_POLL_WAITING ? VB_POLL_WAIT : give_way(t, crowd, view);
}

enum vb_poll_action vb_poll_choose_counted(struct vb_poll_thread *t, const struct vb_poll_crowd *crowd,
                                           const struct vb_poll_view *view, long switches)
{
    if (switches != t->switches)
        t->phase = VB_POLL_WAITING;
    t->switches = switches;
    return t->phase == VB_POLL_WAITING ? VB_POLL_WAIT : give_way(t, crowd, view);
}

/* --- processors ------------------------------------------------------------------------------- */

/* False: the thread has moved shortly before. */
static bool may_move(const struct vb_poll_thread *t, uint64_t now)
{
    return !t->stays || now - t->moved_at >= t->stays;
}

static void note_move(struct vb_poll_thread *t, uint64_t now)
{
    bool again = t->stays && now - t->moved_at < t->stays + VB_POLL_MOVE_MAX_NS;
    t->stays = again ? vb_poll_doubled(t->stays, VB_POLL_MOVE_MAX_NS) : VB_POLL_MOVE_MIN_NS;
    t->moved_at = now;
    t->together = t->away = 0;
}

/* Would the thread gain by a processor without the daemon, which it then shares with its peer? */
static bool gains_apart(const struct vb_poll_thread *t, const struct vb_poll_crowd *crowd, uint64_t now)
{
    return !is_crowded(t, crowd, now) && now >= t->pauses_until;
}

bool vb_poll_should_leave(struct vb_poll_thread *t, const struct vb_poll_crowd *crowd, const struct vb_poll_view *view)
{
    if (!view->same_cpu || !view->apart || (!view->away && !gains_apart(t, crowd, view->now))) {
        t->together = 0;
        return false;
    }
    if (++t->together < VB_POLL_MOVE_TURNS || !may_move(t, view->now))
        return false;
    note_move(t, view->now);
    return true;
}

bool vb_poll_should_leave_crowd(struct vb_poll_thread *t, const struct vb_poll_crowd *crowd,
                                const struct vb_poll_view *view)
{
    if (view->same_cpu || !view->beside_crowded || !is_crowded(t, crowd, view->now) || !may_move(t, view->now))
        return false;
    note_move(t, view->now);
    return true;
}

/* Short time slices are no reason to stay away: beside the daemon, no wakeup needs an interrupt of another processor. */
bool vb_poll_counts_away(struct vb_poll_thread *t, const struct vb_poll_crowd *crowd, const struct vb_poll_view *view)
{
    if (view->same_cpu || !view->beside || vb_poll_crowded(crowd, view->now) || !may_move(t, view->now)) {
        t->away = 0;
        return false;
    }
    return t->away++ % VB_POLL_MOVE_TURNS == 0;
}

bool vb_poll_should_join(struct vb_poll_thread *t, const struct vb_poll_view *view, long switches)
{
    bool first = t->away == 1, shared = switches - t->away_switches >= VB_POLL_SHARED_TURNS;
    t->away_switches = switches;
    if (first || !shared)
        return false;
    note_move(t, view->now);
    return true;
}

/* --- waiting ----------------------------------------------------------------------------------- */

uint32_t vb_poll_next_wait_us(struct vb_poll_thread *t)
{
    uint32_t us = t->wait_us;
    if (t->wait_us < VB_POLL_WAIT_MAX_US)
        t->wait_us *= 2;
    return us;
}

void vb_poll_turn_done(struct vb_poll_thread *t, const void *page, uint32_t published, uint64_t after)
{
    t->last = t->turn_at = after;
    if (published / PM_PUBLISHED != t->published / PM_PUBLISHED)
        start_yielding(t);
    t->published = published;
    t->page = page;
}
