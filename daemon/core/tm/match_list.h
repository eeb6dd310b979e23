// SPDX-License-Identifier: BSD-2-Clause
/* The matching list. Active entries are a prefix of it, so one number tells them from the pending ones, and activating all costs
 * nothing. The first entry that matches is found by one hash lookup per distinct mask: entries without wildcards share the mask of
 * all ones, and programs use a handful of others. */
#ifndef PUMICE_CORE_TM_MATCH_LIST_H
#define PUMICE_CORE_TM_MATCH_LIST_H

#include "daemon/core/tm/types.h"

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

#endif
