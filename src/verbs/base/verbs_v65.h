// SPDX-License-Identifier: BSD-2-Clause
/* The definitions that rdma-core's header got from version 57 to 65, and that the header of the build machine lacks.
 * Programs that were built with a later header use them. The numbers, layouts and prototypes are the same as in that
 * header. The functions take the header's own struct types, which stay incomplete here, so that this file also compiles
 * with a later header. Their layouts have names that end with the version. */
#ifndef PUMICE_SRC_VERBS_BASE_VERBS_V65_H
#define PUMICE_SRC_VERBS_BASE_VERBS_V65_H

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

/* --- memory regions and buffers ---------------------------------------------------------------- */

struct ibv_buf;
struct ibv_dmah;
struct ibv_dmah_init_attr;
struct ibv_mr_init_attr;

#define VB_REG_MR_IOVA 1u /* enum ibv_mr_init_attr_mask, like the next ones */
#define VB_REG_MR_ADDR 2u
#define VB_REG_MR_FD 4u
#define VB_REG_MR_FD_OFFSET 8u
#define VB_REG_MR_DMAH 16u
#define VB_REG_MR_BUF 32u

/* struct ibv_mr_init_attr. buf was added in version 64: a program that does not set VB_REG_MR_BUF may have a shorter
 * one. */
struct vb_mr_attr_v65 {
    size_t length;
    int access;
    uint64_t mask; /* VB_REG_MR_* */
    uint64_t iova;
    void *addr;
    int fd;
    uint64_t fd_offset;
    struct ibv_dmah *dmah;
    struct ibv_buf *buf;
};
_Static_assert(sizeof(struct vb_mr_attr_v65) == 72, "struct ibv_mr_init_attr");

/* enum ibv_parent_domain_init_attr_mask: buffers may be in memory that a confidential guest shares with its host. */
#define VB_PARENT_DOMAIN_UNPROTECTED 4u

struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, struct ibv_mr_init_attr *attr);
void *ibv_alloc_buf(struct ibv_pd *pd, size_t size, struct ibv_buf **buf);
void ibv_free_buf(struct ibv_buf *buf);
struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf, void *addr, size_t length, int access);
int ibv_export_buf_dmabuf_fd(struct ibv_buf *buf);
struct ibv_dmah *ibv_alloc_dmah(struct ibv_context *context, struct ibv_dmah_init_attr *attr);
int ibv_dealloc_dmah(struct ibv_dmah *dmah);
int ibv_dm_export_dmabuf_fd(struct ibv_dm *dm);

/* --- the port ---------------------------------------------------------------------------------- */

int ibv_query_port_speed(struct ibv_context *context, uint32_t port, uint64_t *speed);

/* Bits of struct ibv_odp_caps.per_transport_caps. */
#define VB_ODP_SUPPORT_FLUSH 64u
#define VB_ODP_SUPPORT_ATOMIC_WRITE 128u

/* --- completion counters ----------------------------------------------------------------------- */

struct ibv_comp_cntr;
struct ibv_comp_cntr_caps;
struct ibv_comp_cntr_init_attr;
struct ibv_qp_attach_comp_cntr_attr;

#define VB_COMP_CNTR_SEND 1u /* enum ibv_qp_attach_comp_cntr_op, like the next ones */
#define VB_COMP_CNTR_RECV 2u
#define VB_COMP_CNTR_READ 4u
#define VB_COMP_CNTR_REMOTE_READ 8u
#define VB_COMP_CNTR_WRITE 16u
#define VB_COMP_CNTR_REMOTE_WRITE 32u
#define VB_COMP_CNTR_ALL 63u

struct vb_comp_cntr_v65 {
    struct ibv_context *context;
    uint32_t handle;
};
struct vb_comp_cntr_caps_v65 {
    uint64_t max_value;
    uint32_t max_counters;
    uint32_t ops; /* VB_COMP_CNTR_* */
};
struct vb_comp_cntr_attr_v65 {
    uint32_t comp_mask;
    uint32_t type; /* enum pm_comp_cntr_type */
    uint32_t flags;
};
struct vb_attach_comp_cntr_v65 {
    uint32_t comp_mask;
    uint32_t ops; /* VB_COMP_CNTR_* */
};
_Static_assert(sizeof(struct vb_comp_cntr_v65) == 16 && sizeof(struct vb_comp_cntr_caps_v65) == 16 &&
                   sizeof(struct vb_comp_cntr_attr_v65) == 12 && sizeof(struct vb_attach_comp_cntr_v65) == 8,
               "structs of completion counters");

int _ibv_query_comp_cntr_caps(struct ibv_context *context, struct ibv_comp_cntr_caps *caps, size_t size);
struct ibv_comp_cntr *ibv_create_comp_cntr(struct ibv_context *context, struct ibv_comp_cntr_init_attr *attr);
int ibv_destroy_comp_cntr(struct ibv_comp_cntr *cntr);
int ibv_set_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t value);
int ibv_set_err_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t value);
int ibv_inc_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t amount);
int ibv_inc_err_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t amount);
int ibv_read_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t *value);
int ibv_read_err_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t *value);
int ibv_qp_attach_comp_cntr(struct ibv_qp *qp, struct ibv_comp_cntr *cntr, struct ibv_qp_attach_comp_cntr_attr *attr);

/* --- the context ------------------------------------------------------------------------------- */

/* The functions that version 65 has in front of struct verbs_context of version 44. That struct grows towards lower
 * addresses. */
struct vb_context_v65 {
    void (*free_buf)(struct ibv_buf *buf);
    void *(*alloc_buf)(struct ibv_pd *pd, size_t size, struct ibv_buf **buf);
    int (*dm_export_dmabuf_fd)(struct ibv_dm *dm);
    struct ibv_mr *(*reg_mr_ex)(struct ibv_pd *pd, struct ibv_mr_init_attr *attr);
    int (*dealloc_dmah)(struct ibv_dmah *dmah);
    struct ibv_dmah *(*alloc_dmah)(struct ibv_context *context, struct ibv_dmah_init_attr *attr);
    char end[]; /* here begins version 44, with query_port */
};

#endif
