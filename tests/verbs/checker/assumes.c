// SPDX-License-Identifier: BSD-2-Clause
/* A program that assumes what its device is like: the index of the GID, and the MTU. The right one asks.
 * tests/e2e/cli/check.sh runs it. Usage: assumes index|mtu|file wrong|right [INDEX] */
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct ibv_context *context;

static void need(int good, const char *what)
{
    if (!good) {
        printf("not ok %s\n", what);
        exit(1);
    }
}

/* As middleware does it: only the type, from a file. */
static void read_type(void)
{
    char path[200], type[32] = "";

    snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/gid_attrs/types/0",
             ibv_get_device_name(context->device));
    FILE *f = fopen(path, "r");
    need(f && fgets(type, sizeof(type), f) && strcmp(type, "RoCE v2\n") == 0, "type of the GID");
    fclose(f);
}

/* The first GID of RoCE v2. */
static int find_gid(void)
{
    struct ibv_gid_entry entry;

    for (unsigned i = 0; ibv_query_gid_ex(context, 1, i, &entry, 0) == 0; i++) {
        if (entry.gid_type == IBV_GID_TYPE_ROCE_V2)
            return (int)i;
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    int wrong = strcmp(argv[2], "wrong") == 0, index = strcmp(argv[1], "index") == 0;
    struct ibv_device **list = ibv_get_device_list(NULL);
    need(list && list[0], "device");
    need((context = ibv_open_device(list[0])) != NULL, "context");
    ibv_free_device_list(list);
    struct ibv_pd *pd = ibv_alloc_pd(context);
    struct ibv_cq *cq = ibv_create_cq(context, 4, NULL, NULL, 0);
    struct ibv_qp_init_attr attr = {.send_cq = cq, .recv_cq = cq, .cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    struct ibv_qp *qp = ibv_create_qp(pd, &attr);
    struct ibv_port_attr port = {.active_mtu = IBV_MTU_2048};
    bool file = strcmp(argv[1], "file") == 0;
    if (file)
        read_type();
    int gid_index = file ? 0 : argc > 3 ? atoi(argv[3]) : index && wrong ? 0 : find_gid();
    union ibv_gid gid;
    need(qp && ibv_query_gid(context, 1, gid_index, &gid) == 0, "queue pair and GID");
    if (index || !wrong)
        need(ibv_query_port(context, 1, &port) == 0, "port");
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    need(ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0, "INIT");
    struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR,
                              .path_mtu = port.active_mtu,
                              .dest_qp_num = qp->qp_num,
                              .min_rnr_timer = 12,
                              .ah_attr = {.is_global = 1,
                                          .port_num = 1,
                                          .grh = {.dgid = gid, .sgid_index = (uint8_t)gid_index, .hop_limit = 64}}};
    /* With a smaller MTU of the device, the wrong program fails. */
    int rc = ibv_modify_qp(qp, &rtr,
                           IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    need(rc == 0 || wrong, "RTR");
    need(ibv_destroy_qp(qp) == 0 && ibv_destroy_cq(cq) == 0 && ibv_dealloc_pd(pd) == 0, "destroying");
    ibv_close_device(context);
    return 0;
}
