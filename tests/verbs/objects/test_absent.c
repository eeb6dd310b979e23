// SPDX-License-Identifier: BSD-2-Clause
/* Missing features fail with EOPNOTSUPP, and never by a crash: verbs of other kinds of devices, and functions that
 * vendors' libraries import from rdma-core for their own drivers. */
#include <dlfcn.h>

#include "tests/verbs/vt.h"

static struct vt_pair p;

static void steering(void)
{
    struct ibv_flow_attr flow = {.size = sizeof(flow), .port = 1};
    struct ibv_flow_action_esp_attr esp = {.comp_mask = 0};
    struct ibv_counters_init_attr counters = {0};
    struct ibv_qp_rate_limit_attr rate = {.rate_limit = 1000};
    ok(!ibv_create_flow(p.qp[0], &flow) && errno == EOPNOTSUPP, "flow steering");
    ok(!ibv_create_flow_action_esp(p.ctx, &esp) && errno == EOPNOTSUPP, "ESP");
    ok(!ibv_create_counters(p.ctx, &counters) && errno == EOPNOTSUPP, "counters");
    ok(ibv_modify_qp_rate_limit(p.qp[0], &rate) == EOPNOTSUPP, "rate limits");
}

static void receiving(void)
{
    struct ibv_wq_init_attr wq = {.wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1, .pd = p.pd, .cq = p.rcq};
    struct ibv_rwq_ind_table_init_attr table = {.log_ind_tbl_size = 0};
    struct ibv_qp_init_attr raw = {
        .send_cq = p.scq, .recv_cq = p.rcq, .cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_RAW_PACKET};
    struct ibv_qp_init_attr driver = raw;
    driver.qp_type = IBV_QPT_DRIVER;
    ok(!ibv_create_wq(p.ctx, &wq) && errno == EOPNOTSUPP, "work queues");
    ok(!ibv_create_rwq_ind_table(p.ctx, &table) && errno == EOPNOTSUPP, "indirection tables");
    ok(!ibv_create_qp(p.pd, &raw) && errno == EOPNOTSUPP, "raw packets");
    ok(!ibv_create_qp(p.pd, &driver) && errno == EOPNOTSUPP, "queue pairs of vendors");
}

static void sharing(void)
{
    ok(!ibv_import_device(0) && errno == EOPNOTSUPP, "import of a device");
    ok(!ibv_import_pd(p.ctx, 1) && errno == EOPNOTSUPP, "… of a protection domain");
    ok(!ibv_import_mr(p.pd, 1) && errno == EOPNOTSUPP, "… of a region");
    ok(!ibv_import_dm(p.ctx, 1) && errno == EOPNOTSUPP, "… of device memory");
    ibv_unimport_mr(p.mr);
    ibv_unimport_pd(p.pd);
    ok(ibv_dealloc_pd(p.pd) == EBUSY, "what was not imported can't be given back so");
    ok(!ibv_alloc_null_mr(p.pd) && errno == EOPNOTSUPP, "null regions");
    ok(!ibv_reg_dmabuf_mr(p.pd, 0, 64, 0, 0, 0) && errno == EOPNOTSUPP, "dma-buf");
}

static void hints(void)
{
    struct ibv_ece ece = {0};
    ok(ibv_query_ece(p.qp[0], &ece) == EOPNOTSUPP && ibv_set_ece(p.qp[0], &ece) == EOPNOTSUPP, "ECE");
    ok(ibv_query_qp_data_in_order(p.qp[0], IBV_WR_RDMA_WRITE, 0) == 0, "data may come out of order");
    ok(ibv_get_device_index(p.ctx->device) == -1, "the kernel has no index for the device");
}

/* The functions of the private nodes, one node for each range of releases of rdma-core. */
static void drivers(void)
{
    static const char *const commands[] = {
        "alloc_pd",     "dealloc_pd", "reg_mr",        "dereg_mr",    "create_cq",        "destroy_cq",   "create_qp",
        "create_qp_ex", "modify_qp",  "query_qp",      "destroy_qp",  "create_srq",       "destroy_srq",  "create_ah",
        "create_flow",  "create_wq",  "query_context", "get_context", "query_device_any", "reg_dmabuf_mr"};
    static const char *const nodes[] = {"34", "57", "59", "64", "65"};
    bool clean = true;
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]) * 5; i++) {
        char name[64], node[32];
        snprintf(name, sizeof(name), "ibv_cmd_%s", commands[i / 5]);
        snprintf(node, sizeof(node), "IBVERBS_PRIVATE_%s", nodes[i % 5]);
        int (*command)(void *, void *, void *, size_t) =
            (int (*)(void *, void *, void *, size_t))dlvsym(RTLD_DEFAULT, name, node);
        if (!command || command(NULL, NULL, NULL, 0) != EOPNOTSUPP) {
            printf("#   %s of %s\n", name, node);
            clean = false;
        }
    }
    ok(clean, "a driver's commands to the kernel, of all releases");
    bool registers = true;
    for (size_t i = 0; i < 5; i++) {
        char name[64], node[32];
        snprintf(name, sizeof(name), "verbs_register_driver_%s", nodes[i]);
        snprintf(node, sizeof(node), "IBVERBS_PRIVATE_%s", nodes[i]);
        registers = registers && dlvsym(RTLD_DEFAULT, name, node);
    }
    ok(registers, "a driver registers, by the function of its release");
    const char *(*opcode)(int) = (const char *(*)(int))dlvsym(RTLD_DEFAULT, "ibv_wr_opcode_str", "IBVERBS_PRIVATE_34");
    ok(opcode && strcmp(opcode(IBV_WR_SEND_WITH_INV), "send-with-inv") == 0 && strcmp(opcode(14), "flush") == 0 &&
           strcmp(opcode(13), "unknown") == 0 && strcmp(opcode(-1), "unknown") == 0,
       "names of opcodes");
}

int main(void)
{
    VT_OWN("the errors of features that Pumice does not have");
    struct ibv_context *ctx = vt_open();
    vt_pair_make(&p, ctx, NULL);
    vt_connect(&p);
    steering();
    receiving();
    sharing();
    hints();
    drivers();
    ok(vt_pair_end(&p) && ibv_close_device(ctx) == 0, "and nothing of it has done harm");
    return vt_failed;
}
