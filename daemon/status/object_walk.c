// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/status/object_walk.h"

#include <pthread.h>

#include "daemon/base/activity.h"
#include "daemon/session/session.h"

static pthread_mutex_t one_walk = PTHREAD_MUTEX_INITIALIZER;

static _Thread_local struct {
    void (*fn)(void *ctx);
    void *ctx;
    bool now; /* the thread is in a pause */
} in_pause;

void object_walk_lock(void)
{
    if (!in_pause.now)
        pthread_mutex_lock(&one_walk);
}

void object_walk_unlock(void)
{
    if (!in_pause.now)
        pthread_mutex_unlock(&one_walk);
}

void object_walk_set_pause(void (*fn)(void *ctx), void *ctx)
{
    in_pause.fn = fn;
    in_pause.ctx = ctx;
}

void object_walk_pause(const struct object_walk *w)
{
    if (!in_pause.fn || in_pause.now || w->user.administers)
        return;
    in_pause.now = true;
    in_pause.fn(in_pause.ctx);
    in_pause.now = false;
}

bool object_walk_is_hopeless(const struct device *d)
{
    uint64_t since = activity_read(&d->activity).since, now = clock_ns();

    return d->running && since && since < now && now - since > WALK_WAIT_NS;
}

/* The session with this number, or else the next one. */
static struct session *session_from(struct device *d, uint32_t number)
{
    struct session *s;

    TAILQ_FOREACH (s, &d->sessions, link) {
        if (s->number >= number)
            return s;
    }
    return NULL;
}

static struct handles *table_of(struct session *s, enum walk_table table)
{
    struct handles *const tables[WALK_TABLES] = {
        [WALK_PDS] = &s->pds,
        [WALK_QPS] = &s->qps,
        [WALK_SRQS] = &s->srqs,
        [WALK_CQS] = &s->cqs,
        [WALK_COMP_CNTRS] = &s->comp_cntrs,
        [WALK_MRS] = &s->mrs,
        [WALK_MWS] = &s->mws,
        [WALK_XRCDS] = &s->xrcds,
    };

    return tables[table];
}

/* Begins with the next wanted table from w->table on. False: there is none in this session. */
static bool begin_table(struct object_walk *w, struct session *s)
{
    while (w->table < WALK_TABLES && !(w->tables & 1u << w->table))
        w->table++;
    if (w->table == WALK_TABLES)
        return false;
    handles_walk_begin(table_of(s, w->table));
    return true;
}

static void enter(struct object_walk *w, struct session *s)
{
    w->session = s->number;
    w->table = 0;
    w->inside = true;
    if (w->on_session)
        w->on_session(w->ctx, s);
    begin_table(w, s);
}

bool object_walk_slice(struct object_walk *w, struct device *d, const struct slice *slice)
{
    struct session *s = session_from(d, w->inside ? w->session : w->session + 1);

    for (; s; s = TAILQ_NEXT(s, link)) {
        if (!user_sees(&w->user, s->cred.uid))
            continue;
        if (!w->inside || s->number != w->session)
            enter(w, s); /* also if the session where the walk was has ended */
        while (w->table < WALK_TABLES) {
            void *obj = handles_walk_next(table_of(s, w->table));

            if (!obj) {
                w->table++;
                begin_table(w, s);
                continue;
            }
            if (!w->on_object(w->ctx, s, w->table, obj) || slice_is_over(slice))
                return false;
        }
        w->inside = false;
        if (slice_is_over(slice))
            return false;
    }
    return true;
}
