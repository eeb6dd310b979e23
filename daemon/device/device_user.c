// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/device/device_user.h"

#include <stdlib.h>

#include "daemon/core/engine.h"

struct device_user *device_user_get(struct device_user_list *users, struct engine *e, uid_t uid)
{
    struct device_user *u;

    LIST_FOREACH (u, users, link) {
        if (u->uid == uid)
            break;
    }
    if (!u) {
        u = calloc(1, sizeof(*u));
        if (!u)
            return NULL;
        u->uid = uid;
        engine_share_init(e, &u->share);
        LIST_INSERT_HEAD(users, u, link);
    }
    u->holders++;
    return u;
}

void device_user_put(struct device_user *u)
{
    if (!u || --u->holders)
        return;
    LIST_REMOVE(u, link);
    free(u);
}
