// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/memory/mw.h"

#include <errno.h>

#define REMOTE_CHANGE (ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC)
#define WINDOW_ACCESS (REMOTE_CHANGE | ACCESS_REMOTE_READ | ACCESS_ZERO_BASED | ACCESS_FLUSH_GLOBAL)

static uint32_t index_of(const struct key_table *t, const struct mkey *k)
{
    return (uint32_t)(k - t->entry);
}

size_t mw_shape_size(uint32_t max_entries)
{
    return sizeof(struct shape) + max_entries * sizeof(struct layout_entry);
}

int mw_make_layout(struct key_table *t, uint32_t pd, uint8_t type, uint32_t max_entries, void *mem, uint32_t *key)
{
    if (max_entries == 0 || max_entries > LAYOUT_MAX_ENTRIES)
        return -EINVAL;
    int err = mw_make(t, pd, type, key);
    if (err)
        return err;
    struct shape *shape = mem;
    shape->max_entries = max_entries;
    t->entry[*key >> 8].shape = shape;
    return 0;
}

/* Layouts that name the window compare its serial. So they notice that the window has changed. */
static void new_serial(struct mkey *mw)
{
    if (++mw->serial == 0) /* 0 is the serial of regions */
        mw->serial = 1;
}

int mw_make(struct key_table *t, uint32_t pd, uint8_t type, uint32_t *key)
{
    if (pd == 0 || (type != MW_TYPE_1 && type != MW_TYPE_2))
        return -EINVAL;
    uint32_t index = key_take(t, type == MW_TYPE_1 ? KEY_WINDOW_1 : KEY_WINDOW_2);
    if (index == 0)
        return -ENOMEM;
    struct mkey *mw = &t->entry[index];
    mw->init.pd = pd;
    new_serial(mw);
    *key = index << 8 | mw->tag;
    return 0;
}

struct mkey *mw_find(const struct key_table *t, uint32_t key)
{
    struct mkey *k = key_find_index(t, key);
    return k && k->kind != KEY_REGION ? k : NULL;
}

int mw_remove(struct key_table *t, uint32_t key)
{
    struct mkey *mw = mw_find(t, key);
    if (!mw)
        return -ENOENT;
    mw_unbind(t, mw);
    key_release(t, key >> 8);
    return 0;
}

/* --- binding ---------------------------------------------------------------------------------- */

/* A window with a layout pins the regions that it names. It does not pin the inner windows: these may be unbound, and
 * an access that needs one then fails. */
static void unpin_regions(struct key_table *t, const struct layout *l)
{
    for (uint32_t i = 0; i < l->count; i++)
        if (l->entry[i].serial == 0)
            t->entry[l->entry[i].object >> 8].windows--;
}

void mw_unbind(struct key_table *t, struct mkey *mw)
{
    if (mw->mw.region == 0)
        return;
    if (mw->kind == KEY_WINDOW_2)
        list_remove(&mw->mw.of_qp);
    if (mw->depth)
        unpin_regions(t, &mw->shape->layout);
    else
        t->entry[mw->mw.region].windows--;
    mw->mw.region = 0;
    mw->depth = 0;
    new_serial(mw);
}

void mw_unbind_all(struct key_table *t, struct list_node *windows)
{
    while (!list_empty(windows))
        mw_unbind(t, list_entry(windows->next, struct mkey, mw.of_qp));
}

/* May this QP bind this window in this way at all? */
static bool check_window(const struct mw_binder *by, const struct mkey *mw, const struct mw_bind *b)
{
    uint32_t known = WINDOW_ACCESS | (mw->shape ? (uint32_t)ACCESS_LOCAL_WRITE : 0);
    if (mw->init.pd != by->pd || b->access & ~known)
        return false;
    if (mw->kind == KEY_WINDOW_1)
        return b->new_key >> 8 == b->mw_key >> 8 && (b->layout || !(b->access & ACCESS_ZERO_BASED));
    return b->new_key == 0 && mw->mw.region == 0 && (b->layout || b->length != 0);
}

/* Does the region allow the bind? */
static bool check_region(const struct mw_binder *by, const struct mkey *mr, const struct mw_bind *b)
{
    if (!mr || mr->kind != KEY_REGION || mr->init.pd != by->pd || !(mr->init.access & ACCESS_MW_BIND))
        return false;
    if (b->access & (REMOTE_CHANGE | ACCESS_LOCAL_WRITE) && !(mr->init.access & ACCESS_LOCAL_WRITE))
        return false;
    if (b->access & ~mr->init.access & ACCESS_FLUSH_GLOBAL)
        return false;
    uint64_t off = b->addr - mr->init.iova; /* wraps to a huge number if addr is before the start */
    return off <= mr->init.length && b->length <= mr->init.length - off;
}

static struct layout_object object_of(const struct key_table *t, uint32_t key, const struct mkey *mw)
{
    const struct mkey *k = key_find(t, key);
    if (!k)
        return (struct layout_object){.kind = LAYOUT_NO_OBJECT};
    uint32_t may_write = REMOTE_CHANGE | ACCESS_LOCAL_WRITE;
    bool region = k->kind == KEY_REGION, writable = k->init.access & ACCESS_LOCAL_WRITE;
    uint32_t of_region =
        ACCESS_REMOTE_READ | (writable ? may_write : 0) | (k->init.access & (uint32_t)ACCESS_FLUSH_GLOBAL);
    return (struct layout_object){.kind = region ? LAYOUT_MR : LAYOUT_MW,
                                  .depth = k->depth,
                                  .bound = !region && k->mw.region,
                                  .self = k == mw,
                                  .may_bind = k->init.access & ACCESS_MW_BIND,
                                  .pd = k->init.pd,
                                  .grants = region ? of_region : k->init.access,
                                  .start = k->init.iova,
                                  .length = k->init.length};
}

/* Checks all rules for the layout. *depth receives the depth of the new window. */
static enum layout_error check_layout(const struct key_table *t, const struct mw_binder *by, const struct mkey *mw,
                                      const struct mw_bind *b, uint32_t access, uint8_t *depth)
{
    struct layout_limits limits = {.caps = LAYOUT_CAP_ALL,
                                   .max_entries = mw->shape ? mw->shape->max_entries : 0,
                                   .max_dims = LAYOUT_MAX_DIMS,
                                   .max_depth = LAYOUT_MAX_DEPTH};
    enum layout_error err = layout_check(b->layout, &limits, NULL, NULL);
    *depth = 0;
    for (uint32_t i = 0; !err && i < b->layout->count; i++) {
        struct layout_object o = object_of(t, b->layout->entry[i].object, mw);
        err = layout_check_object(&b->layout->entry[i], &o, &limits, by->pd, access, depth);
    }
    return err;
}

static bool bind_layout(struct key_table *t, const struct mw_binder *by, struct mkey *mw, const struct mw_bind *b,
                        uint8_t *cause)
{
    struct layout *l = mw->shape ? &mw->shape->layout : NULL;
    uint32_t access = b->access & ~(uint32_t)ACCESS_ZERO_BASED; /* windows over layouts are always zero-based */
    uint8_t depth;
    *cause = (uint8_t)check_layout(t, by, mw, b, access, &depth);
    if (*cause || !l)
        return false;
    mw_unbind(t, mw);
    layout_bind(l, mw->shape->entry, b->layout);
    for (uint32_t i = 0; i < l->count; i++) {
        struct mkey *k = key_find(t, l->entry[i].object);
        if (k->kind == KEY_REGION)
            k->windows++;
        else
            l->entry[i].serial = k->serial;
    }
    mw->init = (struct mr_init){.pd = mw->init.pd, .length = l->total, .access = access};
    mw->depth = depth;
    mw->mw.region = index_of(t, mw);
    return true;
}

static bool bind_range(struct key_table *t, const struct mw_binder *by, struct mkey *mw, const struct mw_bind *b)
{
    struct mkey *mr = NULL;
    if (b->length) {
        mr = key_find(t, b->mr_key);
        if (!check_region(by, mr, b))
            return false;
    }
    mw_unbind(t, mw);
    if (!mr)
        return true;
    mw->init = (struct mr_init){.pd = mw->init.pd,
                                .space = mr->init.space,
                                .va = mr->init.va + (b->addr - mr->init.iova),
                                .iova = b->access & ACCESS_ZERO_BASED ? 0 : b->addr,
                                .length = b->length,
                                .access = b->access};
    mw->mw.region = index_of(t, mr);
    mr->windows++;
    return true;
}

/* Makes a bound window of type 2B belong to the QP. */
static void bound_by(const struct mw_binder *by, struct mkey *mw)
{
    mw->mw.qpn = by->qpn;
    list_append(by->windows, &mw->mw.of_qp);
}

bool mw_bind(struct key_table *t, const struct mw_binder *by, const struct mw_bind *b, uint8_t *cause)
{
    struct mkey *mw = mw_find(t, b->mw_key);
    *cause = 0;
    if (!mw || !check_window(by, mw, b))
        return false;
    if (!(b->layout ? bind_layout(t, by, mw, b, cause) : bind_range(t, by, mw, b)))
        return false;
    mw->tag = (uint8_t)(mw->kind == KEY_WINDOW_1 ? b->new_key : b->mw_key);
    if (mw->kind == KEY_WINDOW_2)
        bound_by(by, mw);
    return true;
}

struct mkey *mw_find_bound(const struct key_table *t, uint32_t qpn, uint32_t rkey)
{
    struct mkey *mw = key_find(t, rkey);
    return mw && mw->kind == KEY_WINDOW_2 && mw->mw.region && mw->mw.qpn == qpn ? mw : NULL;
}
