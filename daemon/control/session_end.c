// SPDX-License-Identifier: BSD-2-Clause
#define LOG_AREA LOG_SESSION
#include "daemon/control/session_end.h"

#include "daemon/base/log.h"
#include "daemon/base/slice.h"
#include "daemon/loop/pass.h"
#include "daemon/objects/channel.h"
#include "daemon/objects/cq.h"
#include "daemon/objects/mr.h"
#include "daemon/objects/mw.h"
#include "daemon/objects/pd.h"
#include "daemon/objects/qp/comp_cntr.h"
#include "daemon/objects/qp/qp.h"
#include "daemon/objects/qp/qp_control.h"
#include "daemon/objects/qp/xrc_target.h"
#include "daemon/objects/srq/srq_control.h"
#include "daemon/session/session.h"
#include "daemon/threads/fd_closer.h"
#include "daemon/threads/memory_trim.h"

/* The pause between two slices. Linux frees what belongs to closed files and unmapped memory a moment later, for all at once,
 * and takes the time from the thread that runs then: without pauses, up to 4 ms in one go for 16,384 QPs. */
#define PAUSE_NS (7 * SLICE_NS)

static void free_mr(struct session *s, struct mr *mr)
{
    mr_deregister(s->device->engine, mr->key);
    mr_free(s, mr);
}

/* Frees one object. False: there is none left.
 *
 * The order ensures that no pointer to a freed object remains. This function runs from the event loop, between passes,
 * so no packet batch, completion or deferred write refers to one of the objects. After each call the session is as if
 * its client had destroyed that object, so passes may run in between.
 *
 * First the QPs go, and the completion counters and SRQs that they used. This removes their completions from the
 * engine, takes them out of the device's lists, and removes all pointers to CQs. Then the CQs go, and with them all
 * pointers to channels. The keys go near the end, because they refer to the client memory. The PDs go last, because
 * all other objects may refer to them.
 *
 * XRC targets that the session had open stay. They have no pointer to a session. This session's SRQs, whose receive
 * requests they may have used, no longer exist at that point. */
static bool free_one(struct session *s)
{
    void *o;

    if ((o = handles_any(&s->qps)) != NULL)
        client_qp_free(o);
    else if ((o = TAILQ_FIRST(&s->targets)) != NULL)
        target_open_free(o);
    else if ((o = handles_any(&s->comp_cntrs)) != NULL)
        comp_cntr_free(o);
    else if ((o = handles_any(&s->srqs)) != NULL)
        client_srq_free(o);
    else if ((o = handles_any(&s->cqs)) != NULL)
        cq_free(o);
    else if ((o = handles_any(&s->channels)) != NULL)
        channel_free(o);
    else if ((o = handles_any(&s->xrcds)) != NULL)
        xrcd_open_free_step(o);
    else if ((o = handles_any(&s->mws)) != NULL)
        mw_free(s, o);
    else if ((o = handles_any(&s->mrs)) != NULL)
        free_mr(s, o);
    else if ((o = handles_any(&s->pds)) != NULL)
        pd_free(o);
    return o != NULL;
}

/* Stops the watchers, so that no request or event comes in, and closes the connection. */
static void disconnect(struct session *s)
{
    struct ev_loop *loop = s->device->loop;

    control_turn_fini(&s->device->control_turns, &s->turn);
    ev_io_stop(loop, &s->sock_readable);
    ev_io_stop(loop, &s->died);
    ev_io_stop(loop, &s->doorbell_rang);
    if (s->sock >= 0)
        fd_closer_close_socket(s->sock, s->cred.uid);
    s->sock = -1;
}

/* Removes a session without objects. */
static void finish(struct session *s)
{
    struct device *d = s->device;

    if (s->ending)
        TAILQ_REMOVE(&d->ending, s, ending_link);
    if (s->ending && TAILQ_EMPTY(&d->ending)) {
        ev_idle_stop(d->loop, &d->ends);
        memory_trim_hold(false);
    }
    TAILQ_REMOVE(&d->sessions, s, link);
    d->num_sessions--;
    log_info("session %u (%s, pid %d) ended", s->number, s->comm, (int)s->cred.pid);
    session_destroy(s);
    memory_trim_later();
}

/* One slice for all sessions that end, however many they are. They take turns, so that small ones do not wait for the
 * end of a large one. */
static void on_idle(struct ev_loop *loop, ev_idle *w, int revents)
{
    struct slice slice = slice_begin();
    struct device *d = w->data;
    struct session *s;

    (void)loop;
    (void)revents;
    if (clock_ns() < d->ends_at)
        return;
    device_settle(d);
    d->ends_at = slice.end + PAUSE_NS;
    while ((s = TAILQ_FIRST(&d->ending)) != NULL) {
        bool more;

        activity_begin(&d->activity, "the end", s->number, s->cred.pid);
        do {
            more = free_one(s);
        } while (more && !slice_is_over(&slice));
        if (more) {
            TAILQ_REMOVE(&d->ending, s, ending_link);
            TAILQ_INSERT_TAIL(&d->ending, s, ending_link);
        } else {
            finish(s);
        }
        activity_done(&d->activity);
        if (slice_is_over(&slice))
            return;
    }
}

void session_end(struct session *s)
{
    struct device *d = s->device;

    if (s->ending)
        return;
    disconnect(s);
    if (TAILQ_EMPTY(&d->ending)) {
        /* libev calls an idle watcher only while no event of its priority or a higher one waits. With the highest
         * priority, busy connections cannot hold off the end of a session. While the watcher is active, the loop does
         * not sleep. */
        ev_idle_init(&d->ends, on_idle);
        ev_set_priority(&d->ends, EV_MAXPRI);
        d->ends.data = d;
        ev_idle_start(d->loop, &d->ends);
        memory_trim_hold(true);
    }
    s->ending = true;
    TAILQ_INSERT_TAIL(&d->ending, s, ending_link);
}

void session_close(struct session *s)
{
    disconnect(s);
    device_settle(s->device);
    while (free_one(s))
        ;
    finish(s);
}

void session_close_all(struct device *d)
{
    while (!TAILQ_EMPTY(&d->sessions))
        session_close(TAILQ_FIRST(&d->sessions));
}
