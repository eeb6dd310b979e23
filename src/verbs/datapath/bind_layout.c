// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/datapath/bind_layout.h"

#include <errno.h>
#include <stdlib.h>

#include "pumice/layout.h"

/* The copy of a layout that a bind request points to. */
struct vb_layout {
    struct vb_layout *next; /* the copy of a request that was posted later */
    uint32_t index; /* of the request in the send queue */
    struct pm_layout desc;
};

/* Fills in the key of the object that the entry names. Returns 0 or EINVAL. */
static int put_object(struct pm_layout_entry *to, const struct pumice_mw_bind_layout_entry *e)
{
    if (e->mem_obj_type == PUMICE_MW_ENTRY_USE_MR && e->mr)
        to->key = e->mr->lkey;
    else if (e->mem_obj_type == PUMICE_MW_ENTRY_USE_MW && e->mw)
        to->key = vb_mw(e->mw)->key;
    else
        return EINVAL;
    return 0;
}

/* Converts one entry of a layout. Returns 0 or EINVAL. */
static int put_entry(struct pm_layout_entry *to, const struct pumice_mw_bind_layout_entry *e)
{
    uint32_t ndim = e->interleaved.dimension_count;
    if (e->comp_mask || ndim > PM_LAYOUT_DIMS || (ndim && !e->interleaved.dimension))
        return EINVAL;
    to->ndim = ndim;
    to->addr = e->addr;
    to->length = e->length;
    to->repeat = e->interleaved.repeat_count;
    for (uint32_t d = 0; d < ndim; d++) {
        to->dim[d].stride = e->interleaved.dimension[d].stride;
        to->dim[d].count = e->interleaved.dimension[d].count;
    }
    return put_object(to, e);
}

static size_t desc_size(uint32_t entries)
{
    return sizeof(struct pm_layout) + entries * sizeof(struct pm_layout_entry);
}

/* Frees the copies of requests that are done. */
static void free_done(struct vb_qp *qp)
{
    uint32_t head = atomic_load_explicit(&qp->sq.head, memory_order_acquire);
    while (qp->layouts && (int32_t)(qp->layouts->index - head) < 0) {
        struct vb_layout *l = qp->layouts;
        qp->layouts = l->next;
        free(l);
    }
}

int vb_wqe_bind_layout(struct pm_send_wqe *w, struct vb_qp *qp, const struct vb_mw *mw,
                       const struct ibv_mw_bind_info *info)
{
    const struct pumice_mw_bind_layout *layout = ((const struct pumice_mw_bind_info *)info)->layout;
    if (!layout || layout->comp_mask || layout->entry_count == 0 || layout->entry_count > mw->max_entries ||
        !layout->entries)
        return EINVAL;
    struct vb_layout *l = calloc(1, offsetof(struct vb_layout, desc) + desc_size(layout->entry_count));
    if (!l)
        return ENOMEM;
    l->desc.type = layout->type;
    l->desc.count = layout->entry_count;
    for (uint32_t i = 0; i < layout->entry_count; i++) {
        int rc = put_entry(&l->desc.entry[i], &layout->entries[i]);
        if (rc) {
            free(l);
            return rc;
        }
    }
    free_done(qp);
    uint32_t slot = (uint32_t)((uint8_t *)w - qp->sq.ring) / qp->sq.stride;
    l->index = qp->sq.tail + ((slot - qp->sq.tail) & qp->sq.mask);
    if (!qp->layouts)
        qp->layouts_end = &qp->layouts;
    *qp->layouts_end = l;
    qp->layouts_end = &l->next;
    w->remote_addr = (uint64_t)(uintptr_t)&l->desc;
    w->compare_add = desc_size(l->desc.count);
    w->srqn = (info->mw_access_flags & ~PUMICE_ACCESS_BIND_MW_NONCONTIG) | PM_BIND_LAYOUT;
    return 0;
}

void vb_layouts_free(struct vb_qp *qp)
{
    while (qp->layouts) {
        struct vb_layout *l = qp->layouts;
        qp->layouts = l->next;
        free(l);
    }
}
