// SPDX-License-Identifier: BSD-2-Clause
/* TM-SRQs in the daemon: their limits, list operations from their ring, and invalid rings. */
#include <criterion/criterion.h>
#include <endian.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/status/tm_status.h"
#include "tests/unit/daemon/daemon_fixture.h"
#include "wire/tmh.h"

static struct fixture f;
static struct session *s;
static int events = -1; /* read end of the session's asynchronous events */
static struct fixture_cq cq;
static struct pm_create_srq_rep srq;
static struct pm_srq_page *page;
static struct fixture_qp a, b; /* a sends, b receives */
static uint32_t pd, key;
static uint8_t memory[65536];

static int call(uint32_t op, const void *rq, size_t len)
{
    int rc = fixture_call(&f, s, op, rq, len, NULL, 0);

    fixture_close_fds(&f);
    return rc;
}
#define CALL(op, rq) call(op, &(rq), sizeof(rq))

static struct pm_create_srq_req request(uint32_t tags, uint32_t ops)
{
    return (struct pm_create_srq_req){.pd = pd,
                                      .type = IBV_SRQT_TM,
                                      .cq = cq.rep.handle,
                                      .max_wr = 8,
                                      .max_sge = 2,
                                      .max_num_tags = tags,
                                      .max_ops = ops};
}

static void make_list(uint32_t tags, uint32_t ops)
{
    struct pm_create_srq_req rq = request(tags, ops);

    cr_assert_eq(fixture_call(&f, s, PM_OP_CREATE_SRQ, &rq, sizeof(rq), &srq, sizeof(srq)), 0, "%s",
                 (char *)f.rp.payload);
    page = fixture_map(&f, srq.size);
    cr_assert_not_null(page);
}

static void start(void)
{
    cr_assert(fixture_start(&f));
    s = fixture_session_events(&f, &events);
    cr_assert_not_null(s);
    pd = fixture_pd(&f, s);
    key = fixture_mr(&f, s, pd, memory, sizeof(memory), ACCESS_LOCAL_WRITE);
    cr_assert_eq(fixture_cq(&f, s, 16384, 0, &cq), 0);
}

static void start_pair(void)
{
    start();
    make_list(4, 16);
    cr_assert_eq(fixture_qp(&f, s, pd, cq.rep.handle, 16, &a), 0);
    cr_assert_eq(fixture_qp_typed(&f, s, pd, cq.rep.handle, QPT_RC, srq.handle, 0, &b), 0, "%s", (char *)f.rp.payload);
    cr_assert_eq(fixture_connect_both(&f, s, &a, &b), 0, "%s", (char *)f.rp.payload);
}

static void finish(void)
{
    close(events);
    fixture_end(&f);
}

static struct pm_tm_op *slot(uint32_t i)
{
    return (struct pm_tm_op *)(void *)((uint8_t *)page + srq.ops_offset +
                                       (size_t)(i & (srq.ops_slots - 1)) * srq.ops_stride);
}

/* Writes an operation to the ring; bell: and rings. Returns its index. */
static uint32_t post(struct pm_tm_op op, bool bell)
{
    uint32_t i = atomic_load(&page->ops_tail);

    *slot(i) = op;
    if (op.opcode == IBV_WR_TAG_ADD && op.num_sge == 1)
        *(struct pm_sge *)(slot(i) + 1) = (struct pm_sge){(uintptr_t)memory + 4096, 1024, key};
    atomic_store(&page->ops_tail, i + 1);
    if (bell) {
        atomic_fetch_or(&s->page->bits[srq.doorbell / 64], UINT64_C(1) << srq.doorbell % 64);
        atomic_fetch_or(&s->page->summary[srq.doorbell / 64 / 64], UINT64_C(1) << (srq.doorbell / 64 % 64));
        fixture_run(&f);
    }
    return i;
}

static struct pm_tm_op add(uint32_t handle, uint64_t tag, uint8_t flags)
{
    return (struct pm_tm_op){.wr_id = 1,
                             .recv_wr_id = 2,
                             .tag = tag,
                             .mask = UINT64_MAX,
                             .handle = handle,
                             .opcode = IBV_WR_TAG_ADD,
                             .flags = flags,
                             .num_sge = 1};
}

static struct pm_tm_op del(uint32_t handle, uint8_t flags)
{
    return (struct pm_tm_op){.wr_id = 3, .handle = handle, .opcode = IBV_WR_TAG_DEL, .flags = flags};
}

static void send_tagged(uint64_t tag, uint32_t len)
{
    struct pm_send_wqe *w = fixture_send_slot(&a);
    struct tmh h = {.opcode = TMH_EAGER, .tag = tag, .app_ctx = 9};

    tmh_encode(&h, memory);
    memset(memory + TMH_LEN, 0xa5, len);
    memset(w, 0, sizeof(*w));
    w->opcode = WR_SEND;
    w->num_sge = 1;
    *(struct pm_sge *)(w + 1) = (struct pm_sge){(uintptr_t)memory, TMH_LEN + len, key};
    fixture_post_send(s, &a);
    fixture_run(&f);
}

static bool event(uint32_t type)
{
    struct pm_async_event ev;

    while (fixture_event(events, &ev)) {
        if (ev.type == type)
            return true;
    }
    return false;
}

Test(tm, parameters_that_are_allowed_and_refused, .init = start, .fini = finish)
{
    struct pm_create_srq_req rq = request(4095, 8192);
    struct pm_resize_srq_req more = {.max_wr = 16};
    struct pm_handle h;

    cr_expect_eq(CALL(PM_OP_CREATE_SRQ, rq), 0);
    more.srq = ((struct pm_create_srq_rep *)(void *)f.rp.payload)->handle;
    h.handle = more.srq;
    cr_expect_eq(CALL(PM_OP_RESIZE_SRQ, more), -EINVAL, "it has one size");
    cr_expect_eq(CALL(PM_OP_DESTROY_SRQ, h), 0);
    rq = request(4096, 1);
    cr_expect_eq(CALL(PM_OP_CREATE_SRQ, rq), -EINVAL);
    rq = request(0, 1);
    cr_expect_eq(CALL(PM_OP_CREATE_SRQ, rq), -EINVAL);
    rq = request(1, 8193);
    cr_expect_eq(CALL(PM_OP_CREATE_SRQ, rq), -EINVAL);
    rq = request(1, 0);
    cr_expect_eq(CALL(PM_OP_CREATE_SRQ, rq), -EINVAL);
    rq = request(1, 1);
    rq.cq = 99;
    cr_expect_eq(CALL(PM_OP_CREATE_SRQ, rq), -EINVAL, "without CQ");
    f.settings.tm_profile = TM_CHOICE_MLX5;
    rq = request(128, 1);
    cr_expect_eq(CALL(PM_OP_CREATE_SRQ, rq), -EINVAL, "more than the profile has");
    make_list(127, 8);
    cr_expect_eq(fixture_qp_typed(&f, s, pd, cq.rep.handle, QPT_UC, srq.handle, 0, &a), -EINVAL, "RC only");
    h.handle = cq.rep.handle;
    cr_expect_eq(CALL(PM_OP_DESTROY_CQ, h), -EBUSY);
}

Test(tm, operations, .init = start_pair, .fini = finish)
{
    struct pm_cqe e = {0};
    uint32_t i;

    post(add(0x1001, 7, PM_TM_OP_SIGNALED), true);
    cr_assert(fixture_poll(&cq, &e));
    cr_expect_eq(e.opcode, IBV_WC_TM_ADD);
    cr_expect_eq(e.kind & (PM_CQE_TM | PM_CQE_TM_OP | PM_CQE_TM_ENTRY), PM_CQE_TM | PM_CQE_TM_OP);
    cr_expect_eq(e.slot, 0x1001);
    cr_expect_eq(e.srq, srq.handle);
    post(add(0x2001, 7, 0), true);
    cr_assert(fixture_poll(&cq, &e));
    cr_expect_eq(e.status, IBV_WC_TM_ERR, "the slot is taken");
    post(add(0x1004, 7, 0), true);
    cr_assert(fixture_poll(&cq, &e));
    cr_expect_eq(e.status, IBV_WC_TM_ERR, "there is no such slot");
    i = post(del(0x2001, 0), true);
    cr_expect_eq(slot(i)->deleted, 0, "nobody's handle");
    i = post(del(0x1001, 0), true);
    cr_expect_eq(slot(i)->deleted, 1);
    cr_expect_eq(atomic_load(&page->ops_head), i + 1);
    i = post(del(0x1001, PM_TM_OP_SIGNALED), true);
    cr_assert(fixture_poll(&cq, &e));
    cr_expect_eq(e.status, IBV_WC_TM_ERR);
    cr_expect_eq(e.opcode, IBV_WC_TM_DEL);
    cr_expect(!fixture_poll(&cq, &e));
}

Test(tm, operations_come_before_the_message, .init = start_pair, .fini = finish)
{
    struct pm_cqe e = {0};

    post(add(0x1000, 0x1234, 0), false); /* without the doorbell */
    send_tagged(0x1234, 100);
    cr_assert(fixture_poll(&cq, &e));
    cr_expect_eq(e.opcode, IBV_WC_TM_RECV);
    cr_expect_eq(e.status, IBV_WC_SUCCESS);
    cr_expect_eq(e.wc_flags, IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID);
    cr_expect_eq(e.kind & PM_CQE_TM_ENTRY, PM_CQE_TM_ENTRY);
    cr_expect_eq(e.tm.tag, 0x1234);
    cr_expect_eq(e.tm.priv, 9);
    cr_expect_eq(e.wr_id, 2);
    cr_expect_eq(e.byte_len, 100);
    cr_expect_eq(memory[4096 + 99], 0xa5);
    cr_expect_eq(memory[4096 + 100], 0);
}

/* More completions than the engine has room for at a time. */
Test(tm, many_operations, .init = start, .fini = finish)
{
    struct pm_tm_op sync = {.opcode = IBV_WR_TAG_SYNC, .flags = PM_TM_OP_SIGNALED};
    struct pm_cqe e = {0};
    unsigned n = 0;

    make_list(4, 8192);
    for (unsigned i = 0; i < 8191; i++)
        post(sync, false);
    post(sync, true);
    for (int i = 0; i < 20; i++)
        fixture_run(&f);
    while (fixture_poll(&cq, &e))
        n += e.opcode == IBV_WC_TM_SYNC;
    cr_expect_eq(n, 8192);
    cr_expect_eq(atomic_load(&page->ops_head), 8192);
    cr_expect(TAILQ_EMPTY(&f.device->waiting_tm_srqs));
}

Test(tm, destroy_executes_posted_operations, .init = start, .fini = finish)
{
    struct pm_handle h;

    make_list(4, 8);
    post(add(0x1000, 1, 0), false);
    h.handle = srq.handle;
    cr_expect_eq(CALL(PM_OP_DESTROY_SRQ, h), 0);
    cr_expect_eq(atomic_load(&page->ops_head), 1);
}

/* A count that no correct program reports is taken as it is. The log names the list and a QP of it, once. */
Test(tm, an_odd_count_is_logged_once, .init = start_pair, .fini = finish)
{
    struct pm_tm_op sync = {.opcode = IBV_WR_TAG_SYNC, .unexpected_cnt = 9};
    char path[] = "/tmp/pumice-odd-count-XXXXXX", text[4096], expected[128];
    int fd = mkstemp(path);

    cr_assert_geq(fd, 0);
    unlink(path);
    cr_assert_geq(dup2(fd, STDERR_FILENO), 0);
    log_set_level(LOG_LEVEL_WARN);
    post((struct pm_tm_op){.opcode = IBV_WR_TAG_SYNC}, true);
    cr_expect_eq(lseek(fd, 0, SEEK_END), 0, "a right count");
    post(sync, true);
    post(sync, true);
    sync.unexpected_cnt = 8;
    post(sync, true);
    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
    cr_assert_gt(n, 0);
    text[n] = 0;
    snprintf(expected, sizeof(expected), "shared receive queue %u (queue pair 0x%06x)", srq.handle, b.rep.qpn);
    cr_expect_not_null(strstr(text, expected), "%s", text);
    cr_expect_not_null(strstr(text, "unexpected_cnt 9"), "%s", text);
    cr_expect_eq(strchr(text, '\n'), text + n - 1, "one line: %s", text);
    close(fd);
}

/* All invalid rings end in the same way: the client gets an event, and the QPs that use the list fail. */
static void expect_broken(void)
{
    struct pm_handle h = {b.rep.qpn};
    struct pm_query_qp_rep rep;

    cr_expect(event(IBV_EVENT_SRQ_ERR));
    cr_assert_eq(fixture_call(&f, s, PM_OP_QUERY_QP, &h, sizeof(h), &rep, sizeof(rep)), 0);
    cr_expect_eq(rep.attr.qp_state, IBV_QPS_ERR);
    cr_expect_eq(f.device->io.bad_rings, 2);
}

Test(tm, unknown_operation, .init = start_pair, .fini = finish)
{
    post((struct pm_tm_op){.opcode = 3}, true);
    expect_broken();
}

Test(tm, too_many_sges, .init = start_pair, .fini = finish)
{
    struct pm_tm_op op = add(0x1000, 1, 0);

    op.num_sge = TM_MAX_SGE + 1;
    post(op, true);
    expect_broken();
}

Test(tm, tail_beyond_the_end, .init = start_pair, .fini = finish)
{
    atomic_store(&page->ops_tail, 16);
    post(add(0x1000, 1, 0), true);
    expect_broken();
}

Test(tm, the_control_operation_shows_the_list, .init = start_pair, .fini = finish)
{
    const struct user root = user_of(0);
    struct pm_tm_req rq = {.events = 2, .entries = 1};
    struct pm_cqe e = {0};
    json_t *told, *list;

    for (uint32_t i = 0; i < 3; i++)
        post(add(0x1000 + i, i, PM_TM_OP_SIGNALED), true);
    while (fixture_poll(&cq, &e))
        ;
    told = tm_status_device(f.device, &root, &rq);
    list = json_array_get(json_object_get(told, "lists"), 0);
    cr_expect_eq(json_integer_value(json_object_get(list, "active")), 3);
    cr_expect_eq(json_array_size(json_object_get(list, "entries")), 1);
    cr_expect_eq(json_array_size(json_object_get(list, "events")), 2);
    cr_expect_str_eq(json_string_value(json_object_get(json_array_get(json_object_get(list, "events"), 1), "tag")),
                     "0x2");
    json_decref(told);
}
