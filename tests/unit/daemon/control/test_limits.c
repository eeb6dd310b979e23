// SPDX-License-Identifier: BSD-2-Clause
/* A client can create as many QPs, keys and queues as the device reports, all at the same time. One more is refused
 * with a reason. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdio.h>

#include "tests/unit/daemon/daemon_fixture.h"

static struct fixture f;
static struct session *s;
static struct fixture_cq cq;
static uint32_t pd;
static uint8_t memory[4096];

static void start(void)
{
    cr_assert(fixture_start(&f));
    s = fixture_session(&f);
    pd = fixture_pd(&f, s);
    cr_assert_eq(fixture_cq(&f, s, 16, 0, &cq), 0);
}

static void finish(void)
{
    fixture_end(&f);
}

TestSuite(limits, .init = start, .fini = finish);

static int call(uint32_t op, const void *rq, size_t len)
{
    int rc = fixture_call(&f, s, op, rq, len, NULL, 0);

    fixture_close_fds(&f);
    return rc;
}
#define CALL(op, rq) call(op, &(rq), sizeof(rq))

static size_t resident_kib(void)
{
    char line[128];
    size_t kib = 0;
    FILE *status = fopen("/proc/self/status", "re");

    while (status && fgets(line, sizeof(line), status)) {
        if (sscanf(line, "VmRSS: %zu", &kib) == 1)
            break;
    }
    if (status)
        fclose(status);
    return kib;
}

/* 4,096 QPs, all connected. Each costs no more than a few KiB without its rings, and each is found. */
Test(limits, queue_pairs)
{
    enum { N = 4096 };
    struct pm_create_qp_req r = {.pd = pd,
                                 .send_cq = cq.rep.handle,
                                 .recv_cq = cq.rep.handle,
                                 .type = QPT_RC,
                                 .max_send_wr = 16,
                                 .max_recv_wr = 16};
    static uint32_t qpn[N];
    struct pm_create_qp_rep rep;
    size_t before = resident_kib(), after;

    for (unsigned i = 0; i < N; i++) {
        cr_assert_eq(fixture_call(&f, s, PM_OP_CREATE_QP, &r, sizeof(r), &rep, sizeof(rep)), 0, "queue pair %u: %s", i,
                     (char *)f.rp.payload);
        fixture_close_fds(&f);
        qpn[i] = rep.qpn;
    }
    for (unsigned i = 0; i < N; i++)
        cr_assert_eq(fixture_connect(&f, s, qpn[i], qpn[N - 1 - i]), 0, "queue pair %u", i);
    after = resident_kib();
    printf("%zu bytes for each of %d connected queue pairs\n", (after - before) * 1024 / N, N);
    cr_assert_lt((after - before) * 1024 / N, 16384);
    session_close(s);
    cr_assert_eq(device_deadline(f.device), NEVER);
    s = fixture_session(&f);
}

Test(limits, largest_queues)
{
    struct pm_create_qp_req r = {.pd = pd,
                                 .send_cq = cq.rep.handle,
                                 .recv_cq = cq.rep.handle,
                                 .type = QPT_RC,
                                 .max_send_wr = DEVICE_MAX_QP_WR,
                                 .max_recv_wr = DEVICE_MAX_QP_WR,
                                 .max_send_sge = ENGINE_MAX_SGE,
                                 .max_recv_sge = ENGINE_MAX_SGE,
                                 .max_inline = ENGINE_MAX_INLINE};
    struct pm_create_srq_req q = {.pd = pd, .max_wr = DEVICE_MAX_QP_WR, .max_sge = ENGINE_MAX_SGE};
    struct pm_create_cq_req c = {.cqe = DEVICE_MAX_CQE};

    cr_assert_eq(CALL(PM_OP_CREATE_QP, r), 0);
    r.type = QPT_UD;
    cr_assert_eq(CALL(PM_OP_CREATE_QP, r), 0);
    cr_assert_eq(CALL(PM_OP_CREATE_SRQ, q), 0);
    cr_assert_eq(CALL(PM_OP_CREATE_CQ, c), 0);
}

/* All regions and all windows at the same time. */
Test(limits, keys)
{
    struct pm_reg_mr_req r = {
        .pd = pd, .access = ACCESS_LOCAL_WRITE, .va = (uintptr_t)memory, .length = 64, .iova = (uintptr_t)memory};
    struct pm_alloc_mw_req w = {.pd = pd, .type = IBV_MW_TYPE_1};

    for (unsigned i = 0; i < DEVICE_MAX_MR; i++)
        cr_assert_eq(CALL(PM_OP_REG_MR, r), 0, "region %u", i);
    cr_assert_eq(CALL(PM_OP_REG_MR, r), -ENOMEM);
    for (unsigned i = 0; i < DEVICE_MAX_MW; i++)
        cr_assert_eq(CALL(PM_OP_ALLOC_MW, w), 0, "window %u", i);
    cr_assert_eq(CALL(PM_OP_ALLOC_MW, w), -ENOMEM);
    session_close(s);
    cr_assert(f.device->num_mrs == 0 && f.device->num_mws == 0);
    s = fixture_session(&f);
}

Test(limits, xrc_domains)
{
    struct pm_open_xrcd_req r = {.oflags = O_CREAT};

    for (unsigned i = 0; i < DEVICE_MAX_XRCD; i++)
        cr_assert_eq(CALL(PM_OP_OPEN_XRCD, r), 0, "domain %u", i);
    cr_assert_eq(CALL(PM_OP_OPEN_XRCD, r), -ENOMEM);
}
