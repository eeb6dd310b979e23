// SPDX-License-Identifier: BSD-2-Clause
/* Memory keys (lkeys and rkeys): the table of memory regions and memory windows, and the check whether a key allows an
 * access. A key is an index (24 bits) and a tag (8 bits). The tag changes whenever the index is used again, so that the
 * engine recognizes a stale key. With a secret, nobody can tell the tag from the index or from earlier tags. A bound window is described in the same terms as a region, so that the same code
 * checks both. Binding is in mw.c. */
#ifndef PUMICE_DAEMON_CORE_MEMORY_KEY_H
#define PUMICE_DAEMON_CORE_MEMORY_KEY_H

#include "daemon/core/base/list.h"
#include "daemon/core/base/permute.h"
#include "daemon/core/base/types.h"
#include "daemon/core/memory/layout.h"

enum key_kind {
    KEY_NONE, /* a free entry */
    KEY_REGION,
    KEY_WINDOW_1, /* memory window of type 1 */
    KEY_WINDOW_2, /* of type 2B */
};
/* The part of a window that may be bound to a layout: memory of the engine's owner, see mw_alloc_layout. */
struct shape {
    uint32_t max_entries;
    struct layout layout; /* valid if the window is bound to one */
    struct layout_entry entry[]; /* [max_entries]; object is a key, serial is that of the window that the key names */
};
struct mkey {
    struct mr_init init; /* region: as registered; window: its pd, and while it is bound, the memory that it opens */
    union {
        uint32_t next_free; /* KEY_NONE: index of the next free entry; 0: end of the list */
        uint32_t windows; /* KEY_REGION: number of memory windows bound to it */
        struct {
            /* Index of the region that the window is bound to, or its own index if it is bound to a layout; 0: not
             * bound. */
            uint32_t region;
            uint32_t qpn; /* type 2B, bound: only the QP of this number may use it */
            struct list_node of_qp; /* type 2B, bound: in mw_binder.windows */
        } mw;
    };
    struct shape *shape; /* NULL: a region, or a window that can't be bound to a layout */
    uint32_t serial; /* windows: changes with each unbind, also before another bind; regions: not used */
    uint8_t depth; /* nested layouts, its own included; 0: the memory is contiguous */
    uint8_t tag;
    uint8_t uses; /* how often the index was used before, mod 256; the tag that it gets follows from it */
    uint8_t kind; /* enum key_kind */
};
struct key_table {
    /* [size]. Index 0 is never used, so no key is 0. */
    struct mkey *entry;
    uint32_t size;
    uint32_t untouched; /* entries from this index on were never used */
    uint32_t free; /* first index of the free list; 0: the list is empty */
    uint32_t free_last; /* last index of the free list, if it is not empty */
    struct permute_secret secret; /* of the order of tags */
};

/* entries: max + 1 zeroed entries. secret: see engine_config.number_secret. */
void key_table_init(struct key_table *t, struct mkey *entries, uint32_t max, const struct permute_secret *secret);

/* Registration of regions. See mr_register, mr_reregister and mr_deregister in control/keys.h. */
int key_register(struct key_table *t, const struct mr_init *init, uint32_t *key);
int key_reregister(struct key_table *t, uint32_t key, const struct mr_init *init);
int key_deregister(struct key_table *t, uint32_t key);

/* Takes a free entry and gives it this kind. Gives it its next tag, and zeroes all other fields except uses and serial. Returns the index of the entry;
 * 0: no entry is free. */
uint32_t key_take(struct key_table *t, enum key_kind kind);
/* Frees an entry. Its keys are stale from now on. */
void key_release(struct key_table *t, uint32_t index);
/* The entry of a key, if the key's tag is right; NULL: there is none. */
struct mkey *key_find(const struct key_table *t, uint32_t key);
/* The entry of a key, whatever the key's tag is; NULL: there is none. */
struct mkey *key_find_index(const struct key_table *t, uint32_t key);
/* The present key of an entry. */
static inline uint32_t key_of(const struct key_table *t, const struct mkey *k)
{
    return (uint32_t)(k - t->entry) << 8 | k->tag;
}

/* Returns the region or window of a key, for a user of protection domain pd. NULL: the key does not give all of
 * `access` (enum access_flags; 0: local read) to [addr, addr + len).
 *   lkey             a region, or a window that was bound with local write access
 *   rkey (remote)    any region or bound window. A window of type 2B must be bound to QP qpn, which received the request.
 *                    qpn 0: no window of type 2B is allowed, as over XRC.
 * sge_iter.h finds the memory itself. */
const struct mkey *key_open(const struct key_table *t, uint32_t pd, bool remote, uint32_t qpn, uint32_t key,
                            uint64_t addr, uint32_t len, uint32_t access);
/* The object that an entry of a layout names; NULL: the object has changed since the layout was bound. */
const struct mkey *key_object(const struct key_table *t, const struct layout_entry *e);
/* True if an rkey gives `access` to the region or window that it names. */
bool key_grants_remote(const struct key_table *t, uint32_t pd, uint32_t qpn, uint32_t key, uint32_t access);

#endif
