// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/cm/command/command.h"

#include <errno.h>
#include <string.h>

/* clang-format off */
static const struct {
    uint32_t in; /* bytes of the command's struct */
    int (*fn)(struct command *c); /* NULL: not implemented, as in Linux */
} commands[UCMA_CMDS] = {
    [RDMA_USER_CM_CMD_CREATE_ID]      = {sizeof(struct rdma_ucm_create_id),          command_create_id},
    [RDMA_USER_CM_CMD_DESTROY_ID]     = {sizeof(struct rdma_ucm_destroy_id),         command_destroy_id},
    [RDMA_USER_CM_CMD_BIND_IP]        = {sizeof(struct rdma_ucm_bind_ip),            command_bind_ip},
    [RDMA_USER_CM_CMD_RESOLVE_IP]     = {sizeof(struct rdma_ucm_resolve_ip),         command_resolve_ip},
    [RDMA_USER_CM_CMD_RESOLVE_ROUTE]  = {sizeof(struct rdma_ucm_resolve_route),      command_resolve_route},
    [RDMA_USER_CM_CMD_QUERY_ROUTE]    = {sizeof(struct rdma_ucm_query),              command_query_route},
    [RDMA_USER_CM_CMD_CONNECT]        = {sizeof(struct rdma_ucm_connect),            command_connect},
    [RDMA_USER_CM_CMD_LISTEN]         = {sizeof(struct rdma_ucm_listen),             command_listen},
    [RDMA_USER_CM_CMD_ACCEPT]         = {sizeof(struct rdma_ucm_accept),             command_accept},
    [RDMA_USER_CM_CMD_REJECT]         = {sizeof(struct rdma_ucm_reject),             command_reject},
    [RDMA_USER_CM_CMD_DISCONNECT]     = {sizeof(struct rdma_ucm_disconnect),         command_disconnect},
    [RDMA_USER_CM_CMD_INIT_QP_ATTR]   = {sizeof(struct rdma_ucm_init_qp_attr),       command_init_qp_attr},
    [RDMA_USER_CM_CMD_GET_EVENT]      = {sizeof(struct rdma_ucm_get_event),          command_get_event},
    [RDMA_USER_CM_CMD_GET_OPTION]     = {0,                                          NULL},
    [RDMA_USER_CM_CMD_SET_OPTION]     = {sizeof(struct rdma_ucm_set_option),         command_set_option},
    [RDMA_USER_CM_CMD_NOTIFY]         = {sizeof(struct rdma_ucm_notify),             command_notify},
    [RDMA_USER_CM_CMD_JOIN_IP_MCAST]  = {sizeof(struct rdma_ucm_join_ip_mcast),      command_join_ip_mcast},
    [RDMA_USER_CM_CMD_LEAVE_MCAST]    = {sizeof(struct rdma_ucm_destroy_id),         command_leave_mcast},
    [RDMA_USER_CM_CMD_MIGRATE_ID]     = {sizeof(struct rdma_ucm_migrate_id),         command_migrate_id},
    [RDMA_USER_CM_CMD_QUERY]          = {sizeof(struct rdma_ucm_query),              command_query},
    [RDMA_USER_CM_CMD_BIND]           = {sizeof(struct rdma_ucm_bind),               command_bind},
    [RDMA_USER_CM_CMD_RESOLVE_ADDR]   = {sizeof(struct rdma_ucm_resolve_addr),       command_resolve_addr},
    [RDMA_USER_CM_CMD_JOIN_MCAST]     = {sizeof(struct rdma_ucm_join_mcast),         command_join_mcast},
    [UCMA_CMD_RESOLVE_IB_SERVICE]     = {sizeof(struct ucma_resolve_ib_service),     command_resolve_ib_service},
    [UCMA_CMD_WRITE_CM_EVENT]         = {sizeof(struct ucma_write_cm_event),         command_write_event},
};
/* clang-format on */

int command_run(struct cm_host *h, struct cm_channel *ch, const void *rq, uint32_t len, struct control_reply *rp,
                uint64_t now)
{
    struct command c = {.host = h, .channel = ch, .rp = rp, .now = now};
    struct pm_cm_command_req head;
    const uint8_t *bytes = rq;

    memcpy(&head, bytes, sizeof(head));
    if (head.in > PM_CM_IN_MAX || head.extra > PM_CM_IN_MAX || len != sizeof(head) + head.in + head.extra)
        return control_fail(rp, -EINVAL, "a command of %u bytes with %u of the struct and %u extra ones", len, head.in,
                            head.extra);
    if (head.cmd >= UCMA_CMDS)
        return -EINVAL;
    if (!commands[head.cmd].fn)
        return -ENOSYS;
    memcpy(&c.in, bytes + sizeof(head), head.in < commands[head.cmd].in ? head.in : commands[head.cmd].in);
    c.extra = bytes + sizeof(head) + head.in;
    c.extra_len = head.extra;
    c.out_max = head.out < PM_CM_OUT_MAX ? head.out : PM_CM_OUT_MAX;
    return commands[head.cmd].fn(&c);
}

int command_result(struct command *c, const void *result, size_t size)
{
    size_t n = size < c->out_max ? size : c->out_max;

    memcpy(control_payload(c->rp, n), result, n);
    return 0;
}

int command_id(struct command *c, uint32_t number, struct ucma_id **out)
{
    return ucma_id_find(c->channel, number, out);
}
