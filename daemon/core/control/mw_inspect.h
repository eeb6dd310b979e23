// SPDX-License-Identifier: BSD-2-Clause
/* Describes memory windows for people: what a window is bound to, and where its bytes lie in memory. The same code
 * finds the memory of requests, so both always agree. */
#ifndef PUMICE_DAEMON_CORE_CONTROL_MW_INSPECT_H
#define PUMICE_DAEMON_CORE_CONTROL_MW_INSPECT_H

#include "daemon/core/memory/layout.h"

struct engine;

struct mw_view {
    uint32_t key; /* the current key */
    uint32_t pd;
    uint8_t type; /* enum mw_type */
    bool bound; /* if false, the following fields are not valid */
    uint32_t qpn; /* type 2: the QP that it is bound to; else 0 */
    uint32_t access; /* enum access_flags */
    uint64_t start; /* address of its first byte */
    uint64_t length; /* bytes */
    uint8_t depth; /* nested layouts, its own included */
    uint32_t region; /* depth 0: the key of the region that it is bound to */
    /* NULL: depth 0. Valid until the window is bound, unbound or freed. Its objects are keys. */
    const struct layout *layout;
};
/* Describes the window of a key's index, whatever the tag is. False: there is none. */
bool mw_view(const struct engine *e, uint32_t key, struct mw_view *out);

/* The kind of object that a key in a layout names. */
enum mw_object {
    MW_OBJECT_GONE, /* the object does not exist, or has changed since the layout was bound */
    MW_OBJECT_REGION,
    MW_OBJECT_WINDOW
};
enum mw_object mw_object(const struct engine *e, const struct layout_entry *entry);

/* A range of the program's memory. Adjacent ranges with the same path are joined. */
struct mw_segment {
    uint64_t va, len;
    /* Key of the region, or of the window without a layout, that the range lies in. */
    uint32_t object;
    uint32_t depth; /* length of path; 0: the window has no layout */
    /* The entry in the window, then the entry in the inner window that it names, and so on. */
    uint32_t path[LAYOUT_MAX_DEPTH];
};
enum mw_explained {
    MW_EXPLAINED, /* the whole range */
    MW_MORE, /* the array is full, or it takes too long */
    /* The next byte is outside the window, or in an object that has changed. */
    MW_REFUSED,
};
/* Finds the memory of [off, off + len) of the window's addresses. Fills out[max] in order, and *n. */
enum mw_explained mw_explain(const struct engine *e, uint32_t key, uint64_t off, uint64_t len, struct mw_segment *out,
                             unsigned max, unsigned *n);

#endif
