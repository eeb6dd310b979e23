// SPDX-License-Identifier: BSD-2-Clause
/* Memory windows in the daemon: allocating and freeing them, binding them with a request in the ring, and the end of
 * a session that has some. */
#include <criterion/criterion.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <unistd.h>

#include "tests/unit/daemon/daemon_fixture.h"

static struct fixture f;
static struct session *s;
static struct fixture_cq cq;
static struct fixture_qp a, b;
static uint32_t pd, key;
static uint8_t memory[16384];

static void start(void)
{
    cr_assert(fixture_start(&f));
    s = fixture_session(&f);
    pd = fixture_pd(&f, s);
    key = fixture_mr(&f, s, pd, memory, sizeof(memory), ACCESS_LOCAL_WRITE | ACCESS_MW_BIND);
    cr_assert_eq(fixture_cq(&f, s, 64, 0, &cq), 0);
    cr_assert_eq(fixture_qp(&f, s, pd, cq.rep.handle, 16, &a), 0);
    cr_assert_eq(fixture_qp(&f, s, pd, cq.rep.handle, 16, &b), 0);
    cr_assert_eq(fixture_connect_both(&f, s, &a, &b), 0, "%s", (char *)f.rp.payload);
}

static void finish(void)
{
    fixture_end(&f);
}

TestSuite(windows, .init = start, .fini = finish);

static int64_t alloc(struct session *who, uint32_t domain, uint32_t type)
{
    struct pm_alloc_mw_req r = {.pd = domain, .type = type};
    struct pm_handle h = {0};
    int rc = fixture_call(&f, who, PM_OP_ALLOC_MW, &r, sizeof(r), &h, sizeof(h));

    return rc ? rc : (int64_t)h.handle;
}

static int on_handle(uint32_t op, uint32_t handle)
{
    struct pm_handle h = {handle};

    return fixture_call(&f, s, op, &h, sizeof(h), NULL, 0);
}

static uint8_t run(struct fixture_qp *qp)
{
    struct pm_cqe e = {0};

    fixture_send_slot(qp)->flags |= PM_SEND_SIGNALED;
    fixture_post_send(s, qp);
    fixture_run(&f);
    cr_assert(fixture_poll(&cq, &e));
    return e.status;
}

static uint8_t bind_window(uint32_t rkey, uint32_t new_key, size_t from, uint64_t length)
{
    struct pm_send_wqe *w = fixture_send_slot(&b);

    memset(w, 0, sizeof(*w));
    w->opcode = WR_BIND_MW;
    w->rkey = rkey;
    w->imm = new_key;
    w->mr_key = key;
    w->remote_addr = (uintptr_t)memory + from;
    w->compare_add = length;
    w->srqn = ACCESS_REMOTE_WRITE;
    return run(&b);
}

static uint8_t write_by(uint32_t rkey, size_t to, uint32_t len)
{
    struct pm_send_wqe *w = fixture_send_slot(&a);

    memset(w, 0, sizeof(*w));
    w->opcode = WR_RDMA_WRITE;
    w->num_sge = 1;
    w->rkey = rkey;
    w->remote_addr = (uintptr_t)memory + to;
    *(struct pm_sge *)(w + 1) = (struct pm_sge){(uintptr_t)memory, len, key};
    return run(&a);
}

Test(windows, arguments)
{
    struct session *other = fixture_session(&f);
    int64_t w;

    cr_assert_eq(alloc(s, pd + 5, IBV_MW_TYPE_1), -EINVAL);
    cr_assert_eq(alloc(s, pd, 0), -EINVAL);
    cr_assert_eq(alloc(s, pd, 3), -EINVAL);
    cr_assert_eq(alloc(other, pd, IBV_MW_TYPE_1), -EINVAL, "another's domain");
    w = alloc(s, pd, IBV_MW_TYPE_1);
    cr_assert_gt(w, 0);
    cr_assert_eq(on_handle(PM_OP_DEREG_MR, (uint32_t)w), -EINVAL, "it is no region");
    cr_assert_eq(on_handle(PM_OP_DEALLOC_MW, key), -EINVAL, "and the region is no window");
    cr_assert_eq(on_handle(PM_OP_DEALLOC_PD, pd), -EBUSY);
    cr_assert_eq(on_handle(PM_OP_DEALLOC_MW, (uint32_t)w ^ 0x5a), 0, "its key as it may be by now");
    cr_assert_eq(on_handle(PM_OP_DEALLOC_MW, (uint32_t)w), -EINVAL, "twice");
}

Test(windows, bound_by_the_ring_and_busy)
{
    uint32_t w = (uint32_t)alloc(s, pd, IBV_MW_TYPE_1), next = (w & ~0xffu) | ((w + 1) & 0xff);

    memset(memory, 0x42, 100);
    cr_assert_eq(bind_window(w, next, 4096, 1024), WC_SUCCESS);
    cr_assert_eq(write_by(next, 4096, 100), WC_SUCCESS);
    cr_assert_eq(memory[4195], 0x42);
    cr_assert_eq(on_handle(PM_OP_DEREG_MR, key), -EBUSY);
    cr_assert_eq(write_by(next, 4096 + 1000, 100), WC_REM_ACCESS_ERR, "beyond its end");
    cr_assert_eq(on_handle(PM_OP_DEALLOC_MW, w), 0, "bound or not");
    cr_assert_eq(on_handle(PM_OP_DEREG_MR, key), 0);
}

Test(windows, the_end_of_a_session_frees_its_windows)
{
    uint32_t w = (uint32_t)alloc(s, pd, IBV_MW_TYPE_1);

    cr_assert_eq(bind_window(w, (w & ~0xffu) | ((w + 1) & 0xff), 4096, 1024), WC_SUCCESS);
    cr_assert_gt(alloc(s, pd, IBV_MW_TYPE_2), 0);
    cr_assert_eq(f.device->num_mws, 2);
    session_close(s);
    cr_assert_eq(f.device->num_mws, 0);
    cr_assert_eq(f.device->num_mrs, 0);
    cr_assert_eq(f.device->pds.count, 0);
}

/* Layouts in the client's memory. */
static struct {
    struct pm_layout head;
    struct pm_layout_entry entry[2];
} layout;

static uint8_t bind_layout(uint32_t rkey, uint64_t at, uint64_t bytes)
{
    struct pm_send_wqe *w = fixture_send_slot(&b);

    memset(w, 0, sizeof(*w));
    w->opcode = WR_BIND_MW;
    w->rkey = rkey;
    w->remote_addr = at;
    w->compare_add = bytes;
    w->srqn = ACCESS_REMOTE_WRITE | PM_BIND_LAYOUT;
    return run(&b);
}

static uint32_t layout_window(uint32_t entries)
{
    struct pm_alloc_mw_req r = {.pd = pd, .type = IBV_MW_TYPE_2, .max_entries = entries};
    struct pm_handle h = {0};

    cr_assert_eq(fixture_call(&f, s, PM_OP_ALLOC_MW, &r, sizeof(r), &h, sizeof(h)), 0);
    layout.head = (struct pm_layout){.type = 0, .count = 2};
    for (unsigned i = 0; i < 2; i++)
        layout.entry[i] =
            (struct pm_layout_entry){.key = key, .addr = (uintptr_t)memory + 4096 + 100 * i, .length = 10};
    return h.handle;
}

Test(windows, layouts)
{
    uint32_t w = layout_window(2);

    memset(memory, 0x42, 100);
    cr_assert_eq(bind_layout(w, (uintptr_t)&layout, sizeof(layout)), WC_SUCCESS);
    cr_assert_eq(s->layout_entries, 2);
    layout.head.count = 99; /* the daemon has copied it */
    cr_assert_eq(write_by(w, 5 - (size_t)(uintptr_t)memory, 10), WC_SUCCESS);
    for (unsigned i = 4090; i < 4300; i++)
        cr_assert_eq(memory[i], (i >= 4101 && i < 4106) || (i >= 4196 && i < 4201) ? 0x42 : 0, "%u", i);
    cr_assert_eq(on_handle(PM_OP_DEREG_MR, key), -EBUSY);
    cr_assert_eq(on_handle(PM_OP_DEALLOC_MW, w), 0);
    cr_assert_eq(s->mw_entries, 0);
    session_close(s);
}

Test(windows, layouts_that_are_refused_by_the_engine)
{
    uint32_t w = layout_window(1);

    cr_assert_eq(bind_layout(w, (uintptr_t)&layout, sizeof(layout)), WC_MW_BIND_ERR, "more entries than it has");
}

/* Requests that break the ring's rules: the QP fails, and the daemon continues. */
static void bad_layout(uint64_t at, uint64_t bytes)
{
    struct pm_send_wqe *w = fixture_send_slot(&b);

    memset(w, 0, sizeof(*w));
    w->opcode = WR_BIND_MW;
    w->rkey = layout_window(2);
    w->remote_addr = at;
    w->compare_add = bytes;
    w->srqn = PM_BIND_LAYOUT;
    fixture_post_send(s, &b);
    fixture_run(&f);
    cr_assert_eq(f.device->io.bad_rings, 1);
    cr_assert_eq(s->layout_entries, 0);
}

Test(windows, layout_at_no_address)
{
    bad_layout(8, sizeof(layout));
}
Test(windows, layout_of_no_bytes)
{
    bad_layout((uintptr_t)&layout, 0);
}
Test(windows, layout_without_entries)
{
    bad_layout((uintptr_t)&layout, sizeof(struct pm_layout));
}
Test(windows, layout_of_a_part_of_an_entry)
{
    bad_layout((uintptr_t)&layout, sizeof(layout) - 1);
}
Test(windows, layout_of_too_many_entries)
{
    bad_layout((uintptr_t)&layout, sizeof(struct pm_layout) + 1025 * sizeof(struct pm_layout_entry));
}
Test(windows, layout_of_another_count)
{
    bad_layout((uintptr_t)&layout, sizeof(struct pm_layout) + sizeof(struct pm_layout_entry));
}
