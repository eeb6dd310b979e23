// SPDX-License-Identifier: BSD-2-Clause
/* IBVERBS_PRIVATE_34: what Debian 12's libibverbs offers its provider libraries (libmlx5, libefa …). Programs load
 * those for their extensions, and they insist on every one of these symbols. There is no kernel device behind this
 * library for a provider to drive, so registering a driver does nothing, and commands to the kernel fail.
 * ibv_query_gid_type of this node is in query.c. */
#include <errno.h>
#include <stdarg.h>

#include "src/verbs/base/ops.h"

#define NO_COMMAND(name)                                                                                               \
    VB_EXPORT int name(void);                                                                                          \
    VB_EXPORT int name(void)                                                                                           \
    {                                                                                                                  \
        return vb_err(-EOPNOTSUPP);                                                                                    \
    }
#define NOTHING(name)                                                                                                  \
    VB_EXPORT void name(void);                                                                                         \
    VB_EXPORT void name(void)                                                                                          \
    {                                                                                                                  \
    }
#define NO_OBJECT(name)                                                                                                \
    VB_EXPORT void *name(void);                                                                                        \
    VB_EXPORT void *name(void)                                                                                         \
    {                                                                                                                  \
        return vb_null(-EOPNOTSUPP);                                                                                   \
    }

extern VB_EXPORT bool verbs_allow_disassociate_destroy;
bool verbs_allow_disassociate_destroy;

NOTHING(verbs_register_driver_34)
NOTHING(verbs_init_cq)
NOTHING(verbs_set_ops)
NOTHING(verbs_uninit_context)
NOTHING(__verbs_log)
NO_OBJECT(_verbs_init_and_alloc_context)
NO_OBJECT(verbs_open_device)

/* How many attributes a command holds: none. */
VB_EXPORT unsigned __ioctl_final_num_attrs(void);
VB_EXPORT unsigned __ioctl_final_num_attrs(void)
{
    return 0;
}

/* Bytes read, or negative. */
VB_EXPORT int ibv_read_ibdev_sysfs_file(void);
VB_EXPORT int ibv_read_ibdev_sysfs_file(void)
{
    return vb_err(-EOPNOTSUPP), -1;
}
VB_EXPORT int ibv_cmd_poll_cq(void);
VB_EXPORT int ibv_cmd_poll_cq(void)
{
    return -vb_err(-EOPNOTSUPP);
}

NO_COMMAND(execute_ioctl)
NO_COMMAND(ibv_cmd_advise_mr)
NO_COMMAND(ibv_cmd_alloc_dm)
NO_COMMAND(ibv_cmd_alloc_mw)
NO_COMMAND(ibv_cmd_alloc_pd)
NO_COMMAND(ibv_cmd_attach_mcast)
NO_COMMAND(ibv_cmd_close_xrcd)
NO_COMMAND(ibv_cmd_create_ah)
NO_COMMAND(ibv_cmd_create_counters)
NO_COMMAND(ibv_cmd_create_cq)
NO_COMMAND(ibv_cmd_create_cq_ex)
NO_COMMAND(ibv_cmd_create_flow)
NO_COMMAND(ibv_cmd_create_flow_action_esp)
NO_COMMAND(ibv_cmd_create_qp)
NO_COMMAND(ibv_cmd_create_qp_ex)
NO_COMMAND(ibv_cmd_create_qp_ex2)
NO_COMMAND(ibv_cmd_create_rwq_ind_table)
NO_COMMAND(ibv_cmd_create_srq)
NO_COMMAND(ibv_cmd_create_srq_ex)
NO_COMMAND(ibv_cmd_create_wq)
NO_COMMAND(ibv_cmd_dealloc_mw)
NO_COMMAND(ibv_cmd_dealloc_pd)
NO_COMMAND(ibv_cmd_dereg_mr)
NO_COMMAND(ibv_cmd_destroy_ah)
NO_COMMAND(ibv_cmd_destroy_counters)
NO_COMMAND(ibv_cmd_destroy_cq)
NO_COMMAND(ibv_cmd_destroy_flow)
NO_COMMAND(ibv_cmd_destroy_flow_action)
NO_COMMAND(ibv_cmd_destroy_qp)
NO_COMMAND(ibv_cmd_destroy_rwq_ind_table)
NO_COMMAND(ibv_cmd_destroy_srq)
NO_COMMAND(ibv_cmd_destroy_wq)
NO_COMMAND(ibv_cmd_detach_mcast)
NO_COMMAND(ibv_cmd_free_dm)
NO_COMMAND(ibv_cmd_get_context)
NO_COMMAND(ibv_cmd_modify_cq)
NO_COMMAND(ibv_cmd_modify_flow_action_esp)
NO_COMMAND(ibv_cmd_modify_qp)
NO_COMMAND(ibv_cmd_modify_qp_ex)
NO_COMMAND(ibv_cmd_modify_srq)
NO_COMMAND(ibv_cmd_modify_wq)
NO_COMMAND(ibv_cmd_open_qp)
NO_COMMAND(ibv_cmd_open_xrcd)
NO_COMMAND(ibv_cmd_post_recv)
NO_COMMAND(ibv_cmd_post_send)
NO_COMMAND(ibv_cmd_post_srq_recv)
NO_COMMAND(ibv_cmd_query_context)
NO_COMMAND(ibv_cmd_query_device_any)
NO_COMMAND(ibv_cmd_query_mr)
NO_COMMAND(ibv_cmd_query_port)
NO_COMMAND(ibv_cmd_query_qp)
NO_COMMAND(ibv_cmd_query_srq)
NO_COMMAND(ibv_cmd_read_counters)
NO_COMMAND(ibv_cmd_reg_dm_mr)
NO_COMMAND(ibv_cmd_reg_dmabuf_mr)
NO_COMMAND(ibv_cmd_reg_mr)
NO_COMMAND(ibv_cmd_req_notify_cq)
NO_COMMAND(ibv_cmd_rereg_mr)
NO_COMMAND(ibv_cmd_resize_cq)
