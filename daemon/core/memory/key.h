// SPDX-License-Identifier: BSD-2-Clause
/* Memory keys: what an lkey or rkey lets its holder touch. A key is an index (24 bits) and a tag (8 bits) that changes
 * whenever the index is used again, so that a stale key is recognised. Regions and memory windows share the table;
 * what a bound window opens is written down in the same terms as a region, so that both are checked by the same
 * lines. Binding is in mw.c. */
#ifndef PUMICE_CORE_KEY_H
#define PUMICE_CORE_KEY_H

#include "daemon/core/engine.h"
#include "daemon/core/memory/layout.h"

enum key_kind {
    KEY_NONE, /* the entry is free */
    KEY_REGION,
    KEY_WINDOW_1, /* memory window of type 1 */
    KEY_WINDOW_2, /* of type 2B */
};
/* What a window has that may be bound to a layout: memory of the engine's owner, see mw_alloc_layout. */
struct shape {
    uint32_t max_entries;
    struct layout layout; /* if the window is bound to one */
    struct layout_entry entry[]; /* [max_entries]; object is a key, serial that of the window it names */
};
struct mkey {
    struct mr_init init; /* region: as registered; window: its pd, and while it is bound what it opens */
    union {
        uint32_t next_free; /* KEY_NONE: index; 0: end of the list */
        uint32_t windows; /* KEY_REGION: memory windows bound to it */
        struct {
            uint32_t
                region; /* index of the region that the window is bound to, its own if to a layout; 0: it is not bound */
            uint32_t qpn; /* type 2B, bound: the QP through which alone it can be used */
            uint32_t prev, next; /* type 2B, bound: indexes of the others of that QP; 0: none */
        } mw;
    };
    struct shape *shape; /* NULL: a region, or a window that is never bound to a layout */
    uint32_t serial; /* windows: changes whenever it is bound or unbound */
    uint8_t depth; /* of layouts below and including it: 0: it is contiguous */
    uint8_t tag;
    uint8_t kind; /* enum key_kind */
};
struct key_table {
    struct mkey *entry; /* [size], index 0 is never used, so that no key is 0 */
    uint32_t size;
    uint32_t untouched; /* indexes from here on were never used */
    uint32_t free; /* first of the free list; 0: empty */
    uint32_t free_last; /* its last one, if it is not empty */
};

/* entries: max + 1 zeroed ones. */
void key_table_init(struct key_table *t, struct mkey *entries, uint32_t max);

/* A free entry, which becomes one of this kind, with all else but its tag zeroed; returns its index, 0: there is
 * none. */
uint32_t key_take(struct key_table *t, enum key_kind kind);
/* Frees an entry; its keys are stale from now on. */
void key_release(struct key_table *t, uint32_t index);
/* The entry of a key, if its tag is right; NULL: there is none. */
struct mkey *key_find(const struct key_table *t, uint32_t key);
/* Likewise, whatever the tag of the key is. */
struct mkey *key_find_index(const struct key_table *t, uint32_t key);

/* The region or window that a key opens, for users of protection domain pd, if it gives all of `access` (enum access_flags; 0:
 * reading locally) to [addr, addr + len); NULL: it does not. An lkey may be that of a region, or of a window that was bound with
 * the right to write locally. An rkey (`remote`) may be of any region or bound window; a window of type 2B must be bound to
 * the QP numbered qpn, at which the request came in (0: it can't be, as over XRC).
 * Where the memory is, pieces.h says. */
const struct mkey *key_open(const struct key_table *t, uint32_t pd, bool remote, uint32_t qpn, uint32_t key,
                            uint64_t addr, uint32_t len, uint32_t access);
/* The object that an entry of a layout names; NULL: it is not what it was when the layout was bound. */
const struct mkey *key_object(const struct key_table *t, const struct layout_entry *e);
/* Whether such an rkey gives `access` to whatever it opens. */
bool key_grants_remote(const struct key_table *t, uint32_t pd, uint32_t qpn, uint32_t key, uint32_t access);

#endif
