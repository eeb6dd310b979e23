// SPDX-License-Identifier: BSD-2-Clause
/* Makes the pending entries of a matching list active when the list is in sync with the program again. tag_list.h
 * describes the rule. */
#ifndef PUMICE_DAEMON_CORE_TM_SYNC_H
#define PUMICE_DAEMON_CORE_TM_SYNC_H

#include "daemon/core/tm/types.h"

/* To be called after any change of hw_cnt, sw_cnt or inflight. If the list is in sync, all pending entries become
 * active. */
void tm_settle(struct tag_list *tm, uint64_t now);

#endif
