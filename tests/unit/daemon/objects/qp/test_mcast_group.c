// SPDX-License-Identifier: BSD-2-Clause
/* Multicast in the daemon: which QPs may join which groups, and copies for members on the same device. Two devices on
 * addresses of 127.0.0.0/8 reach each other through the kernel's multicast on the loopback interface. */
#include <criterion/criterion.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/unit/daemon/daemon_fixture.h"
#include "tests/unit/skip.h"

#define GRH 40
#define QKEY 0x11223344u
#define ALL_QPS 0xffffffu

struct host {
    struct fixture f;
    struct session *s;
    struct fixture_cq cq;
    struct fixture_qp qp[2];
    uint32_t pd, key;
    uint8_t memory[16384];
};
static struct host host[2];
/* 239.x.y.1 and 239.x.y.2. x and y depend on the process, because tests run in parallel. */
static uint8_t group[16] = {[10] = 0xff, [11] = 0xff, [12] = 239, [15] = 1};
static uint8_t second[16] = {[10] = 0xff, [11] = 0xff, [12] = 239, [15] = 2};

static void pick_groups(void)
{
    group[13] = second[13] = (uint8_t)(getpid() >> 8);
    group[14] = second[14] = (uint8_t)getpid();
}

static int modify(struct host *h, uint32_t qpn, enum qp_state state, uint32_t mask)
{
    struct pm_modify_qp_req m = {.qpn = qpn, .mask = QPA_STATE | mask};

    m.attr.qp_state = state;
    m.attr.port_num = 1;
    m.attr.qkey = QKEY;
    return fixture_call(&h->f, h->s, PM_OP_MODIFY_QP, &m, sizeof(m), NULL, 0);
}

static void start_users(struct host *h)
{
    h->s = fixture_session(&h->f);
    h->pd = fixture_pd(&h->f, h->s);
    h->key = fixture_mr(&h->f, h->s, h->pd, h->memory, sizeof(h->memory), ACCESS_LOCAL_WRITE);
    cr_assert_eq(fixture_cq(&h->f, h->s, 64, 0, &h->cq), 0);
    for (int i = 0; i < 2; i++) {
        uint32_t *qpn = &h->qp[i].rep.qpn;

        cr_assert_eq(fixture_qp_typed(&h->f, h->s, h->pd, h->cq.rep.handle, QPT_UD, 0, 16, &h->qp[i]), 0);
        cr_assert_eq(modify(h, *qpn, QPS_INIT, QPA_PKEY_INDEX | QPA_PORT | QPA_QKEY), 0);
        cr_assert_eq(modify(h, *qpn, QPS_RTR, 0), 0);
        cr_assert_eq(modify(h, *qpn, QPS_RTS, QPA_SQ_PSN), 0);
    }
}

static int member(struct host *h, uint32_t op, uint32_t qpn, const uint8_t gid[16])
{
    struct pm_mcast_req r = {.qpn = qpn};

    memcpy(r.gid, gid, sizeof(r.gid));
    return fixture_call(&h->f, h->s, op, &r, sizeof(r), NULL, 0);
}

static void post_recv(struct host *h, unsigned which, size_t to)
{
    struct pm_recv_wqe *w = fixture_recv_slot(&h->qp[which]);

    *w = (struct pm_recv_wqe){.wr_id = which, .num_sge = 1};
    *(struct pm_sge *)(w + 1) = (struct pm_sge){(uintptr_t)h->memory + to, 2048, h->key};
    fixture_post_recv(h->s, &h->qp[which]);
}

static void send_from(struct host *h, uint8_t sgid_index, const uint8_t gid[16], uint32_t len)
{
    struct pm_send_wqe *w = fixture_send_slot(&h->qp[0]);
    struct pm_av *av = (struct pm_av *)(w + 1);

    memset(w, 0, h->qp[0].rep.sq_stride);
    w->opcode = WR_SEND;
    w->num_sge = 1;
    w->remote_qpn = ALL_QPS;
    w->remote_qkey = QKEY;
    memcpy(av->dgid, gid, 16);
    av->hop_limit = 5;
    av->sgid_index = sgid_index;
    *(struct pm_sge *)(av + 1) = (struct pm_sge){(uintptr_t)h->memory, len, h->key};
    fixture_post_send(h->s, &h->qp[0]);
    fixture_run(&h->f);
}

static void send_to_group(struct host *h, const uint8_t gid[16], uint32_t len)
{
    send_from(h, 0, gid, len);
}

/* Returns how many datagrams arrived at the QP. *e is the last one. */
static unsigned arrived(struct host *h, unsigned which, struct pm_cqe *e)
{
    struct pm_cqe c = {0};
    unsigned n = 0;

    while (fixture_poll(&h->cq, &c)) {
        if ((c.kind & PM_CQE_RECV) && c.qpn == h->qp[which].rep.qpn) {
            *e = c;
            n++;
        }
    }
    return n;
}

static void start_one(void)
{
    pick_groups();
    cr_assert(fixture_start(&host[0].f));
    start_users(&host[0]);
}

static void finish_one(void)
{
    fixture_end(&host[0].f);
}

TestSuite(mcast_control, .init = start_one, .fini = finish_one);

Test(mcast_control, only_ud_qps_join_multicast_groups)
{
    static const uint8_t v6[16] = {0xff, 0x0e, [15] = 1};
    uint8_t unicast[16];
    struct host *h = &host[0];
    uint32_t qpn = h->qp[0].rep.qpn;
    struct fixture_qp rc;

    memcpy(unicast, h->f.device->gid, 16);
    cr_assert_eq(fixture_qp(&h->f, h->s, h->pd, h->cq.rep.handle, 4, &rc), 0);
    cr_assert_eq(member(h, PM_OP_ATTACH_MCAST, rc.rep.qpn, group), -EINVAL, "not UD");
    cr_assert_eq(member(h, PM_OP_ATTACH_MCAST, qpn + 1000, group), -EINVAL);
    cr_assert_eq(member(h, PM_OP_ATTACH_MCAST, qpn, unicast), -EINVAL);
    cr_assert_eq(member(h, PM_OP_ATTACH_MCAST, qpn, v6), 0, "a group of IPv4 stands for it");
    cr_assert_eq(member(h, PM_OP_DETACH_MCAST, qpn, v6), 0);
    cr_assert_eq(member(h, PM_OP_DETACH_MCAST, qpn, group), -EINVAL, "no member");
    cr_assert_eq(h->f.device->num_groups, 0);
    cr_assert_eq(member(h, PM_OP_ATTACH_MCAST, qpn, group), 0);
    cr_assert_eq(member(h, PM_OP_ATTACH_MCAST, qpn, group), 0, "twice counts once");
    cr_assert_eq(member(h, PM_OP_ATTACH_MCAST, h->qp[1].rep.qpn, group), 0);
    cr_assert_eq(member(h, PM_OP_ATTACH_MCAST, qpn, second), 0);
    cr_assert_eq(h->f.device->num_groups, 2);
    cr_assert_eq(member(h, PM_OP_DETACH_MCAST, qpn, group), 0);
    cr_assert_eq(member(h, PM_OP_DETACH_MCAST, qpn, group), -EINVAL);
    cr_assert_eq(h->f.device->num_groups, 2);
    cr_assert_eq(member(h, PM_OP_DETACH_MCAST, h->qp[1].rep.qpn, group), 0);
    cr_assert_eq(h->f.device->num_groups, 1);
    session_close(h->s);
    cr_assert_eq(h->f.device->num_groups, 0, "a session leaves");
}

Test(mcast_control, limits)
{
    struct host *h = &host[0];
    uint8_t gid[16];

    memcpy(gid, group, 16);
    for (unsigned i = 0; i < DEVICE_MAX_MCAST_GRP; i++) {
        gid[14] = (uint8_t)(i >> 8);
        gid[15] = (uint8_t)i;
        cr_assert_eq(member(h, PM_OP_ATTACH_MCAST, h->qp[0].rep.qpn, gid), 0, "group %u: %s", i,
                     (char *)h->f.rp.payload);
    }
    gid[13] = group[13] ^ 1; /* a group that is not among them, for any process number */
    cr_assert_eq(member(h, PM_OP_ATTACH_MCAST, h->qp[0].rep.qpn, gid), -ENOMEM);
    for (unsigned i = 0; i < DEVICE_MAX_MCAST_QP; i++) {
        struct fixture_qp qp;

        cr_assert_eq(fixture_qp_typed(&h->f, h->s, h->pd, h->cq.rep.handle, QPT_UD, 0, 1, &qp), 0);
        gid[13] = group[13];
        cr_assert_eq(member(h, PM_OP_ATTACH_MCAST, qp.rep.qpn, gid), i + 1 < DEVICE_MAX_MCAST_QP ? 0 : -ENOMEM, "%u",
                     i);
    }
}

/* Each member gets a copy, except for the sender. The datagram is also sent to the network, which does not exist in
 * this test. */
Test(mcast_control, members_of_the_same_device)
{
    struct host *h = &host[0];
    struct pm_cqe e = {0};

    cr_assert_eq(member(h, PM_OP_ATTACH_MCAST, h->qp[0].rep.qpn, group), 0);
    cr_assert_eq(member(h, PM_OP_ATTACH_MCAST, h->qp[1].rep.qpn, group), 0);
    post_recv(h, 0, 4096);
    post_recv(h, 1, 8192);
    memset(h->memory, 0x3c, 500);
    send_to_group(h, group, 500);
    cr_assert_eq(arrived(h, 1, &e), 1);
    cr_assert(e.byte_len == GRH + 500 && e.src_qp == h->qp[0].rep.qpn);
    cr_assert_arr_eq(e.data + 36, group + 12, 4, "the group is the destination");
    cr_assert_arr_eq(h->memory + 8192 + GRH, h->memory, 500);
    cr_assert_eq(h->memory[4096 + GRH], 0, "not to the sender");
    send_to_group(h, second, 500);
    cr_assert_eq(arrived(h, 1, &e), 0, "another group");
}

/* --- two devices with sockets ------------------------------------------------------------------ */

static void start_at(int i, const char *addresses)
{
    struct fixture *f = &host[i].f;
    char why[ERROR_TEXT_MAX];

    signal(SIGPIPE, SIG_IGN);
    settings_init(&f->settings);
    cr_assert_eq(settings_add_device(&f->settings, "test0", addresses, why), 0);
    f->device = aligned_alloc(64, (sizeof(*f->device) + 63) & ~(size_t)63);
    cr_assert_eq(device_init(f->device, &f->settings, 0, why), 0);
    cr_assert_eq(device_open(f->device, why), 0, "%s", why);
    start_users(&host[i]);
}

static void start_two(void)
{
    char address[32];

    pick_groups();
    for (int i = 0; i < 2; i++) {
        snprintf(address, sizeof(address), "127.%d.%d.%d", 64 + (getpid() >> 15 & 63), getpid() >> 7 & 255,
                 (getpid() & 127) * 2 + i);
        start_at(i, address);
    }
}

static void finish_two(void)
{
    for (int i = 0; i < 2; i++)
        fixture_end(&host[i].f);
}

TestSuite(mcast_network, .init = start_two, .fini = finish_two);

static void run_both(void)
{
    for (int i = 0; i < 20; i++) {
        for (int k = 0; k < 2; k++) {
            ev_run(host[k].f.device->loop, EVRUN_NOWAIT);
            device_pass(host[k].f.device, clock_ns());
        }
        usleep(500);
    }
}

Test(mcast_network, one_copy_for_each_member)
{
    struct pm_cqe e = {0};

    cr_assert_eq(member(&host[0], PM_OP_ATTACH_MCAST, host[0].qp[0].rep.qpn, group), 0, "%s",
                 (char *)host[0].f.rp.payload);
    cr_assert_eq(member(&host[0], PM_OP_ATTACH_MCAST, host[0].qp[1].rep.qpn, group), 0);
    cr_assert_eq(member(&host[1], PM_OP_ATTACH_MCAST, host[1].qp[0].rep.qpn, group), 0);
    cr_assert_eq(member(&host[1], PM_OP_ATTACH_MCAST, host[1].qp[1].rep.qpn, group), 0);
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < 4; i++)
            post_recv(&host[k], (unsigned)i & 1, 4096 + 2048 * (size_t)(i & 1));
    }
    memset(host[0].memory, 0x71, 800);
    send_to_group(&host[0], group, 800);
    run_both();
    cr_assert_eq(arrived(&host[0], 1, &e), 1, "the kernel's copy does not come on top");
    cr_assert_eq(host[1].f.device->io.rx_icrc_errors, 0);
    cr_assert(fixture_poll(&host[1].cq, &e));
    cr_assert_eq(e.byte_len, GRH + 800);
    cr_assert_eq(e.data[28], 5, "the hop limit that was asked for, not multicast's default");
    cr_assert_arr_eq(e.data + 32, host[0].f.device->gid + 12, 4);
    cr_assert_arr_eq(e.data + 36, group + 12, 4);
    cr_assert(fixture_poll(&host[1].cq, &e) && e.byte_len == GRH + 800);
    cr_assert_not(fixture_poll(&host[1].cq, &e));
    cr_assert_arr_eq(host[1].memory + 4096 + GRH, host[0].memory, 800);
    cr_assert_arr_eq(host[1].memory + 6144 + GRH, host[0].memory, 800);
}

Test(mcast_network, only_joined_groups_are_received)
{
    struct pm_cqe e = {0};

    cr_assert_eq(member(&host[0], PM_OP_ATTACH_MCAST, host[0].qp[1].rep.qpn, group), 0);
    cr_assert_eq(member(&host[1], PM_OP_ATTACH_MCAST, host[1].qp[0].rep.qpn, second), 0);
    post_recv(&host[1], 0, 4096);
    send_to_group(&host[0], group, 800);
    run_both();
    cr_assert_eq(arrived(&host[1], 0, &e), 0);
    cr_assert_eq(member(&host[1], PM_OP_DETACH_MCAST, host[1].qp[0].rep.qpn, second), 0);
    cr_assert_eq(member(&host[1], PM_OP_ATTACH_MCAST, host[1].qp[0].rep.qpn, group), 0);
    send_to_group(&host[0], group, 800);
    run_both();
    cr_assert_eq(arrived(&host[1], 0, &e), 1);
    cr_assert_eq(member(&host[1], PM_OP_DETACH_MCAST, host[1].qp[0].rep.qpn, group), 0);
    post_recv(&host[1], 0, 4096);
    send_to_group(&host[0], group, 800);
    run_both();
    cr_assert_eq(arrived(&host[1], 0, &e), 0, "it has left");
}

/* perftest uses IPv6 groups, whatever address the device has. */
Test(mcast_network, a_group_of_the_other_family)
{
    uint8_t v6[16] = {0xff, 0x01, [6] = 0x12};
    struct pm_cqe e = {0};

    v6[13] = group[13];
    v6[14] = group[14];
    cr_assert_eq(member(&host[1], PM_OP_ATTACH_MCAST, host[1].qp[0].rep.qpn, v6), 0, "%s",
                 (char *)host[1].f.rp.payload);
    post_recv(&host[1], 0, 4096);
    post_recv(&host[1], 0, 4096);
    send_to_group(&host[0], v6, 800);
    v6[15] = 7;
    send_to_group(&host[0], v6, 800);
    run_both();
    cr_assert_eq(arrived(&host[1], 0, &e), 1);
    cr_assert_eq(e.byte_len, GRH + 800);
}

/* Many datagrams at once, as a GSO batch if the kernel supports that. */
Test(mcast_network, several_datagrams_in_a_gso_batch)
{
    struct pm_cqe e = {0};
    unsigned n = 0;

    cr_assert_eq(member(&host[1], PM_OP_ATTACH_MCAST, host[1].qp[0].rep.qpn, group), 0);
    host[0].f.settings.gso = GSO_ON;
    host[0].f.device->udp.gso_mode = GSO_ON;
    for (unsigned i = 0; i < 16; i++)
        post_recv(&host[1], 0, 4096);
    for (unsigned i = 0; i < 16; i++) {
        struct fixture_qp *qp = &host[0].qp[0];
        struct pm_send_wqe *w = fixture_send_slot(qp);
        struct pm_av *av = (struct pm_av *)(w + 1);

        memset(w, 0, qp->rep.sq_stride);
        w->opcode = WR_SEND;
        w->num_sge = 1;
        w->remote_qpn = ALL_QPS;
        w->remote_qkey = QKEY;
        memcpy(av->dgid, group, 16);
        *(struct pm_sge *)(av + 1) = (struct pm_sge){(uintptr_t)host[0].memory, 1000, host[0].key};
        qp->tail++;
    }
    atomic_store(&host[0].qp[0].page->sq_tail, host[0].qp[0].tail);
    fixture_ring(host[0].s, &host[0].qp[0]);
    run_both();
    n = arrived(&host[1], 0, &e);
    cr_assert_eq(n, 16, "%u arrived; %lu ICRC errors", n, (unsigned long)host[1].f.device->io.rx_icrc_errors);
}

/* --- devices with addresses of both families ---------------------------------------------------- */

static bool own_namespace(void)
{
    /* Root needs no user namespace, and often may not create one. */
    return (unshare(CLONE_NEWNET) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0) &&
           system("ip link set lo up && ip -6 route add local ff00::/8 dev lo &&"
                  "ip -6 address add fd00::1/128 dev lo nodad && ip -6 address add fd00::2/128 dev lo nodad") == 0;
}

/* The source address of a sender decides in which family its packets travel. A member receives both. */
Test(mcast_families, a_group_is_joined_in_each_family)
{
    static const uint8_t v6[16] = {0xff, 0x0e, [15] = 7};
    const uint8_t *const groups[] = {v6, group};
    struct pm_cqe e = {0};

    if (!own_namespace())
        SKIP_TEST("multicast in both families", "no network namespace can be made here");
    pick_groups();
    start_at(0, "127.0.0.1+fd00::1");
    start_at(1, "127.0.0.2+fd00::2");
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(member(&host[1], PM_OP_ATTACH_MCAST, host[1].qp[0].rep.qpn, groups[i]), 0, "%s",
                     (char *)host[1].f.rp.payload);
        for (uint8_t from = 0; from < 2; from++) {
            post_recv(&host[1], 0, 4096);
            send_from(&host[0], from, groups[i], 800);
            run_both();
            cr_assert_eq(arrived(&host[1], 0, &e), 1, "group %d from GID %u", i, from);
            cr_assert_eq(e.byte_len, GRH + 800);
        }
    }
    cr_assert_eq(system("ip -6 address del fd00::2/128 dev lo"), 0);
    run_both();
    post_recv(&host[1], 0, 4096);
    send_from(&host[0], 1, v6, 800);
    run_both();
    cr_assert_eq(arrived(&host[1], 0, &e), 0, "the device has no address of this family any more");
    cr_assert_eq(system("ip -6 address add fd00::2/128 dev lo nodad"), 0);
    run_both();
    send_from(&host[0], 1, v6, 800);
    run_both();
    cr_assert_eq(arrived(&host[1], 0, &e), 1, "and now it has one again");
    finish_two();
}
