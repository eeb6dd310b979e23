// SPDX-License-Identifier: BSD-2-Clause
/* Channels: their pipes, their users, the moving of IDs, and hostile clients. */
#include <criterion/criterion.h>

#include "tests/unit/daemon/cm/cm_fixture.h"

#define A (&cm_node[0])
#define B (&cm_node[1])

static void start(void)
{
    cr_assert(cm_start());
}

TestSuite(cm_channel, .init = start, .fini = cm_end);

/* An ID with an event that waits. */
static uint32_t id_with_event(struct cm_node *n, uint64_t uid)
{
    uint32_t id = cm_create(n, RDMA_PS_TCP, uid);

    cr_assert_eq(cm_resolve(n, id, NULL, "127.0.0.1", 7471), 0);
    cm_settle();
    return id;
}

Test(cm_channel, a_byte_for_each_event)
{
    struct rdma_ucm_event_resp ev;
    uint32_t one = id_with_event(A, 1), two = id_with_event(A, 2);

    cr_expect_eq(cm_bytes(A->pipe), 2);
    cr_expect_eq(cm_destroy(A, one), 0);
    cr_expect_eq(cm_bytes(A->pipe), 1);
    cr_assert_eq(cm_event(A, &ev), 0);
    cr_expect_eq(ev.id, two);
    cr_expect_eq(ev.uid, 2);
    cr_expect_eq(cm_event(A, &ev), -EAGAIN);
}

Test(cm_channel, a_client_that_took_a_byte_of_an_event_that_is_gone)
{
    uint32_t id = id_with_event(A, 1);
    struct rdma_ucm_get_event in = {0};
    struct rdma_ucm_event_resp ev;
    char byte;

    cr_assert_eq(read(A->pipe, &byte, 1), 1);
    cr_expect_eq(cm_destroy(A, id), 0);
    cr_expect_eq(cm_command(A, RDMA_USER_CM_CMD_GET_EVENT, &in, sizeof(in), &ev, sizeof(ev)), -ENODATA);
}

Test(cm_channel, more_events_than_the_pipe_has_room_for)
{
    struct ucma_write_cm_event in = {.id = cm_create(A, RDMA_PS_TCP, 1), .event = UCMA_EVENT_USER};
    struct rdma_ucm_event_resp ev;

    fcntl(A->pipe, F_SETPIPE_SZ, 4096);
    for (unsigned i = 0; i < 5000; i++) {
        in.param.arg = i;
        cr_assert_eq(cm_command(A, UCMA_CMD_WRITE_CM_EVENT, &in, sizeof(in), NULL, 0), 0);
    }
    for (unsigned i = 0; i < 5000; i++) {
        uint64_t arg;

        cr_assert_eq(cm_event_of(A, A->channel, A->pipe, &ev), 0, "event %u", i);
        memcpy(&arg, &ev.param, sizeof(arg));
        cr_assert_eq(arg, i);
    }
    cr_expect_eq(cm_bytes(A->pipe), 0);
    in.event = CM_EVENT_ESTABLISHED;
    cr_expect_eq(cm_command(A, UCMA_CMD_WRITE_CM_EVENT, &in, sizeof(in), NULL, 0), -EINVAL);
}

Test(cm_channel, an_id_moves_with_its_events)
{
    uint32_t id = id_with_event(A, 1), other = id_with_event(A, 2);
    struct rdma_ucm_migrate_id in = {.id = id};
    struct rdma_ucm_migrate_resp resp;
    struct rdma_ucm_event_resp ev;
    uint64_t channel;
    int pipe = -1;

    cr_assert_eq(cm_channel_on(A, A->sock, &channel, &pipe), 0);
    cr_assert_eq(cm_command_extra(A, channel, RDMA_USER_CM_CMD_MIGRATE_ID, &in, sizeof(in), &A->channel,
                                  sizeof(A->channel), &resp, sizeof(resp)),
                 0);
    cr_expect_eq(resp.events_reported, 0);
    cr_expect_eq(cm_bytes(pipe), 1);
    cr_expect_eq(cm_bytes(A->pipe), 1);
    cr_assert_eq(cm_event_of(A, channel, pipe, &ev), 0);
    cr_expect_eq(ev.id, id);
    cr_assert_eq(cm_event_of(A, A->channel, A->pipe, &ev), 0);
    cr_expect_eq(ev.id, other);
    cr_expect_eq(cm_destroy(A, id), -EINVAL, "it is in another channel");
    close(pipe);
}

Test(cm_channel, lives_as_long_as_its_pipe_has_a_reader)
{
    struct pm_cm_channel_req rq = {A->channel};
    int copy = dup(A->pipe);

    cm_create(A, RDMA_PS_TCP, 1);
    cr_expect_eq(cm_request(A, PM_OP_CM_HOLD_CHANNEL, &rq, sizeof(rq), NULL, 0, NULL), 0);
    close(A->pipe);
    cr_expect_eq(cm_request(A, PM_OP_CM_DROP_CHANNEL, &rq, sizeof(rq), NULL, 0, NULL), 0);
    cm_settle();
    cr_expect_eq(A->t.host.ids.count, 1, "the duplicate reads it still");
    close(copy);
    A->pipe = -1;
    cr_expect_eq(cm_request(A, PM_OP_CM_DROP_CHANNEL, &rq, sizeof(rq), NULL, 0, NULL), 0);
    cr_expect_eq(A->t.host.ids.count, 0, "at once");
    cr_expect_eq(cm_request(A, PM_OP_CM_HOLD_CHANNEL, &rq, sizeof(rq), NULL, 0, NULL), -ENOENT);
}

Test(cm_channel, another_user_has_no_such_channel)
{
    struct pm_cm_channel_req rq = {A->channel};
    int sock = cm_connect_client(A, geteuid() + 1);

    cr_assert_geq(sock, 0);
    cr_expect_eq(cm_request_on(A, sock, PM_OP_CM_HOLD_CHANNEL, &rq, sizeof(rq), NULL, 0, NULL), -ENOENT);
    uint32_t id = cm_create(A, RDMA_PS_TCP, 1);
    struct {
        struct pm_cm_command_req head;
        struct rdma_ucm_destroy_id in;
    } cmd = {{A->channel, RDMA_USER_CM_CMD_DESTROY_ID, sizeof(cmd.in), 4, 0, {0}}, {.id = id}};
    cr_expect_eq(cm_request_on(A, sock, PM_OP_CM_COMMAND, &cmd, sizeof(cmd), NULL, 0, NULL), -ENOENT);
    int pipe = -1;
    cr_assert_eq(cm_channel_on(A, sock, &cmd.head.channel, &pipe), 0);
    cr_expect_eq(cm_request_on(A, sock, PM_OP_CM_COMMAND, &cmd, sizeof(cmd), NULL, 0, NULL), -ENOENT,
                 "an ID of another user does not exist");
    cr_expect_eq(cm_destroy(A, id), 0);
    close(pipe);
    close(sock);
}

Test(cm_channel, messages_of_wrong_form)
{
    struct pm_cm_command_req head = {A->channel, RDMA_USER_CM_CMD_CREATE_ID, 24, 4, 0, {0}};
    struct rdma_ucm_get_event in = {0};
    uint8_t out[512];

    cr_expect_eq(cm_request(A, PM_OP_CM_COMMAND, &head, sizeof(head), NULL, 0, NULL), -EINVAL, "no struct behind");
    cr_expect_eq(cm_request(A, PM_OP_CM_COMMAND, &head, 4, NULL, 0, NULL), -EINVAL);
    cr_expect_eq(cm_request(A, PM_OP_CM_HOLD_CHANNEL, &head, 4, NULL, 0, NULL), -EINVAL);
    cr_expect_eq(cm_request(A, PM_OP_LIST, NULL, 0, NULL, 0, NULL), -EINVAL, "not on this connection");
    cr_expect_eq(cm_command(A, UCMA_CMDS, &in, sizeof(in), out, sizeof(out)), -EINVAL);
    cr_expect_eq(cm_command(A, RDMA_USER_CM_CMD_GET_OPTION, &in, sizeof(in), out, sizeof(out)), -ENOSYS);
    cr_expect_eq(cm_command(A, RDMA_USER_CM_CMD_GET_EVENT, &in, sizeof(in), out, 8), -ENOSPC);
    cr_expect_eq(cm_command(A, RDMA_USER_CM_CMD_GET_EVENT, &in, sizeof(in), out, sizeof(out)), -ENODATA);
    /* A struct of an older program is shorter. The rest is 0. */
    struct rdma_ucm_create_id create = {.uid = 1, .ps = RDMA_PS_TCP};
    cr_expect_eq(cm_command(A, RDMA_USER_CM_CMD_CREATE_ID, &create, 18, out, 4), 0);
    create.ps = 1;
    cr_expect_eq(cm_command(A, RDMA_USER_CM_CMD_CREATE_ID, &create, sizeof(create), out, 4), -EINVAL);
    cr_expect_eq(cm_command(A, RDMA_USER_CM_CMD_CREATE_ID, &create, sizeof(create), out, 3), -ENOSPC);
}

Test(cm_channel, quotas, .init = NULL)
{
    static uint64_t capacity[QUOTA_KINDS];
    struct quota_limits limits;
    struct quota q;

    for (unsigned i = 0; i < QUOTA_KINDS; i++)
        capacity[i] = 1000;
    cr_assert_eq(quota_limits_parse("all=none,cm-ids=2,cm-channels=1", &limits), 0);
    quota_init(&q, &limits, capacity);
    q.self = (uid_t)-1;
    cr_assert(cm_start_quota(NULL));
    A->t.host.quota = &q;
    uid_t user = 4711;
    uint64_t channel;
    int pipe = -1, sock = cm_connect_client(A, user);
    cr_assert_geq(sock, 0);
    cr_assert_eq(cm_channel_on(A, sock, &channel, &pipe), 0);
    cr_expect_eq(cm_channel_on(A, sock, &channel, &pipe), -EDQUOT);
    close(sock);
    close(pipe);
    cm_settle();
    size_t n;
    struct quota_row *row = quota_rows(&q, &n);
    cr_expect_eq(n, 0, "everything was released");
    free(row);
    quota_fini(&q);
}
