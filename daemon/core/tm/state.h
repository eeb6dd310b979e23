// SPDX-License-Identifier: BSD-2-Clause
/* The state of a tag list, which the modules of this folder share. */
#ifndef PUMICE_DAEMON_CORE_TM_STATE_H
#define PUMICE_DAEMON_CORE_TM_STATE_H

#include "daemon/core/tm/match_list.h"

struct tag_list {
    struct tm_params params;
    const struct tm_profile *profile;
    struct tm_list list;
    struct tm_entry *entries; /* [max_num_tags], by slot */
    uint16_t hw_cnt, sw_cnt; /* tag_list.h explains both, and inflight */
    uint32_t inflight;
    uint32_t consumed; /* entries in state TM_CONSUMED */
    /* Number of untagged buffers posted so far, as far as min_buffers needs it. */
    uint64_t buffers;
    uint64_t version; /* changes whenever a decision could change */
    struct tm_counters counters;
    struct tm_event *trace; /* a ring */
    uint64_t trace_end;
    uint64_t now; /* the latest known time */
};

/* Has the program reported all unexpected messages, and is none arriving? */
static inline bool tm_in_sync(const struct tag_list *tm)
{
    return tm->hw_cnt == tm->sw_cnt && tm->inflight == 0;
}

#endif
