// SPDX-License-Identifier: BSD-2-Clause
/* The things that a session knows of its client's process. */
#include <criterion/criterion.h>
#include <sys/prctl.h>

#include "tests/unit/daemon/daemon_fixture.h"

static struct fixture f;

static void setup(void)
{
    cr_assert(fixture_start(&f));
}
static void teardown(void)
{
    fixture_end(&f);
}
TestSuite(session, .init = setup, .fini = teardown);

Test(session, the_name_of_the_program_is_printable)
{
    prctl(PR_SET_NAME, "\033[2J\nxy\xff\xc3\xa4\xe2\x82\xac\xe2\x82\xac");
    struct session *s = fixture_session(&f);
    cr_assert_not_null(s);
    cr_expect_str_eq(s->comm, "?[2J?xy?\xc3\xa4\xe2\x82\xac??", "%s", s->comm);
}

/* The PID of a client that has gone may belong to another user's process. */
Test(session, a_process_of_another_user_is_not_taken_for_the_client)
{
    struct pm_open_req rq = {PM_ABI_VERSION, 0, (uintptr_t)&fixture_probe, fixture_probe};
    struct ucred cred = {getpid(), geteuid() + 1, getegid()};
    struct session *s = NULL;

    cr_assert_eq(session_open(f.device, -1, &cred, &rq, (struct client_fds){-1, -1}, &f.rp, &s), 0);
    fixture_close_fds(&f);
    cr_expect_eq(s->pid_fd, -1);
    s = fixture_session(&f);
    cr_expect_geq(s->pid_fd, 0, "the same user");
}
