// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/status/object_list.h"

#include <stdlib.h>

#include "daemon/base/activity.h"

static struct object_list *list_of(struct slice_job *job)
{
    return (struct object_list *)(void *)job;
}

/* False: the slice has an object. */
static bool add_object(void *ctx, const struct session *s, enum walk_table table, void *obj)
{
    struct object_list *l = ctx;

    (void)table;
    l->copied = l->copy(l, s, obj);
    return !l->copied;
}

static void run_slice(struct slice_job *job)
{
    struct slice slice = slice_begin();
    struct object_list *l = list_of(job);

    activity_begin(&l->device->activity, l->request, 0, 0);
    l->ended = object_walk_slice(&l->walk, l->device, &slice);
    activity_done(&l->device->activity);
}

static void free_job(struct slice_job *job)
{
    json_decref(list_of(job)->list);
    free(job);
}

json_t *object_list_collect(struct object_list *l, struct device *d, const struct user *u, bool *answers)
{
    *answers = false;
    if (!l)
        return json_array();
    l->job.run = run_slice;
    l->job.drop = free_job;
    l->device = d;
    l->walk = (struct object_walk){.on_object = add_object, .ctx = l, .user = *u, .tables = 1u << l->table};
    l->list = json_array();
    while (!l->ended) {
        l->copied = false;
        if (!device_slice(d, &l->job, WALK_WAIT_NS))
            return json_array(); /* the device's thread drops the job */
        if (l->copied)
            json_array_append_new(l->list, l->as_json(l));
        object_walk_pause(&l->walk);
    }
    json_t *list = json_incref(l->list);
    free_job(&l->job);
    *answers = true;
    return list;
}
