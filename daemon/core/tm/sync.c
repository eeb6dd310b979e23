// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/tm/sync.h"

#include "daemon/core/tm/state.h"
#include "daemon/core/tm/trace.h"

void tm_settle(struct tag_list *tm, uint64_t now)
{
    tm->version++;
    if (!tm_in_sync(tm) || tm->list.pending == 0)
        return;
    uint32_t n = tm_list_activate(&tm->list);
    tm->counters.activations++;
    tm_trace_add(tm, (struct tm_event){.type = TM_EV_ACTIVATE, .handle = TM_NO_HANDLE, .entries = n}, now);
}
