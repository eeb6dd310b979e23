// SPDX-License-Identifier: BSD-2-Clause
/* What the modules of tag matching share:
 *   tm.c        life, operations, the state of synchronization
 *   tm_list.c   the matching list: append, remove, find
 *   tm_match.c  decisions on messages
 *   tm_trace.c  events, counters, names */
#ifndef PUMICE_CORE_TM_PRIV_H
#define PUMICE_CORE_TM_PRIV_H

#include "daemon/core/tm/tag_list.h"

/* All listed entries with one mask. A message is looked up once per mask, so what a lookup costs grows with the number
 * of different masks, not with the length of the list. */
struct mask_class {
    struct list_node link; /* in tm_list.classes or .free_classes */
    uint64_t mask;
    uint32_t count; /* entries */
};

struct tm_list {
    struct list_node order; /* all listed entries */
    struct list_node
        never; /* of them, by their chain: those with tag bits outside of the mask, which nothing matches */
    struct list_node classes, free_classes;
    struct list_node *buckets; /* chains of entries by hash of tag and mask, each in the order of posting */
    uint32_t bucket_mask;
    uint32_t num_classes;
    uint64_t next_seq;
    uint64_t active_end; /* entries with a seq below are active */
    uint32_t active, pending; /* how many */
};

struct tag_list {
    struct tm_params params;
    const struct tm_profile *profile;
    struct tm_list list;
    struct tm_entry *entries; /* by slot */
    uint16_t hw_cnt, sw_cnt;
    uint32_t inflight;
    uint32_t consumed;
    uint64_t buffers; /* untagged ones that were ever posted, as far as min_buffers matters */
    uint64_t version; /* changes with all that a decision depends on */
    struct tm_counters counters;
    struct tm_event *trace; /* ring */
    uint64_t trace_end;
    uint64_t now; /* the latest that was told */
};

/* --- tm.c -------------------------------------------------------------------------------------------------------- */

bool tm_in_sync(const struct tag_list *tm);
/* To be called after any change of hw_cnt, sw_cnt or inflight. */
void tm_settle(struct tag_list *tm, uint64_t now);

/* --- tm_list.c --------------------------------------------------------------------------------------------------- */

void tm_list_init(struct tm_list *l, struct list_node *buckets, uint32_t num_buckets, struct mask_class *classes,
                  uint32_t n);
/* tag and mask are set; the list fills in seq. */
void tm_list_append(struct tm_list *l, struct tm_entry *e, bool active);
void tm_list_remove(struct tm_list *l, struct tm_entry *e);
/* All pending entries become active; returns how many there were. */
uint32_t tm_list_activate(struct tm_list *l);
bool tm_list_active(const struct tm_list *l, const struct tm_entry *e);
/* The first entry in the order of posting, active or not, that matches; NULL: none. *depth grows by the comparisons. */
struct tm_entry *tm_list_find(const struct tm_list *l, uint64_t tag, uint32_t *depth);
/* An entry that has the tag under its mask, and tag bits outside of it, so that it never matches; NULL: none was found. */
struct tm_entry *tm_list_find_never(const struct tm_list *l, uint64_t tag);

/* --- tm_trace.c -------------------------------------------------------------------------------------------------- */

/* Fills in time and the state of synchronization. */
void tm_trace_add(struct tag_list *tm, struct tm_event ev, uint64_t now);

#endif
