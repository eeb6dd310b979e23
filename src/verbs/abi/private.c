// SPDX-License-Identifier: BSD-2-Clause
/* The private symbols of libibverbs, which it offers to provider libraries (libmlx5, libefa …) and to rdma-core's own
 * tools. Programs load these libraries for their extensions, and the libraries can't be loaded without all of these
 * symbols. Pumice has no kernel device that a provider could drive. So registering a driver does nothing, and commands
 * to the kernel fail.
 *
 * rdma-core changes the version node of these symbols with some releases, from IBVERBS_PRIVATE_34 to _65. Each symbol
 * here is defined once, and has the version of each node that ever listed it (rdma-core-symbols.tsv). */
#include "src/verbs/abi/stubs.h"

#include <infiniband/verbs.h>
#include <stdbool.h>

#include "src/verbs/base/verbs_v45.h"
#include "src/verbs/device/gid_table.h"

/* Gives each private symbol of the table its versions. If this file does not define the symbol, the linker fails. No
 * function here may call another one of them: the assembler would not know which version is meant. */
#define PRIVATE_ALIAS(name, version) __asm__(".symver " #name ", " #name version);
#include "gen/private_aliases.h"

/* An alias, because debug information refers to the variable by its symbol. */
static bool allow_disassociate_destroy;
extern VB_EXPORT bool verbs_allow_disassociate_destroy __attribute__((alias("allow_disassociate_destroy")));

/* A provider of each private node calls the function of that node. */
VB_STUB_VOID(verbs_register_driver_34)
VB_STUB_VOID(verbs_register_driver_57)
VB_STUB_VOID(verbs_register_driver_59)
VB_STUB_VOID(verbs_register_driver_64)
VB_STUB_VOID(verbs_register_driver_65)
VB_STUB_VOID(verbs_init_cq)
VB_STUB_VOID(verbs_set_ops)
VB_STUB_VOID(verbs_uninit_context)
VB_STUB_VOID(__verbs_log)
VB_STUB_PTR(_verbs_init_and_alloc_context)
VB_STUB_PTR(verbs_open_device)
VB_STUB_PTR(ibv_dmabuf_heap_cc_shared_init)
VB_STUB_PTR(ibv_dmabuf_heap_alloc)
VB_STUB_VOID(ibv_dmabuf_heap_destroy)
VB_STUB_VOID(ibv_dmabuf_heap_free)

/* Returns the number of attributes of a command. */
VB_EXPORT unsigned __ioctl_final_num_attrs(void);
VB_EXPORT unsigned __ioctl_final_num_attrs(void)
{
    return 0;
}

/* Returns the bytes read, or -1. */
VB_STUB_MINUS(ibv_read_ibdev_sysfs_file)

/* Returns a descriptor, or -1. */
VB_STUB_MINUS(ibv_cmd_export_dmabuf_fd)

/* Returns the number of completions, or a negative errno value. */
VB_EXPORT int ibv_cmd_poll_cq(void);
VB_EXPORT int ibv_cmd_poll_cq(void)
{
    return -vb_err(-EOPNOTSUPP);
}

/* An old function for rdma-core's own tools. It returns the type of a GID in the terms of sysfs: 1 for "RoCE v2", else
 * 0. */
enum gid_type_sysfs { GID_TYPE_SYSFS_IB_ROCE_V1, GID_TYPE_SYSFS_ROCE_V2 };
VB_EXPORT int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned int index,
                                 enum gid_type_sysfs *type);
VB_EXPORT int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned int index,
                                 enum gid_type_sysfs *type)
{
    struct pm_query_gid_rep rep;
    int rc = vb_query_gid_entry(vb_ctx(context), port, index, &rep);
    if (rc && rc != -ENOENT)
        return vb_err(rc), -1;
    *type = rc == 0 && rep.type == IBV_GID_TYPE_ROCE_V2 ? GID_TYPE_SYSFS_ROCE_V2 : GID_TYPE_SYSFS_IB_ROCE_V1;
    return 0;
}

/* The name of an opcode of work requests. rdma-core has this function since release 49, for its own tools. */
VB_EXPORT const char *ibv_wr_opcode_str(enum ibv_wr_opcode opcode);
VB_EXPORT const char *ibv_wr_opcode_str(enum ibv_wr_opcode opcode)
{
    static const char *const names[] = {
        [IBV_WR_RDMA_WRITE] = "rdma-write",
        [IBV_WR_RDMA_WRITE_WITH_IMM] = "rdma-write-with-imm",
        [IBV_WR_SEND] = "send",
        [IBV_WR_SEND_WITH_IMM] = "send-with-imm",
        [IBV_WR_RDMA_READ] = "rdma-read",
        [IBV_WR_ATOMIC_CMP_AND_SWP] = "atomic-cmp-and-swp",
        [IBV_WR_ATOMIC_FETCH_AND_ADD] = "atomic-fetch-and-add",
        [IBV_WR_LOCAL_INV] = "local-inv",
        [IBV_WR_BIND_MW] = "bind-mw",
        [IBV_WR_SEND_WITH_INV] = "send-with-inv",
        [IBV_WR_TSO] = "tso",
        [IBV_WR_DRIVER1] = "driver1",
        [VB_WR_FLUSH] = "flush",
        [IBV_WR_ATOMIC_WRITE] = "atomic-write",
    };
    unsigned n = opcode;
    return n < sizeof(names) / sizeof(names[0]) && names[n] ? names[n] : "unknown";
}

/* Commands to the kernel. */
VB_STUB_INT(execute_ioctl)
VB_STUB_INT(ibv_cmd_advise_mr)
VB_STUB_INT(ibv_cmd_alloc_dm)
VB_STUB_INT(ibv_cmd_alloc_dmah)
VB_STUB_INT(ibv_cmd_alloc_mw)
VB_STUB_INT(ibv_cmd_alloc_pd)
VB_STUB_INT(ibv_cmd_attach_mcast)
VB_STUB_INT(ibv_cmd_close_xrcd)
VB_STUB_INT(ibv_cmd_create_ah)
VB_STUB_INT(ibv_cmd_create_comp_cntr)
VB_STUB_INT(ibv_cmd_create_counters)
VB_STUB_INT(ibv_cmd_create_cq)
VB_STUB_INT(ibv_cmd_create_cq_ex)
VB_STUB_INT(ibv_cmd_create_cq_ex2)
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
VB_STUB_INT(ibv_cmd_destroy_comp_cntr)
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
VB_STUB_INT(ibv_cmd_free_dmah)
VB_STUB_INT(ibv_cmd_get_context)
VB_STUB_INT(ibv_cmd_inc_comp_cntr)
VB_STUB_INT(ibv_cmd_inc_err_comp_cntr)
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
VB_STUB_INT(ibv_cmd_qp_attach_comp_cntr)
VB_STUB_INT(ibv_cmd_query_comp_cntr_caps)
VB_STUB_INT(ibv_cmd_query_context)
VB_STUB_INT(ibv_cmd_query_device_any)
VB_STUB_INT(ibv_cmd_query_mr)
VB_STUB_INT(ibv_cmd_query_port)
VB_STUB_INT(ibv_cmd_query_port_speed)
VB_STUB_INT(ibv_cmd_query_qp)
VB_STUB_INT(ibv_cmd_query_srq)
VB_STUB_INT(ibv_cmd_read_comp_cntr)
VB_STUB_INT(ibv_cmd_read_counters)
VB_STUB_INT(ibv_cmd_read_err_comp_cntr)
VB_STUB_INT(ibv_cmd_reg_dm_mr)
VB_STUB_INT(ibv_cmd_reg_dmabuf_mr)
VB_STUB_INT(ibv_cmd_reg_mr)
VB_STUB_INT(ibv_cmd_reg_mr_ex)
VB_STUB_INT(ibv_cmd_req_notify_cq)
VB_STUB_INT(ibv_cmd_rereg_mr)
VB_STUB_INT(ibv_cmd_resize_cq)
VB_STUB_INT(ibv_cmd_set_comp_cntr)
VB_STUB_INT(ibv_cmd_set_err_comp_cntr)
