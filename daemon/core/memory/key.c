// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/memory/key.h"

#include <errno.h>

/* --- the table -------------------------------------------------------------------------------- */

void key_table_init(struct key_table *t, struct mkey *entries, uint32_t max, const struct permute_secret *secret)
{
    t->entry = entries;
    t->size = max + 1;
    t->untouched = 1;
    t->free = t->free_last = 0;
    t->secret = *secret;
}

/* The tag of an index that was used so often before. */
static uint8_t tag_after(const struct key_table *t, uint32_t index, uint8_t uses)
{
    return (uint8_t)permute(&t->secret, index, 8, uses);
}

struct mkey *key_find_index(const struct key_table *t, uint32_t key)
{
    uint32_t index = key >> 8;
    if (index == 0 || index >= t->untouched || t->entry[index].kind == KEY_NONE)
        return NULL;
    return &t->entry[index];
}

struct mkey *key_find(const struct key_table *t, uint32_t key)
{
    struct mkey *k = key_find_index(t, key);
    return k && k->tag == (key & 0xff) ? k : NULL;
}

uint32_t key_take(struct key_table *t, enum key_kind kind)
{
    uint32_t index = t->free;
    if (index)
        t->free = t->entry[index].next_free;
    else if (t->untouched < t->size)
        index = t->untouched++;
    else
        return 0;
    struct mkey *k = &t->entry[index];
    *k =
        (struct mkey){.tag = tag_after(t, index, k->uses), .uses = k->uses, .serial = k->serial, .kind = (uint8_t)kind};
    return index;
}

void key_release(struct key_table *t, uint32_t index)
{
    struct mkey *k = &t->entry[index];
    k->kind = KEY_NONE;
    /* An old key can match again only after 256 reuses. The users of windows choose tags themselves; the next tag is not
     * the last of these. */
    if (tag_after(t, index, ++k->uses) == k->tag)
        k->uses++;
    k->next_free = 0;
    /* To the end of the list: the longer an index is unused, the later its old keys match again. */
    if (t->free)
        t->entry[t->free_last].next_free = index;
    else
        t->free = index;
    t->free_last = index;
}

/* --- regions ---------------------------------------------------------------------------------- */

static int check_init(const struct mr_init *init)
{
    /* Without ACCESS_FLUSH_PERSISTENT: the engine can't make memory survive a loss of power. */
    uint32_t known = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC |
                     ACCESS_MW_BIND | ACCESS_ZERO_BASED | ACCESS_FLUSH_GLOBAL;
    if (init->pd == 0 || init->access & ~known)
        return -EINVAL;
    /* IBA 10.6.3.1: remote rights that change memory require the local write right. */
    if (init->access & (ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC) && !(init->access & ACCESS_LOCAL_WRITE))
        return -EINVAL;
    if (init->access & ACCESS_ZERO_BASED && init->iova != 0)
        return -EINVAL;
    if (init->va + init->length < init->va || init->iova + init->length < init->iova)
        return -EINVAL;
    return 0;
}

static struct mkey *find_region(const struct key_table *t, uint32_t key)
{
    struct mkey *k = key_find(t, key);
    return k && k->kind == KEY_REGION ? k : NULL;
}

int key_register(struct key_table *t, const struct mr_init *init, uint32_t *key)
{
    int err = check_init(init);
    if (err)
        return err;
    uint32_t index = key_take(t, KEY_REGION);
    if (index == 0)
        return -ENOMEM;
    struct mkey *mr = &t->entry[index];
    mr->init = *init;
    *key = index << 8 | mr->tag;
    return 0;
}

/* Would a window bound to the region open another range or more rights than the region after the change? */
static bool invalidates_windows(const struct mr_init *old, const struct mr_init *new)
{
    const uint32_t needed = ACCESS_LOCAL_WRITE | ACCESS_MW_BIND | ACCESS_FLUSH_GLOBAL;
    if (old->access & ~new->access & needed)
        return true;
    return new->pd != old->pd || new->space != old->space || new->va != old->va || new->iova != old->iova ||
           new->length != old->length;
}

int key_reregister(struct key_table *t, uint32_t key, const struct mr_init *init)
{
    struct mkey *mr = find_region(t, key);
    if (!mr)
        return -ENOENT;
    int err = check_init(init);
    if (err)
        return err;
    if (mr->windows && invalidates_windows(&mr->init, init))
        return -EBUSY;
    mr->init = *init;
    return 0;
}

int key_deregister(struct key_table *t, uint32_t key)
{
    struct mkey *mr = find_region(t, key);
    if (!mr)
        return -ENOENT;
    if (mr->windows)
        return -EBUSY;
    key_release(t, key >> 8);
    return 0;
}

/* --- what keys allow -------------------------------------------------------------------------- */

/* The entry of an rkey that can be used through this QP. */
static const struct mkey *find_remote(const struct key_table *t, uint32_t qpn, uint32_t key)
{
    const struct mkey *k = key_find(t, key);
    if (!k || (k->kind != KEY_REGION && k->mw.region == 0))
        return NULL;
    return k->kind == KEY_WINDOW_2 && k->mw.qpn != qpn ? NULL : k;
}

/* The entry of a key that local requests can use. */
static const struct mkey *find_local(const struct key_table *t, uint32_t key)
{
    const struct mkey *k = key_find(t, key);
    if (!k || k->kind == KEY_REGION)
        return k;
    return k->mw.region && k->init.access & ACCESS_LOCAL_WRITE ? k : NULL;
}

static bool grants(const struct mkey *k, uint32_t pd, uint32_t access)
{
    return k->init.pd == pd && (k->init.access & access) == access;
}

bool key_grants_remote(const struct key_table *t, uint32_t pd, uint32_t qpn, uint32_t key, uint32_t access)
{
    const struct mkey *k = find_remote(t, qpn, key);
    return k && grants(k, pd, access);
}

const struct mkey *key_open(const struct key_table *t, uint32_t pd, bool remote, uint32_t qpn, uint32_t key,
                            uint64_t addr, uint32_t len, uint32_t access)
{
    const struct mkey *k = remote ? find_remote(t, qpn, key) : find_local(t, key);
    if (!k || !grants(k, pd, access))
        return NULL;
    uint64_t off = addr - k->init.iova; /* wraps to a huge number if addr is before the start */
    return off <= k->init.length && len <= k->init.length - off ? k : NULL;
}

const struct mkey *key_object(const struct key_table *t, const struct layout_entry *e)
{
    const struct mkey *k = key_find(t, e->object);
    return k && (k->kind == KEY_REGION || (k->mw.region && k->serial == e->serial)) ? k : NULL;
}
