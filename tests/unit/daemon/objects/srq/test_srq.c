// SPDX-License-Identifier: BSD-2-Clause
/* SRQs in the daemon: each field of the control operations, the limit event, resizing with requests in the ring, and
 * clients that write an invalid ring. */
#include <criterion/criterion.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <unistd.h>

#include "tests/unit/daemon/daemon_fixture.h"

static struct fixture f;
static struct session *s;
static int events = -1; /* read end of the session's asynchronous events */
static struct fixture_cq cq;
static struct fixture_srq srq;
static struct fixture_qp a, b; /* a sends, b receives from the SRQ */
static uint32_t pd, key;
static uint8_t memory[65536];

static void start(void)
{
    cr_assert(fixture_start(&f));
    s = fixture_session_events(&f, &events);
    cr_assert_not_null(s);
    pd = fixture_pd(&f, s);
    key = fixture_mr(&f, s, pd, memory, sizeof(memory), ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE);
    cr_assert_eq(fixture_cq(&f, s, 64, 0, &cq), 0);
}

static void start_pair(void)
{
    start();
    cr_assert_eq(fixture_srq(&f, s, pd, 8, &srq), 0, "%s", (char *)f.rp.payload);
    cr_assert_eq(fixture_qp(&f, s, pd, cq.rep.handle, 16, &a), 0);
    cr_assert_eq(fixture_qp_typed(&f, s, pd, cq.rep.handle, QPT_RC, srq.rep.handle, 16, &b), 0, "%s",
                 (char *)f.rp.payload);
    cr_assert_eq(fixture_connect_both(&f, s, &a, &b), 0, "%s", (char *)f.rp.payload);
}

static void finish(void)
{
    close(events);
    fixture_end(&f);
}

static int call(uint32_t op, const void *rq, size_t len)
{
    int rc = fixture_call(&f, s, op, rq, len, NULL, 0);

    fixture_close_fds(&f);
    return rc;
}
#define CALL(op, rq) call(op, &(rq), sizeof(rq))

static void post_recv(size_t to, uint32_t len, uint32_t wqe_index)
{
    struct pm_recv_wqe *w = fixture_srq_slot(&srq);

    *w = (struct pm_recv_wqe){.wr_id = 2000 + srq.tail, .num_sge = 1, .wqe_index = wqe_index};
    *(struct pm_sge *)(w + 1) = (struct pm_sge){(uintptr_t)memory + to, len, key};
    fixture_post_srq(s, &srq);
}

static void send_one(uint32_t len)
{
    struct pm_send_wqe *w = fixture_send_slot(&a);

    memset(w, 0, sizeof(*w));
    w->wr_id = 1000 + a.tail;
    w->opcode = WR_SEND;
    w->flags = PM_SEND_SIGNALED;
    w->num_sge = 1;
    *(struct pm_sge *)(w + 1) = (struct pm_sge){(uintptr_t)memory, len, key};
    fixture_post_send(s, &a);
    fixture_run(&f);
}

/* Takes the next completion of a receive request. */
static bool next_recv(struct pm_cqe *e)
{
    while (fixture_poll(&cq, e)) {
        if (e->kind & PM_CQE_RECV)
            return true;
    }
    return false;
}

/* True if such an event came. Other events are skipped. */
static bool event(uint32_t type, uint32_t handle)
{
    struct pm_async_event ev;

    while (fixture_event(events, &ev)) {
        if (ev.type == type && ev.handle == handle)
            return true;
    }
    return false;
}

static uint8_t state_of(uint32_t qpn)
{
    struct pm_handle h = {qpn};
    struct pm_query_qp_rep rep;

    cr_assert_eq(fixture_call(&f, s, PM_OP_QUERY_QP, &h, sizeof(h), &rep, sizeof(rep)), 0);
    return (uint8_t)rep.attr.qp_state;
}

TestSuite(srq_control, .init = start, .fini = finish);
TestSuite(srq_rings, .init = start_pair, .fini = finish);

Test(srq_control, limits)
{
    const struct pm_create_srq_req good = {.pd = pd, .type = IBV_SRQT_BASIC, .max_wr = 10, .max_sge = 3};
    struct pm_create_srq_req r;
    struct pm_create_srq_rep rep;

#define TRY(field, value) (r = good, r.field = (value), CALL(PM_OP_CREATE_SRQ, r))
    cr_assert_eq(fixture_call(&f, s, PM_OP_CREATE_SRQ, &good, sizeof(good), &rep, sizeof(rep)), 0);
    fixture_close_fds(&f);
    cr_assert(rep.max_wr == 10 && rep.max_sge == 3 && rep.slots == 16 && rep.stride == 64);
    cr_assert_eq(rep.srqn, 0, "a basic one has no number on the wire");
    cr_assert_eq(TRY(pd, 0), -EINVAL);
    cr_assert_eq(TRY(max_wr, 0), -EINVAL);
    cr_assert_eq(TRY(max_wr, DEVICE_MAX_QP_WR + 1), -EINVAL);
    cr_assert_eq(TRY(max_wr, UINT32_MAX), -EINVAL);
    cr_assert_eq(TRY(max_sge, ENGINE_MAX_SGE + 1), -EINVAL);
    cr_assert_eq(TRY(limit, 11), -EINVAL);
    cr_assert_lt(TRY(type, 77), 0);
    r = good;
    r.max_wr = DEVICE_MAX_QP_WR;
    r.max_sge = ENGINE_MAX_SGE;
    cr_assert_eq(CALL(PM_OP_CREATE_SRQ, r), 0, "all limits at once");
}

Test(srq_control, query_modify_and_destroy_while_in_use)
{
    struct pm_modify_srq_req m;
    struct pm_query_srq_rep rep;
    struct pm_handle h;

    cr_assert_eq(fixture_srq(&f, s, pd, 10, &srq), 0);
    h.handle = srq.rep.handle;
    m = (struct pm_modify_srq_req){.srq = h.handle, .limit = 4};
    for (uint32_t i = 0; i < 6; i++)
        post_recv(0, 64, i);
    cr_assert_eq(CALL(PM_OP_MODIFY_SRQ, m), 0);
    cr_assert_eq(fixture_call(&f, s, PM_OP_QUERY_SRQ, &h, sizeof(h), &rep, sizeof(rep)), 0);
    cr_assert(rep.max_wr == 10 && rep.max_sge == 2 && rep.limit == 4);
    m.limit = 11;
    cr_assert_eq(CALL(PM_OP_MODIFY_SRQ, m), -EINVAL);
    m.limit = 0;
    cr_assert_eq(CALL(PM_OP_MODIFY_SRQ, m), 0);
    cr_assert_eq(fixture_call(&f, s, PM_OP_QUERY_SRQ, &h, sizeof(h), &rep, sizeof(rep)), 0);
    cr_assert_eq(rep.limit, 0);
    cr_assert_eq(fixture_qp_typed(&f, s, pd, cq.rep.handle, QPT_RC, h.handle, 4, &b), 0);
    cr_assert(b.rep.rq_slots == 0 && b.rep.max_recv_wr == 0);
    cr_assert_eq(CALL(PM_OP_DESTROY_SRQ, h), -EBUSY);
    cr_assert_eq(call(PM_OP_DEALLOC_PD, &(struct pm_handle){pd}, sizeof(h)), -EBUSY);
    cr_assert_eq(call(PM_OP_DESTROY_QP, &(struct pm_handle){b.rep.qpn}, sizeof(h)), 0);
    cr_assert_eq(CALL(PM_OP_DESTROY_SRQ, h), 0);
    cr_assert_eq(CALL(PM_OP_DESTROY_SRQ, h), -EINVAL, "twice");
    cr_assert_eq(CALL(PM_OP_QUERY_SRQ, h), -EINVAL);
    m.srq = h.handle;
    cr_assert_eq(CALL(PM_OP_MODIFY_SRQ, m), -EINVAL);
}

Test(srq_control, a_session_cannot_use_srqs_of_other_sessions)
{
    struct session *other = fixture_session(&f);
    struct fixture_srq theirs;
    struct fixture_qp q;
    uint32_t their_pd = fixture_pd(&f, other);

    cr_assert_eq(fixture_srq(&f, other, their_pd, 4, &theirs), 0);
    cr_assert_eq(call(PM_OP_DESTROY_SRQ, &(struct pm_handle){theirs.rep.handle}, 4), -EINVAL);
    cr_assert_eq(fixture_qp_typed(&f, s, pd, cq.rep.handle, QPT_RC, theirs.rep.handle, 4, &q), -EINVAL);
    session_close(other);
    cr_assert_eq(f.device->num_sessions, 1);
}

Test(srq_rings, requests_complete_under_their_cookies)
{
    struct pm_cqe e;

    for (uint32_t i = 0; i < 8; i++)
        post_recv(4096 + i * 1024, 1024, 700 + i);
    for (int i = 0; i < 1000; i++)
        memory[i] = (uint8_t)(i * 7 + 3);
    send_one(1000);
    cr_assert(next_recv(&e));
    cr_assert(e.status == WC_SUCCESS && e.srq == srq.rep.handle && e.slot == 700 && e.wr_id == 2000);
    cr_assert_eq(e.qpn, b.rep.qpn);
    cr_assert_arr_eq(memory + 4096, memory, 1000);
    for (uint32_t round = 0; round < 40; round++) { /* until the ring wraps */
        post_recv(4096, 1024, round);
        send_one(100);
        cr_assert(next_recv(&e) && e.status == WC_SUCCESS);
        cr_assert_eq(e.wr_id, 2001 + round);
    }
}

Test(srq_rings, limit_event_comes_once)
{
    struct pm_modify_srq_req m = {.srq = srq.rep.handle, .limit = 3};
    struct pm_query_srq_rep rep;
    struct pm_handle h = {srq.rep.handle};

    for (uint32_t i = 0; i < 5; i++)
        post_recv(4096, 1024, i);
    cr_assert_eq(CALL(PM_OP_MODIFY_SRQ, m), 0);
    send_one(100);
    send_one(100);
    cr_assert_not(event(IBV_EVENT_SRQ_LIMIT_REACHED, h.handle), "three are left, which is the limit");
    send_one(100);
    cr_assert(event(IBV_EVENT_SRQ_LIMIT_REACHED, h.handle));
    cr_assert_eq(fixture_call(&f, s, PM_OP_QUERY_SRQ, &h, sizeof(h), &rep, sizeof(rep)), 0);
    cr_assert_eq(rep.limit, 0, "disarmed");
    send_one(100);
    cr_assert_not(event(IBV_EVENT_SRQ_LIMIT_REACHED, h.handle));
}

/* Requests in the ring count, although the engine has not asked for them yet. */
Test(srq_rings, limit_counts_the_ring)
{
    struct pm_modify_srq_req m = {.srq = srq.rep.handle, .limit = 3};

    post_recv(4096, 1024, 0);
    send_one(100);
    for (uint32_t i = 1; i < 6; i++)
        post_recv(4096, 1024, i);
    cr_assert_eq(CALL(PM_OP_MODIFY_SRQ, m), 0);
    send_one(100);
    cr_assert_not(event(IBV_EVENT_SRQ_LIMIT_REACHED, srq.rep.handle));
    send_one(100);
    send_one(100);
    cr_assert(event(IBV_EVENT_SRQ_LIMIT_REACHED, srq.rep.handle));
}

Test(srq_rings, resize_keeps_outstanding_requests)
{
    struct pm_resize_srq_req r = {.srq = srq.rep.handle, .max_wr = 3};
    struct pm_handle h = {srq.rep.handle};
    struct pm_resize_srq_rep rep;
    struct pm_cqe e;

    for (uint32_t i = 0; i < 6; i++)
        post_recv(4096 + i * 1024, 1024, 50 + i);
    send_one(100);
    cr_assert(next_recv(&e) && e.slot == 50);
    cr_assert_eq(CALL(PM_OP_RESIZE_SRQ, r), -EINVAL, "five are outstanding");
    r.max_wr = DEVICE_MAX_QP_WR + 1;
    cr_assert_eq(CALL(PM_OP_RESIZE_SRQ, r), -EINVAL);
    r.max_wr = 0;
    cr_assert_eq(CALL(PM_OP_RESIZE_SRQ, r), -EINVAL);
    r.max_wr = 100;
    cr_assert_eq(fixture_call(&f, s, PM_OP_RESIZE_SRQ, &r, sizeof(r), &rep, sizeof(rep)), 0);
    cr_assert(rep.max_wr == 100 && rep.slots == 128 && rep.stride == srq.rep.stride);
    send_one(100);
    cr_assert(next_recv(&e) && e.status == WC_SUCCESS && e.slot == 51, "the old ring is in use meanwhile");
    munmap(srq.page, srq.rep.size);
    srq.page = fixture_map(&f, rep.size);
    cr_assert_eq(CALL(PM_OP_SWITCH_SRQ, h), 0);
    cr_assert_eq(CALL(PM_OP_SWITCH_SRQ, h), -EINVAL, "there is nothing new");
    srq.base = (uint8_t *)srq.page;
    srq.rep.slots = rep.slots;
    srq.rep.size = rep.size;
    cr_assert_eq(atomic_load(&srq.page->tail), srq.tail);
    for (uint32_t i = 6; i < 90; i++)
        post_recv(4096, 1024, 50 + i);
    for (uint32_t i = 2; i < 90; i++) {
        send_one(100);
        cr_assert(next_recv(&e) && e.status == WC_SUCCESS && e.slot == 50 + i, "request %u", i);
    }
    r.max_wr = 2;
    cr_assert_eq(fixture_call(&f, s, PM_OP_RESIZE_SRQ, &r, sizeof(r), &rep, sizeof(rep)), 0, "down again");
    cr_assert_eq(rep.slots, 2);
    fixture_close_fds(&f);
    cr_assert_eq(CALL(PM_OP_SWITCH_SRQ, h), 0);
    srq.page = NULL;
}

/* The requests that are posted between the two steps of a resize may be too many for the new size. */
Test(srq_rings, resize_that_came_too_late)
{
    struct pm_resize_srq_req r = {.srq = srq.rep.handle, .max_wr = 2};
    struct pm_handle h = {srq.rep.handle};
    struct pm_cqe e;

    cr_assert_eq(CALL(PM_OP_SWITCH_SRQ, h), -EINVAL, "nobody has resized it");
    cr_assert_eq(CALL(PM_OP_RESIZE_SRQ, r), 0);
    for (uint32_t i = 0; i < 3; i++)
        post_recv(4096 + i * 1024, 1024, 50 + i);
    cr_assert_eq(CALL(PM_OP_SWITCH_SRQ, h), -EINVAL);
    for (uint32_t i = 0; i < 3; i++) {
        send_one(100);
        cr_assert(next_recv(&e) && e.status == WC_SUCCESS && e.slot == 50 + i);
    }
    cr_assert_eq(CALL(PM_OP_RESIZE_SRQ, r), 0, "begun, and never ended");
}

/* The SRQ and the QPs that use it fail. Other QPs go on. */
static void assert_failed(const char *why)
{
    cr_assert_eq(f.device->io.bad_rings, 2, "%s: the ring, and the queue pair that uses it", why);
    cr_assert(event(IBV_EVENT_SRQ_ERR, srq.rep.handle), "%s", why);
    cr_assert_eq(state_of(b.rep.qpn), QPS_ERR, "%s", why);
    cr_assert_eq(f.device->num_sessions, 1);
    cr_assert_eq(call(PM_OP_DESTROY_QP, &(struct pm_handle){b.rep.qpn}, 4), 0);
    cr_assert_eq(call(PM_OP_DESTROY_SRQ, &(struct pm_handle){srq.rep.handle}, 4), 0);
    fixture_run(&f);
}

Test(srq_rings, tail_beyond_the_ring)
{
    atomic_store(&srq.page->tail, srq.rep.slots + 1);
    send_one(100);
    assert_failed("one more than there are slots");
}

Test(srq_rings, too_many_sges)
{
    post_recv(4096, 1024, 0);
    ((struct pm_recv_wqe *)(srq.base + srq.rep.offset))->num_sge = UINT32_MAX;
    send_one(100);
    assert_failed("4 G SGEs");
}

Test(srq_rings, a_control_operation_reads_the_ring)
{
    struct pm_resize_srq_req r = {.srq = srq.rep.handle, .max_wr = 16};

    atomic_store(&srq.page->tail, 0x80000000u);
    cr_assert_eq(CALL(PM_OP_RESIZE_SRQ, r), -EINVAL);
    fixture_run(&f);
    assert_failed("while it was resized");
}

Test(srq_rings, doorbell_reads_the_ring)
{
    fixture_ring_bell(s, srq.rep.doorbell);
    post_recv(4096, 1024, 0);
    ((struct pm_recv_wqe *)(srq.base + srq.rep.offset))->num_sge = 99;
    fixture_ring_bell(s, srq.rep.doorbell);
    fixture_run(&f);
    assert_failed("nobody sent anything");
}

/* A session ends while all its objects are in use. */
Test(srq_rings, the_end_of_a_session_frees_everything)
{
    for (uint32_t i = 0; i < 8; i++)
        post_recv(4096, 1024, i);
    send_one(100);
    session_close(s);
    cr_assert_eq(f.device->num_sessions, 0);
    cr_assert_eq(f.device->pds.count, 0);
    cr_assert_eq(device_deadline(f.device), NEVER);
}
