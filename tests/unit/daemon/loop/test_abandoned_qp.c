// SPDX-License-Identifier: BSD-2-Clause
/* A program posts a request and dies. After the DREQ or DREP to its peer, the device sends no request of that program. */
#include <criterion/criterion.h>
#include <sys/wait.h>

#include "daemon/objects/qp/qp.h"
#include "tests/unit/daemon/daemon_fixture.h"

static struct fixture f;
static pid_t child;
static struct session *peer, *program; /* of this process, and of the child */
static struct fixture_cq peer_cq, program_cq;
static struct fixture_qp peer_qp, program_qp;

static struct session *session_of(pid_t pid)
{
    struct pm_open_req rq = {PM_ABI_VERSION, 0, (uintptr_t)&fixture_probe, fixture_probe};
    struct ucred cred = {pid, geteuid(), getegid()};
    struct session *s = NULL;

    f.rp.fds = 0;
    cr_assert_eq(session_open(f.device, -1, &cred, &rq, (struct client_fds){-1, -1}, &f.rp, &s), 0);
    fixture_close_fds(&f);
    return s;
}

static void make_qp(struct session *s, struct fixture_cq *cq, struct fixture_qp *qp)
{
    cr_assert_eq(fixture_cq(&f, s, 16, 0, cq), 0);
    cr_assert_eq(fixture_qp(&f, s, fixture_pd(&f, s), cq->rep.handle, 4, qp), 0);
}

static void setup(void)
{
    cr_assert(fixture_start(&f));
    child = fork();
    if (child == 0) {
        for (;;)
            pause();
    }
    cr_assert_gt(child, 0);
    peer = fixture_session(&f);
    program = session_of(child);
    make_qp(peer, &peer_cq, &peer_qp);
    make_qp(program, &program_cq, &program_qp);
    cr_assert_eq(fixture_connect(&f, peer, peer_qp.rep.qpn, program_qp.rep.qpn), 0);
    cr_assert_eq(fixture_connect(&f, program, program_qp.rep.qpn, peer_qp.rep.qpn), 0);
    memset(fixture_recv_slot(&peer_qp), 0, sizeof(struct pm_recv_wqe));
    fixture_post_recv(peer, &peer_qp);
}

/* The zombie stays until the test ends, so its pid is not another process's. */
static void kill_program(void)
{
    siginfo_t info;

    kill(child, SIGKILL);
    cr_assert_eq(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
}

static void teardown(void)
{
    fixture_end(&f);
    kill_program();
    waitpid(child, NULL, 0);
}
TestSuite(abandoned_qp, .init = setup, .fini = teardown, .timeout = 60);

/* A message without data: it needs nothing from the memory of its program. */
static void post(void)
{
    fixture_wqe(&program_qp, WR_SEND, 0, NULL, NULL, 0);
    fixture_send_slot(&program_qp)->num_sge = 0;
    fixture_post_send(program, &program_qp);
}

static void send_mad(uint32_t abandoned)
{
    struct cm_datagram d = {.hop_limit = 64, .abandoned_qpn = abandoned};

    memcpy(d.remote_gid, f.device->gid, 16);
    mad_box_send(&f.device->mads, &d);
    fixture_run(&f);
    cr_assert_eq(engine_counters(f.device->engine)->gsi_mads_sent, 1);
}

static enum qp_state state(void)
{
    return qp_state(client_qp_find(program, program_qp.rep.qpn)->qp);
}

Test(abandoned_qp, of_a_dead_program_sends_nothing)
{
    struct pm_cqe cqe;

    kill_program();
    post();
    send_mad(program_qp.rep.qpn);
    cr_expect_not(fixture_poll(&peer_cq, &cqe));
    cr_expect_eq(state(), QPS_ERR);
}

Test(abandoned_qp, of_a_living_program_goes_on)
{
    struct pm_cqe cqe;

    post();
    send_mad(program_qp.rep.qpn);
    cr_expect(fixture_poll(&peer_cq, &cqe));
    cr_expect_eq(state(), QPS_RTS);
}

/* A datagram that its program has asked for. */
Test(abandoned_qp, other_datagrams_stop_nothing)
{
    struct pm_cqe cqe;

    kill_program();
    post();
    send_mad(0);
    cr_expect(fixture_poll(&peer_cq, &cqe));
    cr_expect_eq(state(), QPS_RTS);
}

Test(abandoned_qp, that_the_device_does_not_have)
{
    kill_program();
    send_mad(0xabcdef);
    cr_expect_eq(state(), QPS_RTS);
}
