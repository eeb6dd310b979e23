// SPDX-License-Identifier: BSD-2-Clause
/* IBVERBS_PRIVATE_34: the symbols that libibverbs of Debian 12 offers to its provider libraries (libmlx5, libefa …).
 * Programs load these libraries for their extensions, and the libraries can't be loaded without all of these symbols.
 * Pumice has no kernel device that a provider could drive. So registering a driver does nothing, and commands to the
 * kernel fail. ibv_query_gid_type of this node is in device/gid_table.c. */
#include "src/verbs/abi/stubs.h"

#include <stdbool.h>

extern VB_EXPORT bool verbs_allow_disassociate_destroy;
bool verbs_allow_disassociate_destroy;

VB_STUB_VOID(verbs_register_driver_34)
VB_STUB_VOID(verbs_init_cq)
VB_STUB_VOID(verbs_set_ops)
VB_STUB_VOID(verbs_uninit_context)
VB_STUB_VOID(__verbs_log)
VB_STUB_PTR(_verbs_init_and_alloc_context)
VB_STUB_PTR(verbs_open_device)

/* Returns the number of attributes of a command. */
VB_EXPORT unsigned __ioctl_final_num_attrs(void);
VB_EXPORT unsigned __ioctl_final_num_attrs(void)
{
    return 0;
}

/* Returns the bytes read, or -1. */
VB_STUB_MINUS(ibv_read_ibdev_sysfs_file)
/* Returns the number of completions, or a negative errno value. */
VB_EXPORT int ibv_cmd_poll_cq(void);
VB_EXPORT int ibv_cmd_poll_cq(void)
{
    return -vb_err(-EOPNOTSUPP);
}

VB_STUB_INT(execute_ioctl)
VB_STUB_INT(ibv_cmd_advise_mr)
VB_STUB_INT(ibv_cmd_alloc_dm)
VB_STUB_INT(ibv_cmd_alloc_mw)
VB_STUB_INT(ibv_cmd_alloc_pd)
VB_STUB_INT(ibv_cmd_attach_mcast)
VB_STUB_INT(ibv_cmd_close_xrcd)
VB_STUB_INT(ibv_cmd_create_ah)
VB_STUB_INT(ibv_cmd_create_counters)
VB_STUB_INT(ibv_cmd_create_cq)
VB_STUB_INT(ibv_cmd_create_cq_ex)
VB_STUB_INT(ibv_cmd_create_flow)
VB_STUB_INT(ibv_cmd_create_flow_action_esp)
VB_STUB_INT(ibv_cmd_create_qp)
VB_STUB_INT(ibv_cmd_create_qp_ex)
VB_STUB_INT(ibv_cmd_create_qp_ex2)
VB_STUB_INT(ibv_cmd_create_rwq_ind_table)
VB_STUB_INT(ibv_cmd_create_srq)
VB_STUB_INT(ibv_cmd_create_srq_ex)
VB_STUB_INT(ibv_cmd_create_wq)
VB_STUB_INT(ibv_cmd_dealloc_mw)
VB_STUB_INT(ibv_cmd_dealloc_pd)
VB_STUB_INT(ibv_cmd_dereg_mr)
VB_STUB_INT(ibv_cmd_destroy_ah)
VB_STUB_INT(ibv_cmd_destroy_counters)
VB_STUB_INT(ibv_cmd_destroy_cq)
VB_STUB_INT(ibv_cmd_destroy_flow)
VB_STUB_INT(ibv_cmd_destroy_flow_action)
VB_STUB_INT(ibv_cmd_destroy_qp)
VB_STUB_INT(ibv_cmd_destroy_rwq_ind_table)
VB_STUB_INT(ibv_cmd_destroy_srq)
VB_STUB_INT(ibv_cmd_destroy_wq)
VB_STUB_INT(ibv_cmd_detach_mcast)
VB_STUB_INT(ibv_cmd_free_dm)
VB_STUB_INT(ibv_cmd_get_context)
VB_STUB_INT(ibv_cmd_modify_cq)
VB_STUB_INT(ibv_cmd_modify_flow_action_esp)
VB_STUB_INT(ibv_cmd_modify_qp)
VB_STUB_INT(ibv_cmd_modify_qp_ex)
VB_STUB_INT(ibv_cmd_modify_srq)
VB_STUB_INT(ibv_cmd_modify_wq)
VB_STUB_INT(ibv_cmd_open_qp)
VB_STUB_INT(ibv_cmd_open_xrcd)
VB_STUB_INT(ibv_cmd_post_recv)
VB_STUB_INT(ibv_cmd_post_send)
VB_STUB_INT(ibv_cmd_post_srq_recv)
VB_STUB_INT(ibv_cmd_query_context)
VB_STUB_INT(ibv_cmd_query_device_any)
VB_STUB_INT(ibv_cmd_query_mr)
VB_STUB_INT(ibv_cmd_query_port)
VB_STUB_INT(ibv_cmd_query_qp)
VB_STUB_INT(ibv_cmd_query_srq)
VB_STUB_INT(ibv_cmd_read_counters)
VB_STUB_INT(ibv_cmd_reg_dm_mr)
VB_STUB_INT(ibv_cmd_reg_dmabuf_mr)
VB_STUB_INT(ibv_cmd_reg_mr)
VB_STUB_INT(ibv_cmd_req_notify_cq)
VB_STUB_INT(ibv_cmd_rereg_mr)
VB_STUB_INT(ibv_cmd_resize_cq)
