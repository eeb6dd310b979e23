// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/cm/cm_snapshot.h"

#include <stdlib.h>

#include "daemon/base/slice.h"
#include "daemon/cm/host/ucma_id.h"
#include "daemon/core/cm/cm.h"

struct job {
    struct slice_job job; /* first */
    struct cm_host *host;
    struct user user;
    struct cm_snapshot *snapshot; /* NULL: out of memory */
    size_t room; /* IDs that snapshot->id has room for */
    bool begun, done;
};

static void copy_once(const struct cm_host *h, const struct user *u, struct cm_snapshot *s)
{
    const struct cm_channel *ch;
    const struct cm_failure *f;

    s->taken = clock_ns();
    s->counters = *cm_counters(h->cm);
    TAILQ_FOREACH (ch, &h->channels, link)
        s->num_channels += user_sees(u, ch->owner.uid);
    for (unsigned i = 0; (f = cm_failures_latest(&h->failures, i)) != NULL; i++) {
        if (user_sees(u, f->uid))
            s->failure[s->num_failures++] = *f;
    }
}

static bool reserve(struct job *j)
{
    size_t room = j->room ? 2 * j->room : 64;

    if (j->snapshot->num_ids < j->room)
        return true;
    struct cm_snapshot_id *id = realloc(j->snapshot->id, room * sizeof(*id));
    if (!id)
        return false;
    j->snapshot->id = id;
    j->room = room;
    return true;
}

static void copy_id(struct job *j, const struct ucma_id *id)
{
    struct cm_snapshot_id *v = &j->snapshot->id[j->snapshot->num_ids++];
    const struct ucma_join *g;

    *v = (struct cm_snapshot_id){
        .number = id->number, .uid = id->owner.uid, .pid = id->channel->pid, .requests = id->requests};
    TAILQ_FOREACH (g, &id->joins, link)
        v->groups++;
    cm_id_query(id->cm, &v->info);
}

static void run(struct slice_job *job)
{
    struct job *j = (struct job *)(void *)job;
    struct slice slice = slice_begin();

    if (!j->begun) {
        copy_once(j->host, &j->user, j->snapshot);
        handles_walk_begin(&j->host->ids);
        j->begun = true;
    }
    while (!slice_is_over(&slice)) {
        const struct ucma_id *id = handles_walk_next(&j->host->ids);

        j->done = !id || !reserve(j);
        if (j->done)
            return;
        if (user_sees(&j->user, id->owner.uid))
            copy_id(j, id);
    }
}

static void drop(struct slice_job *job)
{
    struct job *j = (struct job *)(void *)job;

    cm_snapshot_free(j->snapshot);
    free(j);
}

struct cm_snapshot *cm_snapshot_take(struct cm_thread *t, const struct user *u, uint64_t wait_ns)
{
    struct job *j = calloc(1, sizeof(*j));
    struct cm_snapshot *s = calloc(1, sizeof(*s));

    if (!j || !s) {
        free(j);
        free(s);
        return NULL;
    }
    *j = (struct job){.job = {.run = run, .drop = drop}, .host = &t->host, .user = *u, .snapshot = s};
    while (!j->done) {
        if (!cm_thread_slice(t, &j->job, wait_ns))
            return NULL; /* the box drops the job */
    }
    free(j);
    return s;
}

void cm_snapshot_free(struct cm_snapshot *s)
{
    if (s)
        free(s->id);
    free(s);
}
