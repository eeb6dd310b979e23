// SPDX-License-Identifier: BSD-2-Clause
#include "pumice/provider.h"

#include <errno.h>
#include <string.h>

#include "src/verbs/base/api.h"
#include "src/verbs/datapath/bind.h"
#include "src/verbs/device/query.h"
#include "src/verbs/memory/mw.h"

static bool owns(const struct ibv_context *context)
{
    /* Not one of the data path: the checker of programs puts its own there. */
    const struct verbs_context *v = verbs_get_ctx((struct ibv_context *)context);

    return v && v->query_rt_values == vb_query_rt_values;
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
