// SPDX-License-Identifier: BSD-2-Clause
/* What memory windows show, for people who look: the pieces are those that a request would get, by the same code. */
#ifndef PUMICE_CORE_CONTROL_MW_INSPECT_H
#define PUMICE_CORE_CONTROL_MW_INSPECT_H

#include "daemon/core/memory/layout.h"

struct engine;

struct mw_view {
    uint32_t key; /* its present one */
    uint32_t pd;
    uint8_t type; /* enum mw_type */
    bool bound; /* if not, nothing below counts */
    uint32_t qpn; /* type 2: the QP that it is bound to; else 0 */
    uint32_t access; /* enum access_flags */
    uint64_t start; /* its first address */
    uint64_t length; /* bytes */
    uint8_t depth; /* of layouts, its own included */
    uint32_t region; /* depth 0: the key of the region beneath */
    const struct layout
        *layout; /* NULL: depth 0. Valid until the window is bound, unbound or freed; objects are keys */
};
/* The window of a key, whatever its tag is; false: there is none. */
bool mw_view(const struct engine *e, uint32_t key, struct mw_view *out);

enum mw_object { /* what a key in a layout names */
                 MW_OBJECT_GONE, /* nothing, or no more what it was when the layout was bound */
                 MW_OBJECT_REGION,
                 MW_OBJECT_WINDOW
};
enum mw_object mw_object(const struct engine *e, const struct layout_entry *entry);

/* A range of the program's memory. Those that adjoin and come by the same entries are one. */
struct mw_segment {
    uint64_t va, len;
    uint32_t object; /* the key of the region, or of the window without layout, that it lies in */
    uint32_t depth; /* numbers in path; 0: the window has no layout */
    uint32_t path[LAYOUT_MAX_DEPTH]; /* its entry in the window, that one's in the window which it names, and so on */
};
enum mw_explained {
    MW_EXPLAINED, /* all of it */
    MW_MORE, /* the array is full, or it takes too long */
    MW_REFUSED, /* the byte after those is not of the window, or of an object that is no more what it was */
};
/* Where [off, off + len) of the window's addresses is: fills out[max] in order, and *n. */
enum mw_explained mw_explain(const struct engine *e, uint32_t key, uint64_t off, uint64_t len, struct mw_segment *out,
                             unsigned max, unsigned *n);

#endif
