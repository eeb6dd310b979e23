// SPDX-License-Identifier: BSD-2-Clause
/* Shared by the programs about windows over layouts. */
#ifndef PUMICE_TESTS_VERBS_LAYOUT_LAYOUTS_H
#define PUMICE_TESTS_VERBS_LAYOUT_LAYOUTS_H

#include "pumice/layout.h"
#include "tests/verbs/ends.h"

#define VL_ALL (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

static inline struct ibv_mw *vl_window(struct ibv_pd *pd, enum ibv_mw_type type, int descriptors)
{
    struct pumice_mw_alloc_attr_ex attr = {.pd = pd, .type = type, .max_descriptors = descriptors};
    struct ibv_mw *mw = pumice_alloc_mw_ex(&attr);
    need(mw);
    return mw;
}

/* Posts a bind of a window of type 2, which gets its next rkey. Returns 0 or an errno value. The request's wr_id is
 * 5. */
static inline int vl_post_bind(struct ibv_qp *qp, struct ibv_mw *mw, const struct pumice_mw_bind_layout *l,
                               unsigned access)
{
    struct ibv_send_wr wr = {.wr_id = 5, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED}, *bad;
    wr.bind_mw.mw = mw;
    wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
    wr.bind_mw.bind_info = pumice_mw_bind_info(l, access);
    int rc = ibv_post_send(qp, &wr, &bad);
    if (rc == 0)
        mw->rkey = wr.bind_mw.rkey;
    return rc;
}

/* Makes a window of type 2 that is bound to `count` items of `length` bytes, the first at addr. */
static inline struct ibv_mw *vl_items(struct ibv_qp *qp, struct ibv_cq *cq, struct ibv_mr *mr, const void *addr,
                                      uint64_t length, uint64_t stride, uint64_t count, unsigned access)
{
    struct ibv_mw *mw = vl_window(mr->pd, IBV_MW_TYPE_2, 1);
    struct pumice_mw_dimension dim = {.stride = stride, .count = count};
    struct pumice_mw_bind_layout_entry entry = {
        .mr = mr, .addr = (uintptr_t)addr, .length = length, .interleaved = {1, 1, &dim}};
    struct pumice_mw_bind_layout l = {0, PUMICE_MW_BIND_LAYOUT_TYPE_INTERLEAVED, 1, &entry};
    need(vl_post_bind(qp, mw, &l, access) == 0 && vt_next(cq).status == IBV_WC_SUCCESS);
    return mw;
}

static inline uint32_t vl_lkey(const struct ibv_mw *mw)
{
    uint32_t lkey = 0;
    need(pumice_mw_get_lkey(mw, &lkey) == 0);
    return lkey;
}

static inline enum ibv_wc_status vl_invalidate(struct ibv_qp *qp, struct ibv_cq *cq, uint32_t rkey)
{
    struct ibv_send_wr wr = {.opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED, .invalidate_rkey = rkey},
                       *bad;
    need(ibv_post_send(qp, &wr, &bad) == 0);
    return vt_next(cq).status;
}

#endif
