// SPDX-License-Identifier: BSD-2-Clause
/* A user sees its own sessions and objects only. The daemon's user and root see those of all users. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <infiniband/verbs.h>

#include "daemon/status/layout_status.h"
#include "daemon/status/status.h"
#include "daemon/status/tm_status.h"
#include "tests/unit/daemon/daemon_fixture.h"

#define ALICE 4711u
#define BOB 4712u

static struct fixture f;
static struct session *alice, *bob;
static uint8_t memory[4096];

/* Gives the session an object of each kind that has a list. */
static void make_objects(struct session *s)
{
    struct pm_open_xrcd_req domain = {.oflags = O_CREAT};
    struct pm_alloc_mw_req mw = {.type = MW_TYPE_2};
    struct fixture_cq cq;
    struct fixture_qp qp;
    struct fixture_srq srq;
    uint32_t pd = fixture_pd(&f, s);

    mw.pd = pd;
    cr_assert_neq(fixture_mr(&f, s, pd, memory, sizeof(memory), ACCESS_LOCAL_WRITE), 0);
    cr_assert_eq(fixture_cq(&f, s, 16, 0, &cq), 0);
    cr_assert_eq(fixture_qp(&f, s, pd, cq.rep.handle, 16, &qp), 0);
    cr_assert_eq(fixture_srq(&f, s, pd, 16, &srq), 0);
    cr_assert_eq(fixture_call(&f, s, PM_OP_ALLOC_MW, &mw, sizeof(mw), NULL, 0), 0);
    cr_assert_eq(fixture_call(&f, s, PM_OP_OPEN_XRCD, &domain, sizeof(domain), NULL, 0), 0);
}

static void start(void)
{
    cr_assert(fixture_start(&f));
    alice = fixture_session(&f);
    bob = fixture_session(&f);
    cr_assert(alice && bob);
    alice->cred.uid = ALICE;
    bob->cred.uid = BOB;
    make_objects(alice);
    make_objects(bob);
}

static void finish(void)
{
    fixture_end(&f);
}

TestSuite(status_users, .init = start, .fini = finish);

static const char *const lists[] = {"sessions", "qps", "srqs", "xrcds", "cqs", "mrs", "mws"};
#define LISTS (sizeof(lists) / sizeof(lists[0]))

static void expect_lists(struct user u, size_t entries, const struct session *owner)
{
    json_t *o = status_device(f.device, &u);

    for (size_t i = 0; i < LISTS; i++) {
        const json_t *list = json_object_get(o, lists[i]);

        cr_expect_eq(json_array_size(list), entries, "%s: %zu", lists[i], json_array_size(list));
        if (owner && i != 3) /* a domain names no session */
            cr_expect_eq(json_integer_value(json_object_get(json_array_get(list, 0), "session")), owner->number, "%s",
                         lists[i]);
    }
    cr_expect_not_null(json_object_get(o, "counters"), "the device is for everybody");
    json_decref(o);
}

Test(status_users, each_sees_its_own)
{
    expect_lists(user_of(ALICE), 1, alice);
    expect_lists(user_of(BOB), 1, bob);
    expect_lists(user_of(4713), 0, NULL);
    expect_lists(USER_UNKNOWN, 0, NULL);
}

Test(status_users, the_daemons_user_and_root_see_all)
{
    expect_lists(user_of(geteuid()), 2, NULL);
    expect_lists(user_of(0), 2, NULL);
}

Test(status_users, an_unknown_user_is_not_root)
{
    struct user u = USER_UNKNOWN;

    cr_expect_not(u.administers);
    cr_expect_not(user_sees(&u, 0));
}

Test(status_users, windows_with_layouts)
{
    struct pm_layout_req rq = {.key = 0};
    struct pm_alloc_mw_req mw = {.pd = fixture_pd(&f, alice), .type = MW_TYPE_1, .max_entries = 4};
    struct user a = user_of(ALICE), b = user_of(BOB), root = user_of(0);
    const struct user *const users[] = {&a, &b, &root};

    cr_assert_eq(fixture_call(&f, alice, PM_OP_ALLOC_MW, &mw, sizeof(mw), NULL, 0), 0);
    for (int i = 0; i < 3; i++) {
        json_t *o = layout_status_device(f.device, users[i], &rq);

        cr_expect_eq(json_array_size(json_object_get(o, "windows")), i != 1, "%d", i);
        json_decref(o);
    }
}

Test(status_users, matching_lists)
{
    struct pm_create_srq_req rq = {.pd = fixture_pd(&f, alice), .type = IBV_SRQT_TM, .max_wr = 16, .max_sge = 1};
    struct user a = user_of(ALICE), b = user_of(BOB), root = user_of(0);
    const struct user *const users[] = {&a, &b, &root};
    struct pm_tm_req tm = {.events = 1, .entries = 1};
    struct fixture_cq cq;

    cr_assert_eq(fixture_cq(&f, alice, 16, 0, &cq), 0);
    rq.cq = cq.rep.handle;
    rq.max_num_tags = 4;
    rq.max_ops = 4;
    cr_assert_eq(fixture_call(&f, alice, PM_OP_CREATE_SRQ, &rq, sizeof(rq), NULL, 0), 0, "%s", (char *)f.rp.payload);
    fixture_close_fds(&f);
    for (int i = 0; i < 3; i++) {
        json_t *o = tm_status_device(f.device, users[i], &tm);

        cr_expect_eq(json_array_size(json_object_get(o, "lists")), i != 1, "%d", i);
        json_decref(o);
    }
}
