// SPDX-License-Identifier: BSD-2-Clause
/* The operations that a context's tables point to, and their helpers. All follow the verbs API: errno values or NULL
 * with errno. */
#ifndef VERBS_OPS_H
#define VERBS_OPS_H

#include "src/verbs/base/objects.h"

/* query.c */
int vb_query_device_ex(struct ibv_context *c, const struct ibv_query_device_ex_input *in,
                       struct ibv_device_attr_ex *attr, size_t size);
int vb_query_port(struct ibv_context *c, uint8_t port, struct ibv_port_attr *attr, size_t size);
int vb_query_rt_values(struct ibv_context *c, struct ibv_values_ex *values);
/* Entry of the GID table: 0 or -errno, -ENOENT if it is empty. */
int vb_query_gid_entry(struct vb_context *c, uint32_t port, uint32_t index, struct pm_query_gid_rep *rep);

/* pd_mr.c */
struct ibv_td *vb_alloc_td(struct ibv_context *c, struct ibv_td_init_attr *attr);
int vb_dealloc_td(struct ibv_td *td);
struct ibv_pd *vb_alloc_parent_domain(struct ibv_context *c, struct ibv_parent_domain_init_attr *attr);

/* mr.c, dm.c, mw.c, xrcd.c, srq.c, srq_post.c, tm.c */
int vb_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags, struct ibv_sge *sge,
                 uint32_t num);
struct ibv_dm *vb_alloc_dm(struct ibv_context *c, struct ibv_alloc_dm_attr *attr);
int vb_free_dm(struct ibv_dm *dm);
struct ibv_mr *vb_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t length, unsigned access);
struct ibv_mw *vb_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int vb_dealloc_mw(struct ibv_mw *mw);
struct ibv_mw *vb_alloc_mw_entries(struct ibv_pd *pd, enum ibv_mw_type type, uint32_t max_entries);
int vb_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
struct ibv_xrcd *vb_open_xrcd(struct ibv_context *c, struct ibv_xrcd_init_attr *attr);
int vb_close_xrcd(struct ibv_xrcd *xrcd);
struct ibv_srq *vb_create_srq_ex(struct ibv_context *c, struct ibv_srq_init_attr_ex *attr);
int vb_get_srq_num(struct ibv_srq *srq, uint32_t *num);
int vb_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

int vb_post_srq_ops(struct ibv_srq *srq, struct ibv_ops_wr *wr, struct ibv_ops_wr **bad_wr);

/* cq.c, cq_ex.c, poll.c */
struct ibv_cq_ex *vb_create_cq_ex(struct ibv_context *c, struct ibv_cq_init_attr_ex *attr);
int vb_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
void vb_cq_ex_ops(struct ibv_cq_ex *cq, uint64_t wc_flags);
int vb_poll_cq(struct ibv_cq *cq, int num, struct ibv_wc *wc);
int vb_req_notify_cq(struct ibv_cq *cq, int solicited_only);

/* qp.c, qp_ex.c, post.c */
struct ibv_qp *vb_create_qp_ex(struct ibv_context *c, struct ibv_qp_init_attr_ex *attr);
struct ibv_qp *vb_open_qp(struct ibv_context *c, struct ibv_qp_open_attr *attr);
void vb_qp_ex_ops(struct ibv_qp_ex *qp);
int vb_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int vb_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

/* Sets errno to -rc and returns NULL. */
static inline void *vb_null(int rc)
{
    errno = -rc;
    return NULL;
}
/* Sets errno to -rc and returns that. */
static inline int vb_err(int rc)
{
    if (rc)
        errno = -rc;
    return -rc;
}

#endif
