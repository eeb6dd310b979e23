// SPDX-License-Identifier: BSD-2-Clause
/* The entries of a matching list, in the order of posting, and the search for the first entry that matches a tag. The
 * active entries are a prefix of the list. So one number separates them from the pending ones, and activating all
 * entries costs nothing. One hash lookup for each distinct mask finds the first matching entry. Entries without
 * wildcards share the mask of all ones, and programs use only a few other masks. */
#ifndef PUMICE_DAEMON_CORE_TM_MATCH_LIST_H
#define PUMICE_DAEMON_CORE_TM_MATCH_LIST_H

#include "daemon/core/tm/types.h"

/* All listed entries with one mask. A message is looked up once for each mask. So the cost of a lookup grows with the
 * number of different masks, not with the length of the list. */
struct mask_class {
    struct list_node link; /* in tm_list.classes or .free_classes */
    uint64_t mask;
    uint32_t count; /* number of entries */
};

struct tm_list {
    struct list_node order; /* all listed entries */
    /* Listed entries that have tag bits outside of their mask, linked by tm_entry.chain. They never match. */
    struct list_node never;
    struct list_node classes, free_classes;
    /* Chains of entries by hash of tag and mask, each in the order of posting. */
    struct list_node *buckets;
    uint32_t bucket_mask;
    uint32_t num_classes;
    uint64_t next_seq;
    uint64_t active_end; /* entries with a lower seq are active */
    uint32_t active, pending; /* numbers of entries */
};

/* n: number of classes, at least as many as the list can have entries. num_buckets: a power of two. */
void tm_list_init(struct tm_list *l, struct list_node *buckets, uint32_t num_buckets, struct mask_class *classes,
                  uint32_t n);
/* The caller sets tag and mask. The list sets seq. */
void tm_list_append(struct tm_list *l, struct tm_entry *e, bool active);
void tm_list_remove(struct tm_list *l, struct tm_entry *e);
/* Makes all pending entries active, and returns their number. */
uint32_t tm_list_activate(struct tm_list *l);
/* Is a listed entry active, so that it can match messages? */
bool tm_list_active(const struct tm_list *l, const struct tm_entry *e);
/* Returns the first matching entry in the order of posting, active or not. NULL: none. Adds the number of comparisons
 * to *depth. */
struct tm_entry *tm_list_find(const struct tm_list *l, uint64_t tag, uint32_t *depth);
/* Returns an entry that has the tag under its mask but has tag bits outside of the mask, so that it never matches.
 * NULL: none was found. */
struct tm_entry *tm_list_find_never(const struct tm_list *l, uint64_t tag);

#endif
