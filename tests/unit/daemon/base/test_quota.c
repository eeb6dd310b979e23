// SPDX-License-Identifier: BSD-2-Clause
/* Quotas: limits, shares that leave room for other users, the daemon's own limits, and the lines in the log. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/base/quota.h"

#define CAPACITY 1000u

static struct quota q;
static struct quota_owner a = {&q, 70001, 0}, b = {&q, 70002, 0}, root = {&q, 0, 0};

static void set_limits(const char *text)
{
    struct quota_limits limits;

    cr_assert_eq(quota_limits_parse(text, &limits), 0, "%s", text);
    quota_set_limits(&q, &limits);
}

static void start(void)
{
    uint64_t capacity[QUOTA_KINDS];
    struct quota_limits limits;

    for (unsigned i = 0; i < QUOTA_KINDS; i++)
        capacity[i] = CAPACITY;
    cr_assert_eq(quota_limits_parse("", &limits), 0);
    quota_init(&q, &limits, capacity);
    log_set_level(LOG_LEVEL_ERROR);
}

static void finish(void)
{
    quota_fini(&q);
}

TestSuite(quota, .init = start, .fini = finish);

/* Charges until it fails. Returns how often it went well; *error: the failure. */
static unsigned fill(const struct quota_owner *o, enum quota_kind kind, int *error)
{
    char why[QUOTA_WHY_MAX];
    unsigned n = 0;

    while (n < 10 * CAPACITY && (*error = quota_charge(o, kind, why)) == 0)
        n++;
    return n;
}

static void empty(const struct quota_owner *o, enum quota_kind kind, unsigned n)
{
    while (n--)
        quota_release(o, kind);
}

Test(quota, texts_of_limits)
{
    static const char *const bad[] = {"qps",    "qps=",      "=5",     "qps=-1",  "qps=5T", "qps=5MM",
                                      "cows=5", "qps=5,",    ",qps=5", "qps=all", "qps=5 ", "qps=99999999999999999999",
                                      "qps=K",  "qps=autos", "all",    "qps=1=2", NULL};
    struct quota_limits l;

    cr_assert_eq(quota_limits_parse("qps=100,bytes=2G,mrs=none,cqs=auto,mws=4K", &l), 0);
    cr_expect_eq(l.of[QUOTA_QPS], 100);
    cr_expect_eq(l.of[QUOTA_BYTES], UINT64_C(2) << 30);
    cr_expect_eq(l.of[QUOTA_MRS], QUOTA_NONE);
    cr_expect_eq(l.of[QUOTA_CQS], QUOTA_AUTO);
    cr_expect_eq(l.of[QUOTA_MWS], 4096);
    cr_expect_eq(l.of[QUOTA_PDS], QUOTA_AUTO, "a kind that is not named");
    cr_assert_eq(quota_limits_parse("qps=0,all=none", &l), 0);
    cr_expect_eq(l.of[QUOTA_QPS], 0);
    cr_expect_eq(l.of[QUOTA_PDS], QUOTA_NONE);
    for (unsigned i = 0; bad[i]; i++)
        cr_expect_eq(quota_limits_parse(bad[i], &l), -EINVAL, "\"%s\" was taken", bad[i]);
}

Test(quota, every_kind_has_a_name_in_the_option)
{
    struct quota_limits l;
    char text[64];

    for (enum quota_kind k = 0; k < QUOTA_KINDS; k++) {
        snprintf(text, sizeof(text), "%s=7,all=none", quota_kind_name(k));
        cr_assert_eq(quota_limits_parse(text, &l), 0, "%s", text);
        for (enum quota_kind i = 0; i < QUOTA_KINDS; i++)
            cr_expect_eq(l.of[i], i == k ? 7 : QUOTA_NONE, "%s sets %s", text, quota_kind_name(i));
    }
}

/* Objects of each kind, and memory: the limit is reached exactly, and what is released can be had again. */
Test(quota, a_limit_is_hit_and_released)
{
    char why[QUOTA_WHY_MAX];
    int error;

    set_limits("all=7,descriptors=none");
    for (enum quota_kind k = 0; k < QUOTA_MAPPINGS; k++) {
        cr_expect_eq(fill(&a, k, &error), 7, "%s", quota_kind_name(k));
        cr_expect_eq(error, -EDQUOT);
        quota_release(&a, k);
        cr_expect_eq(fill(&a, k, &error), 1, "%s", quota_kind_name(k));
        empty(&a, k, 7);
    }
    cr_assert_eq(quota_charge_memory(&a, 1, 7, why), 0);
    cr_assert_eq(quota_charge_memory(&a, 0, 1, why), -EDQUOT);
    cr_expect_not_null(strstr(why, "7 bytes of queues"), "%s", why);
    cr_assert_eq(quota_charge_memory(&a, 7, 0, why), -EDQUOT);
    cr_expect_not_null(strstr(why, "7 memory mappings"), "%s", why);
    quota_release_memory(&a, 1, 7);
    cr_assert_eq(quota_charge_memory(&a, 7, 7, why), 0);
    quota_release_memory(&a, 7, 7);
    set_limits("all=none,descriptors=7");
    cr_expect_eq(fill(&a, QUOTA_CHANNELS, &error), 3, "a channel has two");
    cr_expect_eq(error, -EDQUOT);
    empty(&a, QUOTA_CHANNELS, 3);
}

/* A charge that fails leaves nothing behind, although one of its two kinds was free. */
Test(quota, a_charge_is_whole_or_not_at_all)
{
    char why[QUOTA_WHY_MAX];
    size_t n;

    set_limits("all=none,descriptors=0,mappings=0");
    cr_assert_eq(quota_charge(&a, QUOTA_CHANNELS, why), -EDQUOT);
    cr_assert_eq(quota_charge_memory(&a, 1, 4096, why), -EDQUOT);
    cr_expect_null(quota_rows(&q, &n));
    cr_expect_eq(n, 0);
    cr_expect_eq(q.total[QUOTA_CHANNELS][0] + q.total[QUOTA_BYTES][0], 0);
}

/* By default a user can have half of what the others leave. The next user always finds room. */
Test(quota, shares_leave_room)
{
    unsigned of_a, of_b;
    int error;

    of_a = fill(&a, QUOTA_QPS, &error);
    cr_expect_eq(of_a, CAPACITY / 2);
    cr_expect_eq(error, -EDQUOT);
    of_b = fill(&b, QUOTA_QPS, &error);
    cr_expect_eq(of_b, CAPACITY / 4);
    empty(&a, QUOTA_QPS, of_a);
    cr_expect_eq(fill(&b, QUOTA_QPS, &error), CAPACITY / 4, "the share grows when others give back");
    empty(&b, QUOTA_QPS, CAPACITY / 2);
}

Test(quota, a_user_always_has_a_little)
{
    int error;

    cr_assert_eq(fill(&root, QUOTA_QPS, &error), 10 * CAPACITY, "root has no limit");
    cr_expect_eq(fill(&a, QUOTA_QPS, &error), CAPACITY / QUOTA_FLOOR);
    empty(&a, QUOTA_QPS, CAPACITY / QUOTA_FLOOR);
    empty(&root, QUOTA_QPS, 10 * CAPACITY);
}

Test(quota, root_and_the_daemons_user_have_no_limits)
{
    struct quota_owner self = {&q, geteuid(), 0};
    char why[QUOTA_WHY_MAX];

    set_limits("all=0");
    cr_expect_eq(quota_charge(&a, QUOTA_QPS, why), -EDQUOT);
    cr_expect_eq(quota_charge(&root, QUOTA_QPS, why), 0);
    cr_expect_eq(quota_charge(&self, QUOTA_QPS, why), 0);
    quota_release(&root, QUOTA_QPS);
    quota_release(&self, QUOTA_QPS);
}

/* The daemon's own limits hold for all users together. */
Test(quota, the_daemon_has_no_more)
{
    static const struct {
        enum quota_kind kind;
        int error;
        unsigned most; /* a channel has two descriptors */
    } cases[] = {{QUOTA_CONNECTIONS, -EUSERS, CAPACITY}, {QUOTA_CHANNELS, -EMFILE, CAPACITY / 2}};
    char why[QUOTA_WHY_MAX];
    int error;

    set_limits("all=none");
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        cr_expect_eq(fill(&root, cases[i].kind, &error), cases[i].most);
        cr_expect_eq(error, cases[i].error);
        cr_expect_eq(quota_charge(&a, cases[i].kind, why), cases[i].error);
        cr_expect_not_null(strstr(why, "the daemon can have no more"), "%s", why);
        empty(&root, cases[i].kind, cases[i].most);
        cr_expect_eq(quota_charge(&a, cases[i].kind, why), 0);
        quota_release(&a, cases[i].kind);
    }
    cr_expect_eq(quota_charge_memory(&root, CAPACITY + 1, 1, why), -ENOMEM);
}

/* The limits of objects of a device hold on each device, the others for the daemon. */
Test(quota, devices)
{
    struct quota_owner second = {&q, a.uid, 1};
    int error;

    set_limits("all=5");
    cr_expect_eq(fill(&a, QUOTA_QPS, &error), 5);
    cr_expect_eq(fill(&second, QUOTA_QPS, &error), 5);
    cr_expect_eq(fill(&a, QUOTA_CQS, &error), 5);
    cr_expect_eq(fill(&second, QUOTA_CQS, &error), 0);
    empty(&a, QUOTA_QPS, 5);
    empty(&second, QUOTA_QPS, 5);
    empty(&second, QUOTA_CQS, 5);
}

Test(quota, rows_of_the_status)
{
    struct quota_row *row;
    char why[QUOTA_WHY_MAX];
    size_t n;

    set_limits("qps=1");
    cr_assert_eq(quota_charge(&a, QUOTA_QPS, why), 0);
    cr_assert_eq(quota_charge(&a, QUOTA_QPS, why), -EDQUOT);
    cr_assert_eq(quota_charge(&root, QUOTA_CHANNELS, why), 0);
    row = quota_rows(&q, &n);
    cr_assert_eq(n, 3);
    cr_expect(row[0].uid == a.uid && row[0].kind == QUOTA_QPS && row[0].device == 0 && row[0].used == 1 &&
              row[0].limit == 1 && row[0].refused == 1);
    cr_expect(row[1].uid == 0 && row[1].kind == QUOTA_CHANNELS && row[1].device == -1 && row[1].limit == QUOTA_NONE);
    cr_expect(row[2].kind == QUOTA_DESCRIPTORS && row[2].used == 2);
    free(row);
    quota_release(&a, QUOTA_QPS);
    quota_release(&root, QUOTA_CHANNELS);
    cr_expect_null(quota_rows(&q, &n), "nobody has anything");
}

/* Counts the lines that a call writes to the log. */
static unsigned lines_of(const struct quota_owner *o, enum quota_kind kind, unsigned calls)
{
    char why[QUOTA_WHY_MAX], text[65536];
    int ends[2], saved = dup(STDERR_FILENO);
    unsigned lines = 0;

    cr_assert_eq(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    log_set_level(LOG_LEVEL_WARN);
    while (calls--)
        cr_assert_eq(quota_charge(o, kind, why), -EDQUOT);
    log_set_level(LOG_LEVEL_ERROR);
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(ends[1]);
    ssize_t n = read(ends[0], text, sizeof(text));
    close(ends[0]);
    for (ssize_t i = 0; i < n; i++)
        lines += text[i] == '\n';
    return lines;
}

Test(quota, one_line_in_the_log_for_a_user_and_a_kind)
{
    char why[QUOTA_WHY_MAX];

    set_limits("pds=1,qps=1,cqs=1");
    for (enum quota_kind k = QUOTA_PDS; k <= QUOTA_CQS; k++)
        cr_assert(quota_charge(&a, k, why) == 0 && quota_charge(&b, k, why) == 0);
    cr_expect_eq(lines_of(&a, QUOTA_QPS, 500), 1);
    cr_expect_eq(lines_of(&a, QUOTA_QPS, 500), 0);
    cr_expect_eq(lines_of(&a, QUOTA_PDS, 500), 1, "another kind");
    cr_expect_eq(lines_of(&b, QUOTA_QPS, 500), 1, "another user");
    for (enum quota_kind k = QUOTA_PDS; k <= QUOTA_CQS; k++) {
        quota_release(&a, k);
        quota_release(&b, k);
    }
}

static void *churn(void *owner)
{
    char why[QUOTA_WHY_MAX];

    for (unsigned i = 0; i < 20000; i++) {
        cr_assert_eq(quota_charge(owner, QUOTA_CHANNELS, why), 0);
        quota_release(owner, QUOTA_CHANNELS);
    }
    return NULL;
}

/* The threads of devices and the main thread charge at the same time. */
Test(quota, threads)
{
    struct quota_owner *owners[] = {&a, &b, &a, &root};
    pthread_t thread[4];
    size_t n;

    for (unsigned i = 0; i < 4; i++)
        cr_assert_eq(pthread_create(&thread[i], NULL, churn, owners[i]), 0);
    for (unsigned i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    cr_expect_null(quota_rows(&q, &n));
    cr_expect_eq(q.total[QUOTA_CHANNELS][0] + q.total[QUOTA_DESCRIPTORS][0], 0);
}
