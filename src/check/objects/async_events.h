// SPDX-License-Identifier: BSD-2-Clause
/* Asynchronous events that the program has taken and not acknowledged yet. Under the lock of records.h. */
#ifndef PUMICE_SRC_CHECK_OBJECTS_ASYNC_EVENTS_H
#define PUMICE_SRC_CHECK_OBJECTS_ASYNC_EVENTS_H

#include <infiniband/verbs.h>

#include "src/check/base/trace.h"

void async_events_taken(const struct ibv_async_event *event, const struct trace *where);
void async_events_acknowledged(const struct ibv_async_event *event);

/* Those of a queue pair, CQ or SRQ. NULL: all. Returns how many. *where: the place that took the first one. */
unsigned async_events_open(const void *object, const struct trace **where);

/* This process is a new child: the events are its parent's. */
void async_events_forked(void);

#endif
