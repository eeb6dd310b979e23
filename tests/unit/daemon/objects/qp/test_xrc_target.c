// SPDX-License-Identifier: BSD-2-Clause
/* XRC in the daemon: which processes open which domain, SRQs in a domain, target QPs that outlive their creators, and
 * events to all processes that have a target QP open. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/unit/daemon/daemon_fixture.h"

static struct fixture f;
static char path[64];
static int file = -1;

static void start(void)
{
    snprintf(path, sizeof(path), "/tmp/pumice-xrc-XXXXXX");
    file = mkstemp(path);
    cr_assert_geq(file, 0);
    cr_assert(fixture_start(&f));
}

static void finish(void)
{
    close(file);
    unlink(path);
    fixture_end(&f);
}

/* Returns a handle, or -errno. */
static int64_t open_domain(struct session *s, int fd, int oflags)
{
    struct pm_open_xrcd_req r = {.has_fd = fd != -1, .oflags = (uint32_t)oflags};
    struct pm_handle h = {0};
    int rc = fixture_call_fd(&f, s, PM_OP_OPEN_XRCD, &r, sizeof(r), fd, &h, sizeof(h));

    return rc ? rc : (int64_t)h.handle;
}

static int on_handle(struct session *s, uint32_t op, uint32_t handle)
{
    struct pm_handle h = {handle};

    return fixture_call(&f, s, op, &h, sizeof(h), NULL, 0);
}

static int make_srq(struct session *s, uint32_t pd, uint32_t xrcd, uint32_t cq, struct fixture_srq *srq)
{
    struct pm_create_srq_req r = {.pd = pd, .type = IBV_SRQT_XRC, .xrcd = xrcd, .cq = cq, .max_wr = 16, .max_sge = 1};
    int rc = fixture_call(&f, s, PM_OP_CREATE_SRQ, &r, sizeof(r), &srq->rep, sizeof(srq->rep));

    if (rc)
        return rc;
    srq->page = fixture_map(&f, srq->rep.size);
    srq->base = (uint8_t *)srq->page;
    srq->tail = 0;
    return 0;
}

static int make_target(struct session *s, uint32_t xrcd, uint32_t *qpn)
{
    struct pm_create_qp_req r = {.type = QPT_XRC_RECV, .xrcd = xrcd};
    struct pm_create_qp_rep rep = {0};
    int rc = fixture_call(&f, s, PM_OP_CREATE_QP, &r, sizeof(r), &rep, sizeof(rep));

    fixture_close_fds(&f);
    *qpn = rep.qpn;
    return rc;
}

static int open_target(struct session *s, uint32_t xrcd, uint32_t qpn)
{
    struct pm_open_qp_req r = {xrcd, qpn};

    return fixture_call(&f, s, PM_OP_OPEN_QP, &r, sizeof(r), NULL, 0);
}

static int modify(struct session *s, uint32_t qpn, enum qp_state state, uint32_t dest, uint32_t mask)
{
    struct pm_modify_qp_req m = {.qpn = qpn, .mask = QPA_STATE | mask};

    m.attr.qp_state = state;
    m.attr.port_num = 1;
    m.attr.qp_access_flags = ACCESS_REMOTE_WRITE | ACCESS_LOCAL_WRITE;
    m.attr.path_mtu = 1;
    m.attr.dest_qp_num = dest;
    m.attr.rq_psn = m.attr.sq_psn = 7;
    m.attr.max_rd_atomic = m.attr.max_dest_rd_atomic = 1;
    m.attr.min_rnr_timer = 1;
    m.attr.timeout = 8;
    m.attr.retry_cnt = m.attr.rnr_retry = 1;
    memcpy(m.attr.av.dgid, f.device->gid, 16);
    return fixture_call(&f, s, PM_OP_MODIFY_QP, &m, sizeof(m), NULL, 0);
}

#define TO_INIT (QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS)
#define TO_RTR (QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN)

static int connect_initiator(struct session *s, uint32_t qpn, uint32_t dest)
{
    int rc = modify(s, qpn, QPS_INIT, 0, TO_INIT);

    if (rc == 0)
        rc = modify(s, qpn, QPS_RTR, dest, TO_RTR);
    return rc ? rc
              : modify(s, qpn, QPS_RTS, 0,
                       QPA_SQ_PSN | QPA_TIMEOUT | QPA_RETRY_CNT | QPA_RNR_RETRY | QPA_MAX_RD_ATOMIC);
}

static int connect_target(struct session *s, uint32_t qpn, uint32_t dest)
{
    int rc = modify(s, qpn, QPS_INIT, 0, TO_INIT);

    return rc ? rc : modify(s, qpn, QPS_RTR, dest, TO_RTR | QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER);
}

TestSuite(xrc_domains, .init = start, .fini = finish);

Test(xrc_domains, flags_with_a_file)
{
    struct session *s = fixture_session(&f), *t = fixture_session(&f);
    int again, pipes[2];
    int64_t a, b;

    cr_assert_eq(open_domain(s, file, 0), -EAGAIN, "absent, no O_CREAT");
    cr_assert_eq(open_domain(s, file, O_EXCL), -EAGAIN);
    cr_assert_eq(f.device->xrcds.count, 0);
    a = open_domain(s, file, O_CREAT | O_EXCL);
    cr_assert_gt(a, 0, "absent: created");
    cr_assert_eq(open_domain(t, file, O_EXCL), -EINVAL, "O_EXCL alone is enough");
    cr_assert_eq(open_domain(t, file, O_CREAT | O_EXCL), -EINVAL);
    again = open(path, O_RDONLY);
    b = open_domain(t, again, O_CREAT);
    cr_assert_gt(b, 0);
    close(again);
    cr_assert_gt(open_domain(t, file, 0), 0, "there, no O_CREAT");
    cr_assert_eq(f.device->xrcds.count, 1);
    cr_assert_eq(on_handle(s, PM_OP_CLOSE_XRCD, (uint32_t)a), 0);
    cr_assert_eq(on_handle(s, PM_OP_CLOSE_XRCD, (uint32_t)a), -EINVAL, "twice");
    cr_assert_eq(f.device->xrcds.count, 1, "the other still has it");
    session_close(t);
    cr_assert_eq(f.device->xrcds.count, 0, "a session that ends closes");
    cr_assert_eq(open_domain(s, file, 0), -EAGAIN);
    /* A pipe may identify a domain, but the daemon does not keep it open. */
    cr_assert_eq(pipe(pipes), 0);
    cr_assert_gt(open_domain(s, pipes[1], O_CREAT), 0);
    close(pipes[1]);
    cr_assert_eq(read(pipes[0], &a, 1), 0, "end of file: nobody can write any more");
    close(pipes[0]);
}

Test(xrc_domains, without_a_file)
{
    struct session *s = fixture_session(&f);
    struct pm_open_xrcd_req r = {.has_fd = 1, .oflags = O_CREAT};

    cr_assert_eq(open_domain(s, -1, 0), -EINVAL);
    cr_assert_eq(open_domain(s, -1, O_EXCL), -EINVAL);
    cr_assert_eq(open_domain(s, -1, O_CREAT | O_EXCL), -EINVAL);
    cr_assert_gt(open_domain(s, -1, O_CREAT), 0);
    cr_assert_gt(open_domain(s, -1, O_CREAT), 0);
    cr_assert_eq(f.device->xrcds.count, 2, "always a new one");
    cr_assert_eq(fixture_call(&f, s, PM_OP_OPEN_XRCD, &r, sizeof(r), NULL, 0), -EBADF, "promised, did not come");
}

/* The inode identifies the domain. Another path to it means the same domain. Another file at the same path means
 * another domain, even if the first file is gone and its number could be given out again. */
Test(xrc_domains, the_inode_is_the_name)
{
    struct session *s = fixture_session(&f);
    char second[80];
    int fd;

    snprintf(second, sizeof(second), "%s-2", path);
    cr_assert_eq(link(path, second), 0);
    cr_assert_gt(open_domain(s, file, O_CREAT), 0);
    fd = open(second, O_RDONLY);
    cr_assert_eq(open_domain(s, fd, O_CREAT | O_EXCL), -EINVAL, "a hard link");
    close(fd);
    unlink(second);
    unlink(path);
    close(file);
    for (int i = 0; i < 20; i++) {
        fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
        cr_assert_eq(open_domain(s, fd, 0), -EAGAIN, "a new file at the old path");
        close(fd);
        unlink(path);
    }
    file = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    cr_assert_eq(f.device->xrcds.count, 1);
}

/* Objects that were created with the caller's handle keep it open. Objects of other handles don't. */
Test(xrc_domains, users_keep_a_domain_alive)
{
    struct session *s = fixture_session(&f), *t = fixture_session(&f);
    uint32_t a = (uint32_t)open_domain(s, file, O_CREAT), b = (uint32_t)open_domain(t, file, 0);
    uint32_t pd = fixture_pd(&f, s), qpn;
    struct fixture_srq srq, other;
    struct fixture_cq cq;

    cr_assert_eq(fixture_cq(&f, s, 16, 0, &cq), 0);
    cr_assert_eq(make_srq(s, pd, a + 1, cq.rep.handle, &srq), -EINVAL);
    cr_assert_eq(make_srq(s, pd, a, cq.rep.handle + 1, &srq), -EINVAL);
    cr_assert_eq(make_srq(s, pd, a, cq.rep.handle, &srq), 0);
    cr_assert_eq(make_srq(s, pd, a, cq.rep.handle, &other), 0);
    cr_assert(srq.rep.srqn != 0 && srq.rep.srqn != other.rep.srqn && srq.rep.srqn <= 0xffffff);
    cr_assert_eq(on_handle(s, PM_OP_CLOSE_XRCD, a), -EBUSY);
    cr_assert_eq(on_handle(s, PM_OP_DESTROY_CQ, cq.rep.handle), -EBUSY);
    cr_assert_eq(on_handle(s, PM_OP_DEALLOC_PD, pd), -EBUSY);
    cr_assert_eq(on_handle(t, PM_OP_CLOSE_XRCD, b), 0);
    cr_assert_eq(on_handle(s, PM_OP_DESTROY_SRQ, srq.rep.handle), 0);
    cr_assert_eq(on_handle(s, PM_OP_DESTROY_SRQ, other.rep.handle), 0);
    cr_assert_eq(make_target(s, a + 7, &qpn), -EINVAL);
    cr_assert_eq(make_target(s, a, &qpn), 0);
    cr_assert_eq(on_handle(s, PM_OP_CLOSE_XRCD, a), -EBUSY);
    cr_assert_eq(on_handle(s, PM_OP_DESTROY_QP, qpn), 0);
    cr_assert_eq(f.device->targets.count, 0);
    cr_assert_eq(on_handle(s, PM_OP_CLOSE_XRCD, a), 0);
    cr_assert_eq(f.device->xrcds.count, 0);
}

Test(xrc_domains, an_xrc_srq_is_not_for_other_queue_pairs)
{
    struct session *s = fixture_session(&f);
    uint32_t a = (uint32_t)open_domain(s, file, O_CREAT), pd = fixture_pd(&f, s);
    struct fixture_srq srq;
    struct fixture_cq cq;
    struct fixture_qp qp;

    cr_assert_eq(fixture_cq(&f, s, 16, 0, &cq), 0);
    cr_assert_eq(make_srq(s, pd, a, cq.rep.handle, &srq), 0);
    cr_assert_eq(fixture_qp_typed(&f, s, pd, cq.rep.handle, QPT_RC, srq.rep.handle, 4, &qp), -EINVAL);
    cr_assert_eq(fixture_qp_typed(&f, s, pd, cq.rep.handle, QPT_XRC_SEND, srq.rep.handle, 4, &qp), 0);
    cr_assert(qp.rep.rq_slots == 0 && qp.rep.max_recv_wr == 0 && qp.rep.sq_slots == 4);
}

/* --- traffic: one session sends, one made the target, one receives ----------------------------- */

static struct session *sender, *maker, *receiver;
static int maker_events = -1, receiver_events = -1;
static struct fixture_cq send_cq, recv_cq;
static struct fixture_qp ini;
static struct fixture_srq srq;
static uint32_t target, send_key, recv_key, recv_xrcd;
static uint8_t memory[16384];

static void start_traffic(void)
{
    uint32_t pd;

    start();
    sender = fixture_session(&f);
    maker = fixture_session_events(&f, &maker_events);
    receiver = fixture_session_events(&f, &receiver_events);
    cr_assert_eq(make_target(maker, (uint32_t)open_domain(maker, file, O_CREAT), &target), 0, "%s",
                 (char *)f.rp.payload);
    pd = fixture_pd(&f, sender);
    send_key = fixture_mr(&f, sender, pd, memory, 8192, 0);
    cr_assert_eq(fixture_cq(&f, sender, 64, 0, &send_cq), 0);
    cr_assert_eq(fixture_qp_typed(&f, sender, pd, send_cq.rep.handle, QPT_XRC_SEND, 0, 16, &ini), 0, "%s",
                 (char *)f.rp.payload);
    recv_xrcd = (uint32_t)open_domain(receiver, file, 0);
    pd = fixture_pd(&f, receiver);
    recv_key = fixture_mr(&f, receiver, pd, memory + 8192, 8192, ACCESS_LOCAL_WRITE);
    cr_assert_eq(fixture_cq(&f, receiver, 64, 0, &recv_cq), 0);
    cr_assert_eq(make_srq(receiver, pd, recv_xrcd, recv_cq.rep.handle, &srq), 0);
    cr_assert_eq(connect_initiator(sender, ini.rep.qpn, target), 0, "%s", (char *)f.rp.payload);
    cr_assert_eq(connect_target(maker, target, ini.rep.qpn), 0, "%s", (char *)f.rp.payload);
}

static void finish_traffic(void)
{
    close(maker_events);
    close(receiver_events);
    finish();
}

TestSuite(xrc_traffic, .init = start_traffic, .fini = finish_traffic);

static void post_recv(uint32_t wqe_index)
{
    struct pm_recv_wqe *w = fixture_srq_slot(&srq);

    *w = (struct pm_recv_wqe){.wr_id = 2000 + srq.tail, .num_sge = 1, .wqe_index = wqe_index};
    *(struct pm_sge *)(w + 1) = (struct pm_sge){(uintptr_t)memory + 8192, 4096, recv_key};
    fixture_post_srq(receiver, &srq);
}

/* Returns the status of the request. */
static uint8_t send_to(uint32_t srqn)
{
    struct pm_send_wqe *w = fixture_send_slot(&ini);
    struct pm_cqe e = {0};

    memset(w, 0, sizeof(*w));
    w->opcode = WR_SEND;
    w->flags = PM_SEND_SIGNALED;
    w->num_sge = 1;
    w->srqn = srqn;
    *(struct pm_sge *)(w + 1) = (struct pm_sge){(uintptr_t)memory, 1000, send_key};
    fixture_post_send(sender, &ini);
    fixture_run(&f);
    cr_assert(fixture_poll(&send_cq, &e));
    return e.status;
}

static void assert_arrives(uint32_t wqe_index)
{
    struct pm_cqe e = {0};

    memset(memory, (int)(wqe_index & 0xff), 1000);
    post_recv(wqe_index);
    cr_assert_eq(send_to(srq.rep.srqn), WC_SUCCESS);
    cr_assert(fixture_poll(&recv_cq, &e));
    cr_assert(e.status == WC_SUCCESS && e.byte_len == 1000 && e.slot == wqe_index && e.srq == srq.rep.handle);
    cr_assert_eq(e.qpn, target);
    cr_assert_arr_eq(memory + 8192, memory, 1000);
}

Test(xrc_traffic, three_processes)
{
    for (uint32_t i = 0; i < 40; i++)
        assert_arrives(100 + i);
}

Test(xrc_traffic, only_members_of_the_domain_open_a_target)
{
    struct session *s = fixture_session(&f);
    uint32_t other = (uint32_t)open_domain(s, -1, O_CREAT);

    cr_assert_eq(open_target(s, other, target), -EINVAL, "in another domain");
    cr_assert_eq(open_target(receiver, recv_xrcd, ini.rep.qpn), -EINVAL, "no target");
    cr_assert_eq(open_target(receiver, recv_xrcd + 5, target), -EINVAL);
    cr_assert_eq(modify(receiver, target, QPS_ERR, 0, 0), -EINVAL, "not opened yet");
    cr_assert_eq(on_handle(receiver, PM_OP_DESTROY_QP, target), -EINVAL);
    cr_assert_eq(open_target(receiver, recv_xrcd, target), 0);
    cr_assert_eq(on_handle(receiver, PM_OP_QUERY_QP, target), 0);
    cr_assert_eq(on_handle(receiver, PM_OP_CLOSE_XRCD, recv_xrcd), -EBUSY);
}

/* The creator closes the target, and the other session still has it open. */
Test(xrc_traffic, the_last_opener_destroys_the_target)
{
    cr_assert_eq(open_target(receiver, recv_xrcd, target), 0);
    cr_assert_eq(open_target(receiver, recv_xrcd, target), 0, "a second handle");
    cr_assert_eq(on_handle(maker, PM_OP_DESTROY_QP, target), 0);
    cr_assert_eq(on_handle(maker, PM_OP_DESTROY_QP, target), -EINVAL, "not its own any more");
    assert_arrives(1);
    cr_assert_eq(on_handle(receiver, PM_OP_DESTROY_QP, target), 0);
    assert_arrives(2);
    cr_assert_eq(on_handle(receiver, PM_OP_DESTROY_QP, target), 0);
    cr_assert_eq(f.device->targets.count, 0);
    cr_assert_eq(send_to(srq.rep.srqn), WC_RETRY_EXC_ERR);
}

/* The creator dies. The target lives as long as its domain. */
Test(xrc_traffic, a_target_survives_the_death_of_its_maker)
{
    session_close(maker);
    assert_arrives(1);
    cr_assert_eq(open_target(receiver, recv_xrcd, target), 0, "and can be opened");
    session_close(receiver);
    cr_assert_eq(f.device->xrcds.count, 0);
    cr_assert_eq(f.device->targets.count, 0);
    cr_assert_eq(send_to(srq.rep.srqn), WC_RETRY_EXC_ERR);
}

Test(xrc_traffic, events_go_to_all_openers)
{
    struct pm_async_event ev;

    cr_assert_eq(open_target(receiver, recv_xrcd, target), 0);
    while (fixture_event(maker_events, &ev))
        ;
    cr_assert_eq(send_to(srq.rep.srqn ^ 0x800000), WC_REM_ACCESS_ERR, "no such SRQ");
    cr_assert(fixture_event(maker_events, &ev) && ev.type == IBV_EVENT_QP_ACCESS_ERR && ev.handle == target);
    cr_assert(fixture_event(receiver_events, &ev) && ev.type == IBV_EVENT_QP_ACCESS_ERR && ev.handle == target);
    cr_assert_not(fixture_event(receiver_events, &ev), "one for each handle");
}

/* When a handle is destroyed, its unread events are removed. The events of the other handle stay. */
Test(xrc_traffic, events_go_with_their_handle)
{
    struct pm_async_event ev;

    cr_assert_eq(open_target(receiver, recv_xrcd, target), 0);
    cr_assert_eq(open_target(receiver, recv_xrcd, target), 0);
    cr_assert_eq(send_to(srq.rep.srqn ^ 0x800000), WC_REM_ACCESS_ERR);
    cr_assert_eq(on_handle(receiver, PM_OP_DESTROY_QP, target), 0);
    cr_assert(fixture_event(receiver_events, &ev) && ev.type == IBV_EVENT_QP_ACCESS_ERR && ev.handle == target);
    cr_assert_not(fixture_event(receiver_events, &ev));
    cr_assert(fixture_event(maker_events, &ev) && ev.handle == target, "another session's are its own");
    cr_assert_eq(on_handle(receiver, PM_OP_DESTROY_QP, target), 0);
    cr_assert_not(fixture_event(receiver_events, &ev));
}

/* A receiver dies in the middle of a message. Its SRQ is no longer found. The target goes on for the others. */
Test(xrc_traffic, the_receiver_dies)
{
    assert_arrives(1);
    post_recv(2);
    session_close(receiver);
    cr_assert_eq(send_to(srq.rep.srqn), WC_REM_ACCESS_ERR);
    cr_assert_eq(f.device->xrcds.count, 1);
    session_close(maker);
    cr_assert_eq(f.device->xrcds.count, 0);
    cr_assert_eq(f.device->pds.count, 1, "the sender's");
}

/* A receiver writes an invalid request to its SRQ. The sender gets an error, and the sessions that have the target
 * open get an event. */
Test(xrc_traffic, a_broken_ring)
{
    struct pm_async_event ev;

    assert_arrives(1);
    while (fixture_event(receiver_events, &ev) || fixture_event(maker_events, &ev))
        ;
    atomic_store(&srq.page->tail, 0x80000000u);
    cr_assert_eq(send_to(srq.rep.srqn), WC_REM_OP_ERR);
    cr_assert(fixture_event(receiver_events, &ev) && ev.type == IBV_EVENT_SRQ_ERR && ev.handle == srq.rep.handle);
    cr_assert(fixture_event(maker_events, &ev) && ev.handle == target);
    cr_assert_eq(f.device->io.bad_rings, 1);
}
