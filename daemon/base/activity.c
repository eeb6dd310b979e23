// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/base/activity.h"

#include <sys/eventfd.h>

void activity_watch_wake(struct activity_watch *w)
{
    if (atomic_exchange(&w->state, ACTIVITY_WATCHED) == ACTIVITY_UNWATCHED)
        eventfd_write(w->fd, 1);
}
