// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/memory/mw_layout.h"

#include <errno.h>
#include <stdlib.h>

#include "pumice/provider.h"
#include "src/verbs/base/ops.h"
#include "src/verbs/datapath/post.h"
#include "src/verbs/shim/fork.h"

/* The object of an entry: of the same domain, and known by its key. */
static int put_object(struct pm_layout_entry *to, const struct pumice_mw_bind_layout_entry *e)
{
    if (e->mem_obj_type == PUMICE_MW_ENTRY_USE_MR && e->mr)
        to->key = e->mr->lkey;
    else if (e->mem_obj_type == PUMICE_MW_ENTRY_USE_MW && e->mw)
        to->key = VB_OF(struct vb_mw, mw, e->mw)->key;
    else
        return EINVAL;
    return 0;
}

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

/* Copies of requests that are done. */
static void free_done(struct vb_qp *qp)
{
    uint32_t head = atomic_load_explicit(&qp->sq.head, memory_order_acquire);
    while (qp->layouts && (int32_t)(qp->layouts->index - head) < 0) {
        struct vb_layout *l = qp->layouts;
        qp->layouts = l->next;
        free(l);
    }
}

int vb_wqe_layout(struct pm_send_wqe *w, struct vb_qp *qp, const struct vb_mw *mw, const struct ibv_mw_bind_info *info)
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

/* --- for libpumice.so --------------------------------------------------------------------------------------------------- */

static bool owns(const struct ibv_context *context)
{
    return context->ops.poll_cq == vb_poll_cq;
}

static void query_caps(struct ibv_context *context, struct pumice_ncm_caps *caps)
{
    (void)context;
    *caps = (struct pumice_ncm_caps){
        .general_caps = PUMICE_NCM_SUPPORT_COMPOSITE | PUMICE_NCM_SUPPORT_INTERLEAVED |
                        PUMICE_NCM_SUPPORT_INTERLEAVED_REPETITION |
                        PUMICE_NCM_SUPPORT_INTERLEAVED_NONUNIFORM_REPETITION |
                        PUMICE_NCM_SUPPORT_INTERLEAVED_NONUNIFORM_TOTAL_ITEMS,
        .max_mkey_ims_list_size = PM_LAYOUT_ENTRIES,
        .max_send_wqe_inline_cms = PM_LAYOUT_ENTRIES,
        .max_send_wqe_inline_ims = PM_LAYOUT_ENTRIES,
        .max_mw_recursion_depth = PM_LAYOUT_DEPTH,
        .max_mw_stride_dimension = PM_LAYOUT_DIMS,
    };
}

static struct ibv_mw *alloc_mw(const struct pumice_mw_alloc_attr_ex *attr)
{
    if (attr->max_descriptors < 1 || attr->max_descriptors > PM_LAYOUT_ENTRIES) {
        errno = EINVAL;
        return NULL;
    }
    struct ibv_mw *mw = vb_alloc_mw_entries(attr->pd, attr->type, (uint32_t)attr->max_descriptors);
    return mw;
}

static int bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, const struct pumice_mw_bind *bind)
{
    struct ibv_mw_bind b = {.wr_id = bind->wr_id, .send_flags = bind->send_flags};
    _Static_assert(sizeof(b.bind_info) == sizeof(bind->bind_info), "see pumice/layout.h");
    memcpy(&b.bind_info, &bind->bind_info, sizeof(b.bind_info));
    return vb_bind_mw(qp, mw, &b);
}

static uint32_t mw_descriptors(const struct ibv_mw *mw)
{
    return VB_OF(const struct vb_mw, mw, mw)->max_entries;
}

static uint32_t mw_lkey(const struct ibv_mw *mw)
{
    return VB_OF(const struct vb_mw, mw, mw)->key;
}

VB_EXPORT const struct pumice_provider pumice_provider = {
    .version = PUMICE_PROVIDER_VERSION,
    .owns = owns,
    .query_caps = query_caps,
    .alloc_mw = alloc_mw,
    .bind_mw = bind_mw,
    .mw_descriptors = mw_descriptors,
    .mw_lkey = mw_lkey,
};
