// SPDX-License-Identifier: BSD-2-Clause
/* A window of type 2B hangs on a list of its QP while it is bound, so that it does not outlive the QP and is not
 * inherited by another one of the same number. */
#include "daemon/core/memory/mw.h"

#include <errno.h>

#include "daemon/core/engine_priv.h"

#define REMOTE_CHANGE (ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC)
#define WINDOW_ACCESS (REMOTE_CHANGE | ACCESS_REMOTE_READ | ACCESS_ZERO_BASED | ACCESS_FLUSH_GLOBAL)

static uint32_t index_of(const struct engine *e, const struct mkey *k)
{
    return (uint32_t)(k - e->keys.entry);
}

size_t mw_layout_size(uint32_t max_entries)
{
    return sizeof(struct shape) + max_entries * sizeof(struct layout_entry);
}

int mw_alloc_layout(struct engine *e, uint32_t pd, uint8_t type, uint32_t max_entries, void *mem, uint32_t *key)
{
    if (max_entries == 0 || max_entries > LAYOUT_MAX_ENTRIES)
        return -EINVAL;
    int err = mw_alloc(e, pd, type, key);
    if (err)
        return err;
    struct shape *shape = mem;
    shape->max_entries = max_entries;
    e->keys.entry[*key >> 8].shape = shape;
    return 0;
}

/* Whoever remembers the window as it was will see that it is not the same any more. */
static void new_serial(struct mkey *mw)
{
    if (++mw->serial == 0) /* that of regions */
        mw->serial = 1;
}

int mw_alloc(struct engine *e, uint32_t pd, uint8_t type, uint32_t *key)
{
    if (pd == 0 || (type != MW_TYPE_1 && type != MW_TYPE_2))
        return -EINVAL;
    uint32_t index = key_take(&e->keys, type == MW_TYPE_1 ? KEY_WINDOW_1 : KEY_WINDOW_2);
    if (index == 0)
        return -ENOMEM;
    struct mkey *mw = &e->keys.entry[index];
    mw->init.pd = pd;
    new_serial(mw);
    *key = index << 8 | mw->tag;
    return 0;
}

/* The window of a key, whatever its tag is. */
static struct mkey *find_window(const struct engine *e, uint32_t key)
{
    struct mkey *k = key_find_index(&e->keys, key);
    return k && k->kind != KEY_REGION ? k : NULL;
}

int mw_dealloc(struct engine *e, uint32_t key)
{
    struct mkey *mw = find_window(e, key);
    if (!mw)
        return -ENOENT;
    mw_unbind(e, mw);
    key_release(&e->keys, key >> 8);
    return 0;
}

/* --- the list of a QP --------------------------------------------------------------------------------------------------- */

static void add_to_qp(struct qp *qp, struct mkey *mw)
{
    struct mkey *entry = qp->e->keys.entry;
    mw->mw.qpn = qp->qpn;
    mw->mw.prev = 0;
    mw->mw.next = qp->windows;
    if (qp->windows)
        entry[qp->windows].mw.prev = index_of(qp->e, mw);
    qp->windows = index_of(qp->e, mw);
}

static void remove_from_qp(struct engine *e, struct mkey *mw)
{
    struct mkey *entry = e->keys.entry;
    if (mw->mw.next)
        entry[mw->mw.next].mw.prev = mw->mw.prev;
    if (mw->mw.prev)
        entry[mw->mw.prev].mw.next = mw->mw.next;
    else
        qp_find(e, mw->mw.qpn)->windows = mw->mw.next; /* it exists: it has no windows any more before it goes */
}

/* --- binding ------------------------------------------------------------------------------------------------------------ */

/* A window with a layout pins the regions that it names, not the windows: those may go, and are missed when they are needed. */
static void unpin_regions(struct engine *e, const struct layout *l)
{
    for (uint32_t i = 0; i < l->count; i++)
        if (l->entry[i].serial == 0)
            e->keys.entry[l->entry[i].object >> 8].windows--;
}

void mw_unbind(struct engine *e, struct mkey *mw)
{
    if (mw->mw.region == 0)
        return;
    if (mw->kind == KEY_WINDOW_2)
        remove_from_qp(e, mw);
    if (mw->depth)
        unpin_regions(e, &mw->shape->layout);
    else
        e->keys.entry[mw->mw.region].windows--;
    mw->mw.region = 0;
    mw->depth = 0;
    new_serial(mw);
}

void mw_forget_qp(struct qp *qp)
{
    while (qp->windows)
        mw_unbind(qp->e, &qp->e->keys.entry[qp->windows]);
}

/* May this QP bind this window like that at all? */
static bool check_window(const struct qp *qp, const struct mkey *mw, const struct mw_bind *b)
{
    uint32_t known = WINDOW_ACCESS | (mw->shape ? (uint32_t)ACCESS_LOCAL_WRITE : 0);
    if (mw->init.pd != qp->pd || b->access & ~known)
        return false;
    if (mw->kind == KEY_WINDOW_1)
        return b->new_key >> 8 == b->mw_key >> 8 && (b->layout || !(b->access & ACCESS_ZERO_BASED));
    /* Type 2B. Over XRC it could not be used: the QP that a packet arrives at is not where it was bound. */
    return b->new_key == 0 && mw->mw.region == 0 && (b->layout || b->length != 0) && qp->type != QPT_XRC_SEND;
}

/* Does the region beneath allow it? */
static bool check_region(const struct qp *qp, const struct mkey *mr, const struct mw_bind *b)
{
    if (!mr || mr->kind != KEY_REGION || mr->init.pd != qp->pd || !(mr->init.access & ACCESS_MW_BIND))
        return false;
    if (b->access & (REMOTE_CHANGE | ACCESS_LOCAL_WRITE) && !(mr->init.access & ACCESS_LOCAL_WRITE))
        return false;
    if (b->access & ~mr->init.access & ACCESS_FLUSH_GLOBAL)
        return false;
    uint64_t off = b->addr - mr->init.iova; /* wraps to something huge if addr is before the start */
    return off <= mr->init.length && b->length <= mr->init.length - off;
}

static struct layout_object object_of(const struct engine *e, uint32_t key, const struct mkey *mw)
{
    const struct mkey *k = key_find(&e->keys, key);
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

/* Is the layout sound, and what depth will it have? */
static enum layout_error check_layout(const struct qp *qp, const struct mkey *mw, const struct mw_bind *b,
                                      uint32_t access, uint8_t *depth)
{
    struct layout_limits limits = {.caps = LAYOUT_CAP_ALL,
                                   .max_entries = mw->shape ? mw->shape->max_entries : 0,
                                   .max_dims = LAYOUT_MAX_DIMS,
                                   .max_depth = LAYOUT_MAX_DEPTH};
    enum layout_error err = layout_check(b->layout, &limits, NULL, NULL);
    *depth = 0;
    for (uint32_t i = 0; !err && i < b->layout->count; i++) {
        struct layout_object o = object_of(qp->e, b->layout->entry[i].object, mw);
        err = layout_check_object(&b->layout->entry[i], &o, &limits, qp->pd, access, depth);
    }
    return err;
}

static bool bind_layout(struct qp *qp, struct mkey *mw, const struct mw_bind *b, uint8_t *cause)
{
    struct engine *e = qp->e;
    struct layout *l = mw->shape ? &mw->shape->layout : NULL;
    uint32_t access = b->access & ~(uint32_t)ACCESS_ZERO_BASED; /* they always are */
    uint8_t depth;
    *cause = (uint8_t)check_layout(qp, mw, b, access, &depth);
    if (*cause || !l)
        return false;
    mw_unbind(e, mw);
    layout_bind(l, mw->shape->entry, b->layout);
    for (uint32_t i = 0; i < l->count; i++) {
        struct mkey *k = key_find(&e->keys, l->entry[i].object);
        if (k->kind == KEY_REGION)
            k->windows++;
        else
            l->entry[i].serial = k->serial;
    }
    mw->init = (struct mr_init){.pd = mw->init.pd, .length = l->total, .access = access};
    mw->depth = depth;
    mw->mw.region = index_of(e, mw);
    return true;
}

static bool bind_range(struct qp *qp, struct mkey *mw, const struct mw_bind *b)
{
    struct engine *e = qp->e;
    struct mkey *mr = NULL;
    if (b->length) {
        mr = key_find(&e->keys, b->mr_key);
        if (!check_region(qp, mr, b))
            return false;
    }
    mw_unbind(e, mw);
    if (!mr)
        return true;
    mw->init = (struct mr_init){.pd = mw->init.pd,
                                .space = mr->init.space,
                                .va = mr->init.va + (b->addr - mr->init.iova),
                                .iova = b->access & ACCESS_ZERO_BASED ? 0 : b->addr,
                                .length = b->length,
                                .access = b->access};
    mw->mw.region = index_of(e, mr);
    mr->windows++;
    return true;
}

bool mw_bind(struct qp *qp, const struct mw_bind *b, uint8_t *cause)
{
    struct mkey *mw = find_window(qp->e, b->mw_key);
    *cause = 0;
    if (!mw || !check_window(qp, mw, b))
        return false;
    if (!(b->layout ? bind_layout(qp, mw, b, cause) : bind_range(qp, mw, b)))
        return false;
    mw->tag = (uint8_t)(mw->kind == KEY_WINDOW_1 ? b->new_key : b->mw_key);
    if (mw->kind == KEY_WINDOW_2)
        add_to_qp(qp, mw);
    return true;
}

struct mkey *mw_find_bound(struct qp *qp, uint32_t rkey)
{
    struct mkey *mw = key_find(&qp->e->keys, rkey);
    return mw && mw->kind == KEY_WINDOW_2 && mw->mw.region && mw->mw.qpn == qp->qpn ? mw : NULL;
}
