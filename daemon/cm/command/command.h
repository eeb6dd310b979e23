// SPDX-License-Identifier: BSD-2-Clause
/* The commands of <rdma/rdma_user_cm.h>. command.c has them as one table. The other files of this folder carry them out,
 * one file for each subject. Results and errors are those of Linux's write(2). */
#ifndef PUMICE_DAEMON_CM_COMMAND_COMMAND_H
#define PUMICE_DAEMON_CM_COMMAND_COMMAND_H

#include "daemon/cm/host/ucma_id.h"
#include "daemon/session/control_msg.h"
#include "pumice/abi_cm.h"

/* A command under way. */
struct command {
    struct cm_host *host;
    struct cm_channel *channel;
    /* The command's struct, with zeros behind what the program sent. */
    union {
        struct rdma_ucm_create_id create_id;
        struct rdma_ucm_destroy_id destroy_id;
        struct rdma_ucm_bind_ip bind_ip;
        struct rdma_ucm_bind bind;
        struct rdma_ucm_resolve_ip resolve_ip;
        struct rdma_ucm_resolve_addr resolve_addr;
        struct rdma_ucm_resolve_route resolve_route;
        struct rdma_ucm_query query;
        struct rdma_ucm_connect connect;
        struct rdma_ucm_listen listen;
        struct rdma_ucm_accept accept;
        struct rdma_ucm_reject reject;
        struct rdma_ucm_disconnect disconnect;
        struct rdma_ucm_init_qp_attr init_qp_attr;
        struct rdma_ucm_notify notify;
        struct rdma_ucm_join_ip_mcast join_ip_mcast;
        struct rdma_ucm_join_mcast join_mcast;
        struct rdma_ucm_get_event get_event;
        struct rdma_ucm_set_option set_option;
        struct rdma_ucm_migrate_id migrate_id;
        struct ucma_resolve_ib_service resolve_ib_service;
        struct ucma_write_cm_event write_cm_event;
    } in;
    const uint8_t *extra; /* bytes behind the struct */
    uint32_t extra_len;
    uint32_t out_max; /* bytes that the program has room for */
    struct control_reply *rp; /* gets the result, and texts about errors */
    uint64_t now;
};

/* Carries out PM_OP_CM_COMMAND: rq, of len bytes, begins with struct pm_cm_command_req. Returns 0 or -errno. */
int command_run(struct cm_host *h, struct cm_channel *ch, const void *rq, uint32_t len, struct control_reply *rp,
                uint64_t now);
/* Writes the first bytes of a result, as many as the program has room for. Returns 0. */
int command_result(struct command *c, const void *result, size_t size);
/* Finds the ID of a command. Returns 0 or -errno. */
int command_id(struct command *c, uint32_t number, struct ucma_id **out);

/* id.c */
int command_create_id(struct command *c);
int command_destroy_id(struct command *c);
int command_migrate_id(struct command *c);
/* event.c */
int command_get_event(struct command *c);
int command_write_event(struct command *c);
/* address.c */
int command_bind_ip(struct command *c);
int command_bind(struct command *c);
int command_resolve_ip(struct command *c);
int command_resolve_addr(struct command *c);
int command_resolve_route(struct command *c);
int command_resolve_ib_service(struct command *c);
/* query.c */
int command_query_route(struct command *c);
int command_query(struct command *c);
/* connect.c */
int command_connect(struct command *c);
int command_listen(struct command *c);
int command_accept(struct command *c);
int command_reject(struct command *c);
int command_disconnect(struct command *c);
int command_notify(struct command *c);
int command_init_qp_attr(struct command *c);
/* option.c */
int command_set_option(struct command *c);
/* mcast.c */
int command_join_ip_mcast(struct command *c);
int command_join_mcast(struct command *c);
int command_leave_mcast(struct command *c);

#endif
