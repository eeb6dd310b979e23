// SPDX-License-Identifier: BSD-2-Clause
/* Control operations charge the user of the session, and every object gives back what it has cost: when it is
 * destroyed, when its session ends, and when it can't be made. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdio.h>

#include "tests/unit/daemon/daemon_fixture.h"

#define UID 70001u

static struct fixture f;
static struct quota quota;
static struct session *s;
static uint32_t pd, cq, xrcd;
static uint8_t memory[4096];

static void set_limit(const char *text)
{
    struct quota_limits limits;

    cr_assert_eq(quota_limits_parse(text, &limits), 0, "%s", text);
    quota_set_limits(&quota, &limits);
}

static struct session *open_as(uid_t uid)
{
    struct pm_open_req rq = {PM_ABI_VERSION, 0, (uintptr_t)&fixture_probe, fixture_probe};
    struct ucred cred = {getpid(), uid, getegid()};
    struct session *session = NULL;

    f.rp.fds = 0;
    session_open(f.device, -1, &cred, &rq, (struct client_fds){open("/proc/self/mem", O_RDWR | O_CLOEXEC), -1}, &f.rp,
                 &session);
    fixture_close_fds(&f);
    return session;
}

static int call(uint32_t op, const void *rq, size_t len)
{
    int rc = fixture_call(&f, s, op, rq, len, NULL, 0);

    fixture_close_fds(&f);
    return rc;
}

/* The number of the object that the latest call has made. It begins each of these replies. */
static uint32_t made(void)
{
    return ((struct pm_handle *)f.rp.payload)->handle;
}

static uint64_t used(enum quota_kind kind)
{
    struct quota_row *row;
    uint64_t sum = 0;
    size_t n;

    row = quota_rows(&quota, &n);
    for (size_t i = 0; i < n; i++)
        sum += row[i].kind == kind ? row[i].used : 0;
    free(row);
    return sum;
}

static void start(void)
{
    struct quota_limits limits;
    uint64_t capacity[QUOTA_KINDS];
    struct pm_create_cq_req c = {.cqe = 16};
    struct pm_open_xrcd_req x = {.oflags = O_CREAT};

    log_set_level(LOG_LEVEL_ERROR);
    cr_assert(fixture_start(&f));
    for (unsigned i = 0; i < QUOTA_KINDS; i++)
        capacity[i] = UINT64_C(1) << 40;
    quota_limits_parse("all=none", &limits);
    quota_init(&quota, &limits, capacity);
    f.device->quota = &quota;
    cr_assert_not_null(s = open_as(UID));
    cr_assert_eq(call(PM_OP_ALLOC_PD, NULL, 0), 0);
    pd = made();
    cr_assert_eq(call(PM_OP_CREATE_CQ, &c, sizeof(c)), 0);
    cq = made();
    cr_assert_eq(call(PM_OP_OPEN_XRCD, &x, sizeof(x)), 0);
    xrcd = made();
}

static void finish(void)
{
    fixture_end(&f);
    quota_fini(&quota); /* asserts that nobody has anything */
}

TestSuite(quota_objects, .init = start, .fini = finish);

/* Writes the request that makes an object, and returns its length. */
static size_t pd_request(void *rq)
{
    (void)rq;
    return 0;
}

static size_t mr_request(void *rq)
{
    *(struct pm_reg_mr_req *)rq = (struct pm_reg_mr_req){
        .pd = pd, .access = IBV_ACCESS_LOCAL_WRITE, .va = (uintptr_t)memory, .length = 64, .iova = (uintptr_t)memory};
    return sizeof(struct pm_reg_mr_req);
}

static size_t mw_request(void *rq)
{
    *(struct pm_alloc_mw_req *)rq = (struct pm_alloc_mw_req){.pd = pd, .type = IBV_MW_TYPE_2, .max_entries = 8};
    return sizeof(struct pm_alloc_mw_req);
}

static size_t cq_request(void *rq)
{
    *(struct pm_create_cq_req *)rq = (struct pm_create_cq_req){.cqe = 1};
    return sizeof(struct pm_create_cq_req);
}

static size_t srq_request(void *rq)
{
    *(struct pm_create_srq_req *)rq = (struct pm_create_srq_req){
        .pd = pd, .type = IBV_SRQT_TM, .cq = cq, .max_wr = 4, .max_sge = 1, .max_num_tags = 4, .max_ops = 4};
    return sizeof(struct pm_create_srq_req);
}

static size_t qp_request(void *rq)
{
    *(struct pm_create_qp_req *)rq = (struct pm_create_qp_req){
        .pd = pd, .send_cq = cq, .recv_cq = cq, .type = IBV_QPT_RC, .max_send_wr = 4, .max_recv_wr = 4};
    return sizeof(struct pm_create_qp_req);
}

static size_t target_request(void *rq)
{
    *(struct pm_create_qp_req *)rq = (struct pm_create_qp_req){.xrcd = xrcd, .type = IBV_QPT_XRC_RECV};
    return sizeof(struct pm_create_qp_req);
}

static size_t xrcd_request(void *rq)
{
    *(struct pm_open_xrcd_req *)rq = (struct pm_open_xrcd_req){.oflags = O_CREAT};
    return sizeof(struct pm_open_xrcd_req);
}

/* clang-format off */
static const struct object {
    const char *name;
    size_t (*request)(void *rq);
    uint32_t make, destroy; /* operations */
    enum quota_kind kind;
    unsigned mappings, descriptors; /* that each has */
} objects[] = {
    {"PD",         pd_request,     PM_OP_ALLOC_PD,       PM_OP_DEALLOC_PD,      QUOTA_PDS,      0, 0},
    {"MR",         mr_request,     PM_OP_REG_MR,         PM_OP_DEREG_MR,        QUOTA_MRS,      0, 0},
    {"MW",         mw_request,     PM_OP_ALLOC_MW,       PM_OP_DEALLOC_MW,      QUOTA_MWS,      0, 0},
    {"channel",    pd_request,     PM_OP_CREATE_CHANNEL, PM_OP_DESTROY_CHANNEL, QUOTA_CHANNELS, 0, 2},
    {"CQ",         cq_request,     PM_OP_CREATE_CQ,      PM_OP_DESTROY_CQ,      QUOTA_CQS,      1, 0},
    {"SRQ",        srq_request,    PM_OP_CREATE_SRQ,     PM_OP_DESTROY_SRQ,     QUOTA_SRQS,     3, 0},
    {"QP",         qp_request,     PM_OP_CREATE_QP,      PM_OP_DESTROY_QP,      QUOTA_QPS,      2, 0},
    {"XRC target", target_request, PM_OP_CREATE_QP,      PM_OP_DESTROY_QP,      QUOTA_QPS,      2, 0},
    {"XRC domain", xrcd_request,   PM_OP_OPEN_XRCD,      PM_OP_CLOSE_XRCD,      QUOTA_XRCDS,    0, 1},
};
/* clang-format on */
#define OBJECTS (sizeof(objects) / sizeof(objects[0]))

static int make(const struct object *o)
{
    _Alignas(8) uint8_t rq[CONTROL_PAYLOAD_MAX];

    return call(o->make, rq, o->request(rq));
}

struct amounts {
    uint64_t of[QUOTA_KINDS];
};

static struct amounts amounts(void)
{
    struct amounts a;

    for (enum quota_kind k = 0; k < QUOTA_KINDS; k++)
        a.of[k] = used(k);
    return a;
}

static void expect_equal(const struct amounts *a, const struct amounts *b, const char *what)
{
    for (enum quota_kind k = 0; k < QUOTA_KINDS; k++)
        cr_expect_eq(a->of[k], b->of[k], "%s: %s", what, quota_kind_name(k));
}

Test(quota_objects, each_costs_what_it_has_and_gives_it_back)
{
    for (const struct object *o = objects; o < objects + OBJECTS; o++) {
        struct amounts before = amounts(), after;
        struct pm_handle h;

        cr_assert_eq(make(o), 0, "%s: %s", o->name, (char *)f.rp.payload);
        h.handle = made();
        after = amounts();
        cr_expect_eq(after.of[o->kind], before.of[o->kind] + 1, "%s", o->name);
        cr_expect_eq(after.of[QUOTA_MAPPINGS], before.of[QUOTA_MAPPINGS] + o->mappings, "%s", o->name);
        cr_expect_eq(after.of[QUOTA_DESCRIPTORS], before.of[QUOTA_DESCRIPTORS] + o->descriptors, "%s", o->name);
        if (o->mappings)
            cr_expect_gt(after.of[QUOTA_BYTES], before.of[QUOTA_BYTES], "%s", o->name);
        cr_assert_eq(call(o->destroy, &h, sizeof(h)), 0, "%s: %s", o->name, (char *)f.rp.payload);
        after = amounts();
        expect_equal(&before, &after, o->name);
    }
}

Test(quota_objects, each_is_refused_beyond_its_limit)
{
    for (const struct object *o = objects; o < objects + OBJECTS; o++) {
        struct amounts before, after;
        struct pm_handle h;
        char limit[64];

        snprintf(limit, sizeof(limit), "all=none,%s=%u", quota_kind_name(o->kind), (unsigned)used(o->kind) + 1);
        set_limit(limit);
        cr_assert_eq(make(o), 0, "%s: %s", o->name, (char *)f.rp.payload);
        h.handle = made();
        before = amounts();
        cr_expect_eq(make(o), -EDQUOT, "%s", o->name);
        cr_expect_not_null(strstr((char *)f.rp.payload, "quota of user 70001"), "%s: %s", o->name,
                           (char *)f.rp.payload);
        after = amounts();
        expect_equal(&before, &after, o->name);
        cr_assert_eq(call(o->destroy, &h, sizeof(h)), 0);
        cr_expect_eq(make(o), 0, "%s, when there is room again", o->name);
    }
}

/* The quota of something that the object needs is the reason, not that of the object. */
Test(quota_objects, each_is_refused_whole)
{
    for (const struct object *o = objects; o < objects + OBJECTS; o++) {
        const struct amounts before = amounts();

        set_limit("all=none,mappings=0,descriptors=0,bytes=0");
        if (o->mappings || o->descriptors || o->kind == QUOTA_MWS)
            cr_expect_eq(make(o), -EDQUOT, "%s", o->name);
        for (unsigned room = 1; room < o->mappings; room++) {
            char limit[64];

            snprintf(limit, sizeof(limit), "all=none,mappings=%u", (unsigned)before.of[QUOTA_MAPPINGS] + room);
            set_limit(limit);
            cr_expect_eq(make(o), -EDQUOT, "%s with %u mappings", o->name, room);
            cr_expect_not_null(strstr((char *)f.rp.payload, "memory mappings"), "%s: %s", o->name,
                               (char *)f.rp.payload);
        }
        const struct amounts after = amounts();
        expect_equal(&before, &after, o->name);
    }
}

/* A request with an error costs nothing. */
Test(quota_objects, a_request_that_fails_costs_nothing)
{
    struct pm_create_cq_req c = {.cqe = 0};
    struct pm_create_qp_req q = {.pd = pd + 77, .type = IBV_QPT_RC};
    struct pm_reg_mr_req m = {.pd = pd + 77};
    const struct amounts before = amounts();

    cr_expect_neq(call(PM_OP_CREATE_CQ, &c, sizeof(c)), 0);
    cr_expect_neq(call(PM_OP_CREATE_QP, &q, sizeof(q)), 0);
    cr_expect_neq(call(PM_OP_REG_MR, &m, sizeof(m)), 0);
    const struct amounts after = amounts();
    expect_equal(&before, &after, "failures");
}

/* While a CQ or an SRQ is resized, it has two segments. Then it has one again, of the new size. */
Test(quota_objects, resizing)
{
    struct pm_resize_cq_req r = {.cq = cq, .cqe = 4096};
    struct pm_handle h = {cq};
    struct amounts before = amounts(), after;

    cr_assert_eq(call(PM_OP_RESIZE_CQ, &r, sizeof(r)), 0);
    cr_expect_eq(used(QUOTA_MAPPINGS), before.of[QUOTA_MAPPINGS] + 1);
    cr_assert_eq(call(PM_OP_SWITCH_CQ, &h, sizeof(h)), 0);
    after = amounts();
    cr_expect_eq(after.of[QUOTA_MAPPINGS], before.of[QUOTA_MAPPINGS]);
    cr_expect_gt(after.of[QUOTA_BYTES], before.of[QUOTA_BYTES]);

    struct pm_create_srq_req q = {.pd = pd, .type = IBV_SRQT_BASIC, .max_wr = 4, .max_sge = 1};
    cr_assert_eq(call(PM_OP_CREATE_SRQ, &q, sizeof(q)), 0);
    struct pm_resize_srq_req rs = {.srq = made(), .max_wr = 4096};
    h.handle = rs.srq;
    before = amounts();
    cr_assert_eq(call(PM_OP_RESIZE_SRQ, &rs, sizeof(rs)), 0);
    cr_assert_eq(call(PM_OP_SWITCH_SRQ, &h, sizeof(h)), 0);
    after = amounts();
    cr_expect_eq(after.of[QUOTA_MAPPINGS], before.of[QUOTA_MAPPINGS]);
    cr_expect_gt(after.of[QUOTA_BYTES], before.of[QUOTA_BYTES]);
}

/* Also for sessions that end with all their objects. finish() asserts that nothing is left. */
Test(quota_objects, sessions)
{
    set_limit("all=none,sessions=2");
    struct session *second = open_as(UID);
    cr_assert_not_null(second);
    cr_expect_null(open_as(UID));
    cr_expect_not_null(strstr((char *)f.rp.payload, "2 sessions"), "%s", (char *)f.rp.payload);
    cr_expect_not_null(open_as(UID + 1), "another user");
    session_close(second);
    cr_expect_not_null(open_as(UID));
    set_limit("all=none");
    for (const struct object *o = objects; o < objects + OBJECTS; o++)
        cr_assert_eq(make(o), 0, "%s", o->name);
    session_close(s);
    s = NULL;
    cr_expect_eq(used(QUOTA_QPS), 0);
    cr_expect_eq(used(QUOTA_MAPPINGS), 2, "the pages of the two other sessions");
}

/* The target stays when its session ends, because another session has its domain open. Its user pays until it ends. */
Test(quota_objects, a_target_outlives_its_session)
{
    FILE *file = tmpfile();
    struct pm_open_xrcd_req x = {.has_fd = 1, .oflags = O_CREAT};
    struct pm_create_qp_req t = {.type = IBV_QPT_XRC_RECV};
    struct session *first = s;

    cr_assert_eq(fixture_call_fd(&f, s, PM_OP_OPEN_XRCD, &x, sizeof(x), fileno(file), NULL, 0), 0);
    t.xrcd = made();
    cr_assert_eq(call(PM_OP_CREATE_QP, &t, sizeof(t)), 0);
    cr_assert_not_null(s = open_as(UID + 1));
    cr_assert_eq(fixture_call_fd(&f, s, PM_OP_OPEN_XRCD, &x, sizeof(x), fileno(file), NULL, 0), 0);
    session_close(first);
    cr_expect_eq(used(QUOTA_QPS), 1);
    session_close(s);
    cr_expect_eq(used(QUOTA_QPS), 0);
    fclose(file);
}
