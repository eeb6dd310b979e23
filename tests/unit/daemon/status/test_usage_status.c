// SPDX-License-Identifier: BSD-2-Clause
/* A device's record of its use: which processes created QPs, whether the QPs were connected, and the packets of
 * destroyed QPs. */
#include <criterion/criterion.h>

#include "daemon/status/status.h"
#include "tests/unit/daemon/daemon_fixture.h"

static const struct user root = {.known = true, .administers = true};
static struct fixture f;
static struct session *s;
static struct fixture_cq cq;
static uint32_t pd, key;
static uint8_t memory[8192];

static void start(void)
{
    cr_assert(fixture_start(&f));
    s = fixture_session(&f);
    pd = fixture_pd(&f, s);
    key = fixture_mr(&f, s, pd, memory, sizeof(memory), ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE);
    cr_assert_eq(fixture_cq(&f, s, 64, 0, &cq), 0);
}

static void finish(void)
{
    fixture_end(&f);
}

TestSuite(use, .init = start, .fini = finish);

static json_int_t use(const char *name)
{
    json_t *o = status_device(f.device, &root), *value = json_object_get(json_object_get(o, "usage"), name);
    json_int_t n = value ? json_integer_value(value) : -1;

    json_decref(o);
    return n;
}

static void destroy(const struct fixture_qp *qp)
{
    struct pm_handle h = {.handle = qp->rep.qpn};

    cr_assert_eq(fixture_call(&f, s, PM_OP_DESTROY_QP, &h, sizeof(h), NULL, 0), 0);
}

Test(use, processes_are_told_apart)
{
    struct fixture_qp qp[4];

    cr_assert_eq(use("makers"), 0);
    for (int i = 0; i < 2; i++)
        cr_assert_eq(fixture_qp(&f, s, pd, cq.rep.handle, 16, &qp[i]), 0);
    cr_assert_eq(use("makers"), 1, "one process, however many it makes");
    destroy(&qp[0]);
    cr_assert_eq(use("makers"), 1, "it is not forgotten");
    s->cred.pid++;
    for (int i = 2; i < 4; i++)
        cr_assert_eq(fixture_qp(&f, s, pd, cq.rep.handle, 16, &qp[i]), 0);
    cr_assert_eq(use("makers"), 2);
}

Test(use, packet_counts_survive_their_connections)
{
    struct fixture_qp a, b;
    json_int_t sent;

    cr_assert_eq(fixture_qp(&f, s, pd, cq.rep.handle, 16, &a), 0);
    cr_assert_eq(fixture_qp(&f, s, pd, cq.rep.handle, 16, &b), 0);
    cr_assert_eq(use("connected"), 0);
    cr_assert_eq(fixture_connect_both(&f, s, &a, &b), 0);
    cr_assert(use("connected") == 2 && use("connected_pkts") == 0);
    fixture_wqe(&a, WR_RDMA_WRITE, key, memory, memory + 4096, 1000);
    fixture_post_send(s, &a);
    fixture_run(&f);
    sent = use("connected_pkts");
    cr_assert(sent >= 2, "a WRITE and its ACK, not %d", (int)sent);
    destroy(&a);
    destroy(&b);
    cr_assert_eq(use("connected_pkts"), sent);
}
