// SPDX-License-Identifier: BSD-2-Clause
/* Shows tag matching to people: the trace of events, the listed entries, the counters, and the names of all values. */
#ifndef PUMICE_DAEMON_CORE_TM_TRACE_H
#define PUMICE_DAEMON_CORE_TM_TRACE_H

#include "daemon/core/tm/types.h"

/* Adds an event. Fills in its time and the state of synchronization. */
void tm_trace_add(struct tag_list *tm, struct tm_event ev, uint64_t now);

/* Events are numbered from 0. Returns the number of the next event. */
uint64_t tm_trace_end(const struct tag_list *tm);
/* Returns event number n. False: the event is too old, or has not happened yet. */
bool tm_trace_get(const struct tag_list *tm, uint64_t n, struct tm_event *ev);

/* Iterates over the listed entries in the order of posting: returns the one after e, or the first if e is NULL. NULL:
 * no more. */
const struct tm_entry *tm_next_entry(const struct tag_list *tm, const struct tm_entry *e);
/* Is this listed entry active, so that it can match messages? */
bool tm_is_active(const struct tag_list *tm, const struct tm_entry *e);
void tm_info(const struct tag_list *tm, struct tm_info *info);

/* Static strings; "?" for unknown values. */
const char *tm_event_name(uint8_t type);
const char *tm_kind_name(uint8_t kind);
const char *tm_reason_name(uint8_t why);
const char *tm_reason_text(uint8_t why);

#endif
