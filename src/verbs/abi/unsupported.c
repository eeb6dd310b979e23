// SPDX-License-Identifier: BSD-2-Clause
/* Public functions of newer releases of rdma-core that Pumice does not implement. They fail with EOPNOTSUPP, so that a
 * program that is linked with them can be loaded and can choose another way. The version nodes are those of
 * rdma-core-symbols.tsv. */
#include "src/verbs/abi/stubs.h"

/* IBVERBS_1.15 (release 59) */
VB_STUB_PTR(ibv_alloc_dmah)
VB_STUB_INT(ibv_dealloc_dmah)
VB_STUB_PTR(ibv_reg_mr_ex)

/* IBVERBS_1.16 (release 62) */
VB_STUB_MINUS(ibv_dm_export_dmabuf_fd)
VB_STUB_INT(ibv_query_port_speed)

/* IBVERBS_1.17 (release 64) */
VB_STUB_PTR(ibv_alloc_buf)
VB_STUB_VOID(ibv_free_buf)
VB_STUB_PTR(ibv_reg_buf_mr)

/* IBVERBS_1.18 (after release 64) */
VB_STUB_INT(_ibv_query_comp_cntr_caps)
VB_STUB_PTR(ibv_create_comp_cntr)
VB_STUB_INT(ibv_destroy_comp_cntr)
VB_STUB_MINUS(ibv_export_buf_dmabuf_fd)
VB_STUB_INT(ibv_inc_comp_cntr)
VB_STUB_INT(ibv_inc_err_comp_cntr)
VB_STUB_INT(ibv_qp_attach_comp_cntr)
VB_STUB_INT(ibv_read_comp_cntr)
VB_STUB_INT(ibv_read_err_comp_cntr)
VB_STUB_INT(ibv_set_comp_cntr)
VB_STUB_INT(ibv_set_err_comp_cntr)
