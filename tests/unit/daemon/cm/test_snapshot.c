// SPDX-License-Identifier: BSD-2-Clause
/* The copy of connection management for the status: what each user sees. */
#include <criterion/criterion.h>

#include "daemon/cm/cm_snapshot.h"
#include "tests/unit/daemon/cm/cm_fixture.h"

#define A (&cm_node[0])

static void start(void)
{
    cr_assert(cm_start());
}

TestSuite(cm_snapshot, .init = start, .fini = cm_end);

static struct cm_snapshot *take(uid_t uid)
{
    struct user u = {.uid = uid, .known = true};

    return cm_snapshot_take(&A->t, &u, 1000000000);
}

Test(cm_snapshot, a_user_sees_its_own)
{
    struct cm_pair p;

    cr_assert_eq(cm_pair_connect(&p), 0);
    struct cm_snapshot *s = take(geteuid());
    cr_assert_not_null(s);
    cr_expect_eq(s->num_channels, 1);
    cr_assert_eq(s->num_ids, 2);
    cr_expect_eq(s->id[0].number, p.listener);
    cr_expect_eq(s->id[0].info.state, CM_ID_LISTEN);
    cr_expect_eq(s->id[0].info.src.port, p.port);
    cr_expect_eq(s->id[1].number, p.server);
    cr_expect_eq(s->id[1].info.state, CM_ID_ESTABLISHED);
    cr_expect_eq(s->id[1].info.remote_qpn, 0x22);
    cr_expect_eq(s->id[1].pid, getpid());
    cm_snapshot_free(s);
    s = take(geteuid() + 1);
    cr_expect_eq(s->num_channels, 0);
    cr_expect_eq(s->num_ids, 0);
    cm_snapshot_free(s);
}

Test(cm_snapshot, a_thread_that_runs_gives_its_ids_in_slices)
{
    char why[ERROR_TEXT_MAX];

    for (unsigned i = 0; i < 5000; i++)
        cr_assert_neq(cm_create(A, RDMA_PS_TCP, 1), 0);
    cr_assert_eq(cm_thread_start(&A->t, why), 0, "%s", why);
    struct cm_snapshot *s = take(geteuid());
    cr_assert_not_null(s);
    cr_expect_eq(s->num_ids, 5000);
    cm_snapshot_free(s);
    cm_thread_stop(&A->t);
}
