// SPDX-License-Identifier: BSD-2-Clause
/* A window of type 2B hangs on a list of its QP while it is bound, so that it does not outlive the QP and is not
 * inherited by another one of the same number. */
#include "daemon/core/mw.h"

#include <errno.h>

#include "daemon/core/engine_priv.h"

#define REMOTE_CHANGE (ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC)
#define WINDOW_ACCESS (REMOTE_CHANGE | ACCESS_REMOTE_READ | ACCESS_ZERO_BASED | ACCESS_FLUSH_GLOBAL)

static uint32_t index_of(const struct engine *e, const struct mkey *k)
{
    return (uint32_t)(k - e->keys.entry);
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

static void list_add(struct qp *qp, struct mkey *mw)
{
    struct mkey *entry = qp->e->keys.entry;
    mw->mw.qpn = qp->qpn;
    mw->mw.prev = 0;
    mw->mw.next = qp->windows;
    if (qp->windows)
        entry[qp->windows].mw.prev = index_of(qp->e, mw);
    qp->windows = index_of(qp->e, mw);
}

static void list_remove(struct engine *e, struct mkey *mw)
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

void mw_unbind(struct engine *e, struct mkey *mw)
{
    if (mw->mw.region == 0)
        return;
    if (mw->kind == KEY_WINDOW_2)
        list_remove(e, mw);
    e->keys.entry[mw->mw.region].windows--;
    mw->mw.region = 0;
}

void mw_forget_qp(struct qp *qp)
{
    while (qp->windows)
        mw_unbind(qp->e, &qp->e->keys.entry[qp->windows]);
}

/* May this QP bind this window like that at all? */
static bool check_window(const struct qp *qp, const struct mkey *mw, const struct mw_bind *b)
{
    if (mw->init.pd != qp->pd || b->access & ~(uint32_t)WINDOW_ACCESS)
        return false;
    if (mw->kind == KEY_WINDOW_1)
        return b->new_key >> 8 == b->mw_key >> 8 && !(b->access & ACCESS_ZERO_BASED);
    /* Type 2B. Over XRC it could not be used: the QP that a packet arrives at is not where it was bound. */
    return b->new_key == 0 && mw->mw.region == 0 && b->length != 0 && qp->type != QPT_XRC_SEND;
}

/* Does the region beneath allow it? */
static bool check_region(const struct qp *qp, const struct mkey *mr, const struct mw_bind *b)
{
    if (!mr || mr->kind != KEY_REGION || mr->init.pd != qp->pd || !(mr->init.access & ACCESS_MW_BIND))
        return false;
    if (b->access & REMOTE_CHANGE && !(mr->init.access & ACCESS_LOCAL_WRITE))
        return false;
    if (b->access & ~mr->init.access & ACCESS_FLUSH_GLOBAL)
        return false;
    uint64_t off = b->addr - mr->init.iova; /* wraps to something huge if addr is before the start */
    return off <= mr->init.length && b->length <= mr->init.length - off;
}

bool mw_bind(struct qp *qp, const struct mw_bind *b)
{
    struct engine *e = qp->e;
    struct mkey *mw = find_window(e, b->mw_key);
    if (!mw || !check_window(qp, mw, b))
        return false;
    struct mkey *mr = NULL;
    if (b->length) {
        mr = key_find(&e->keys, b->mr_key);
        if (!check_region(qp, mr, b))
            return false;
    }
    mw_unbind(e, mw);
    mw->tag = (uint8_t)(mw->kind == KEY_WINDOW_1 ? b->new_key : b->mw_key);
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
    if (mw->kind == KEY_WINDOW_2)
        list_add(qp, mw);
    return true;
}

struct mkey *mw_find_bound(struct qp *qp, uint32_t rkey)
{
    struct mkey *mw = key_find(&qp->e->keys, rkey);
    return mw && mw->kind == KEY_WINDOW_2 && mw->mw.region && mw->mw.qpn == qp->qpn ? mw : NULL;
}
