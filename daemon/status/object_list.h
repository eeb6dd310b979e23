// SPDX-License-Identifier: BSD-2-Clause
/* Makes a JSON list of a device's objects that have many values each, such as matching lists. Each slice of a walk copies
 * the values of one object, in the device's thread. The thread that asks makes JSON of them, between the slices. */
#ifndef PUMICE_DAEMON_STATUS_OBJECT_LIST_H
#define PUMICE_DAEMON_STATUS_OBJECT_LIST_H

#include <jansson.h>
#include <stdbool.h>

#include "daemon/status/object_walk.h"

/* The first member of a request for such a list. The caller allocates the request with calloc. */
struct object_list {
    struct slice_job job; /* first */
    /* Set by the caller. */
    const char *request; /* its name, for the watchdog */
    enum walk_table table; /* of the objects */
    /* Copies an object into the request, in the device's thread. False: the list leaves the object out. */
    bool (*copy)(struct object_list *l, const struct session *s, const void *obj);
    json_t *(*as_json)(const struct object_list *l); /* the object that was copied last, as a new reference */

    /* For this module. */
    struct device *device;
    struct object_walk walk;
    json_t *list;
    bool ended;
    bool copied; /* the slice has an object */
};

/* Returns the JSON of the objects that the user may see, as a new reference. *answers: the device's thread answered.
 * Otherwise the list is empty. Takes l, which may be NULL: then the device does not answer. The caller has
 * object_walk_lock. */
json_t *object_list_collect(struct object_list *l, struct device *d, const struct user *u, bool *answers);

#endif
