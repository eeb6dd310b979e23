// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/objects/mw.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>

#include "daemon/device/device.h"
#include "daemon/objects/pd.h"
#include "daemon/session/charge.h"
#include "daemon/session/control_msg.h"
#include "daemon/session/session.h"

#define SESSION_MW_ENTRIES (1u << 18)

/* Each bind changes a window's rkey, but not its index. */
static uint32_t index_of(uint32_t key)
{
    return key >> 8;
}

/* malloc maps blocks of this size. */
#define SHAPE_MAPPED (128u << 10)

static int alloc_shape(struct session *s, struct mw *mw, uint32_t max_entries, struct control_reply *rp)
{
    size_t size = mw_layout_size(max_entries);

    if (max_entries == 0)
        return 0;
    int rc = charge_memory(&s->owner, size >= SHAPE_MAPPED, size, rp);
    if (rc)
        return rc;
    mw->max_entries = max_entries;
    mw->shape = malloc(size);
    if (mw->shape)
        return 0;
    quota_release_memory(&s->owner, size >= SHAPE_MAPPED, size);
    return -ENOMEM;
}

static void free_shape(struct session *s, struct mw *mw)
{
    size_t size = mw_layout_size(mw->max_entries);

    if (!mw->shape)
        return;
    free(mw->shape);
    quota_release_memory(&s->owner, size >= SHAPE_MAPPED, size);
}

int mw_alloc_window(struct session *s, const void *rq, struct control_reply *rp)
{
    const struct pm_alloc_mw_req *r = rq;
    struct pd *pd = handles_get(&s->pds, r->pd);
    struct device *d = s->device;
    struct pm_handle *rep;
    struct mw *mw;

    if (d->limits.absent & PM_ABSENT_MW)
        return control_fail(rp, -EOPNOTSUPP, "the device has no memory windows");
    if (!pd)
        return control_fail(rp, -EINVAL, "no protection domain %u", r->pd);
    if (r->type != IBV_MW_TYPE_1 && r->type != IBV_MW_TYPE_2)
        return control_fail(rp, -EINVAL, "a memory window has type 1 or 2, not %u", r->type);
    if (r->max_entries > PM_LAYOUT_ENTRIES)
        return control_fail(rp, -EINVAL, "a layout has at most %u entries, not %u", PM_LAYOUT_ENTRIES, r->max_entries);
    if (s->mw_entries + r->max_entries > SESSION_MW_ENTRIES)
        return control_fail(rp, -ENOMEM, "no more than %u entries in all windows of a session", SESSION_MW_ENTRIES);
    if (d->num_mws >= d->limits.max_mw)
        return control_fail(rp, -ENOMEM, "no more than %u memory windows on a device", d->limits.max_mw);
    mw = calloc(1, sizeof(*mw));
    int rc = mw ? alloc_shape(s, mw, r->max_entries, rp) : -ENOMEM;
    if (rc) {
        free(mw);
        return control_explain(rp, rc, "the daemon is out of memory");
    }
    rc = mw->shape ? mw_alloc_layout(d->engine, pd->number, (uint8_t)r->type, r->max_entries, mw->shape, &mw->key)
                   : mw_alloc(d->engine, pd->number, (uint8_t)r->type, &mw->key);
    if (rc == 0 && (rc = handles_add_at(&s->mws, mw, index_of(mw->key))) != 0)
        mw_dealloc(d->engine, mw->key);
    if (rc) {
        free_shape(s, mw);
        free(mw);
        return control_fail(rp, -ENOMEM, "the daemon is out of memory or of keys");
    }
    mw->pd = pd;
    mw->type = (uint8_t)r->type;
    s->mw_entries += r->max_entries;
    pd->users++;
    d->num_mws++;
    rep = control_payload(rp, sizeof(*rep));
    rep->handle = mw->key;
    return 0;
}

void mw_free(struct session *s, struct mw *mw)
{
    mw_dealloc(s->device->engine, mw->key);
    handles_remove(&s->mws, index_of(mw->key));
    mw->pd->users--;
    s->device->num_mws--;
    s->mw_entries -= mw->max_entries;
    free_shape(s, mw);
    quota_release(&s->owner, QUOTA_MWS);
    free(mw);
}

int mw_dealloc_window(struct session *s, const void *rq, struct control_reply *rp)
{
    const struct pm_handle *h = rq;
    struct mw *mw = handles_get(&s->mws, index_of(h->handle));

    if (!mw)
        return control_fail(rp, -EINVAL, "no memory window with key 0x%x", h->handle);
    mw_free(s, mw);
    return 0;
}
