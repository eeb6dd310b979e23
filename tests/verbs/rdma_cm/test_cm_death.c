// SPDX-License-Identifier: BSD-2-Clause
/* Connection management when the daemon dies, is started again, or refuses. */
#include <pthread.h>
#include <time.h>

#include "tests/verbs/device.h"
#include "tests/verbs/rdma_cm/fake.h"

static int waiting_fd;

static void *wait_for_event(void *event)
{
    return (void *)(intptr_t)cm_get_event(waiting_fd, event);
}

static bool removed(int fd, uint64_t uid, uint32_t id)
{
    struct rdma_ucm_event_resp e;
    return cm_get_event(fd, &e) == 0 && e.event == CM_DEVICE_REMOVAL && e.uid == uid && e.id == id && e.status == 0;
}

static int accept_id(int fd, uint32_t id, uint64_t uid, bool valid)
{
    struct rdma_ucm_accept in = {.uid = uid, .id = id, .conn_param.valid = valid};
    return cm_raw(fd, RDMA_USER_CM_CMD_ACCEPT, &in, sizeof(in), 0);
}

static uint32_t join(int fd, uint32_t id, uint64_t uid)
{
    struct rdma_ucm_create_id_resp rep = {0};
    struct rdma_ucm_join_mcast in = {.response = (uintptr_t)&rep, .uid = uid, .id = id};
    return cm_raw(fd, RDMA_USER_CM_CMD_JOIN_MCAST, &in, sizeof(in), sizeof(rep)) == 0 ? rep.id : 0;
}

/* The IDs of a channel: a listener with two requests, of which the program accepts the first; an ID with a membership;
 * one that was destroyed; one that came from another channel. */
static struct {
    uint32_t listener, accepted, fresh, member, group, moved;
} ids;

static void make_ids(int fd, int other)
{
    struct rdma_ucm_event_resp e;
    ids.listener = cm_create(fd, 100);
    ids.member = cm_create(fd, 101);
    uint32_t gone = cm_create(fd, 102);
    ids.moved = cm_create(other, 103);
    need(ids.listener && ids.member && gone && ids.moved);
    cm_notify(fd, ids.listener, CM_CONNECT_REQUEST);
    cm_notify(fd, ids.listener, CM_CONNECT_REQUEST);
    need(cm_get_event(fd, &e) == 0 && e.uid == 100);
    ids.accepted = e.id;
    need(cm_get_event(fd, &e) == 0 && e.uid == 100);
    ids.fresh = e.id;
    need(accept_id(fd, ids.accepted, 104, true) == 0);
    cm_notify(fd, ids.accepted, CM_ESTABLISHED);
    need(cm_get_event(fd, &e) == 0 && e.id == ids.accepted);
    need(accept_id(fd, ids.accepted, 0, false) == 0); /* the second ACCEPT of the active side has no number */
    ids.group = join(fd, ids.member, 201);
    cm_notify(fd, ids.group, CM_MULTICAST_JOIN);
    need(ids.group && cm_get_event(fd, &e) == 0 && e.uid == 201);
    need(cm_end(fd, RDMA_USER_CM_CMD_DESTROY_ID, gone) == FAKE_DESTROYED);
    cm_notify(other, ids.moved, CM_ADDR_RESOLVED);
    need(cm_get_event(other, &e) == 0);
    struct rdma_ucm_migrate_resp rep;
    struct rdma_ucm_migrate_id m = {.response = (uintptr_t)&rep, .id = ids.moved, .fd = (uint32_t)other};
    need(cm_raw(fd, RDMA_USER_CM_CMD_MIGRATE_ID, &m, sizeof(m), sizeof(rep)) == 0);
}

static void dies(void)
{
    waiting_fd = cm_open(0);
    int other = cm_open(O_NONBLOCK), quiet = cm_open(O_NONBLOCK);
    struct rdma_ucm_event_resp event;
    pthread_t thread;
    void *rc;
    make_ids(waiting_fd, other);
    uint32_t single = cm_create(other, 300);
    cm_notify(other, single, CM_ESTABLISHED); /* an event that nobody took */
    need(pthread_create(&thread, NULL, wait_for_event, &event) == 0);
    nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    fake_kill();
    ok(pthread_join(thread, &rc) == 0 && rc == NULL && event.event == CM_DEVICE_REMOVAL && event.uid == 100,
       "a thread that waits gets the event that the device is gone");
    struct pollfd p = {.fd = waiting_fd, .events = POLLIN};
    ok(poll(&p, 1, 0) == 1 && p.revents == POLLIN, "poll reports that further events can be read, and nothing else");
    /* In the order of their numbers. The fresh request has none of the program, which does not know it yet. */
    ok(removed(waiting_fd, 101, ids.member) && removed(waiting_fd, 103, ids.moved) &&
           removed(waiting_fd, 104, ids.accepted),
       "each ID gets it");
    ok(poll(&p, 1, 0) == 0, "then the channel is silent");
    ok(cm_get_event(waiting_fd, &event) == ENODEV && cm_get_event(waiting_fd, &event) == ENODEV, "and only once");
    ok(cm_notify(waiting_fd, ids.listener, CM_ESTABLISHED) == ENODEV && cm_create(waiting_fd, 1) == 0 &&
           errno == ENODEV,
       "commands fail with ENODEV");
    ok(cm_end(waiting_fd, RDMA_USER_CM_CMD_LEAVE_MCAST, ids.group) == 1, "the membership ends after one event");
    ok(cm_end(waiting_fd, RDMA_USER_CM_CMD_DESTROY_ID, ids.listener) == 3,
       "the listener: two requests and the removal");
    ok(cm_end(waiting_fd, RDMA_USER_CM_CMD_DESTROY_ID, ids.accepted) == 2, "the accepted ID: established, and removal");
    ok(cm_end(waiting_fd, RDMA_USER_CM_CMD_DESTROY_ID, ids.fresh) == 0, "the request that nobody accepted: no event");
    ok(cm_end(waiting_fd, RDMA_USER_CM_CMD_DESTROY_ID, ids.member) == 2, "the member: that of the group, and removal");
    ok(cm_end(waiting_fd, RDMA_USER_CM_CMD_DESTROY_ID, ids.moved) == 2, "the ID that came: one before, and removal");
    ok(cm_end(waiting_fd, RDMA_USER_CM_CMD_DESTROY_ID, ids.moved) == -ENODEV, "an ID that is destroyed already");
    p = (struct pollfd){.fd = other, .events = POLLIN};
    ok(poll(&p, 1, 0) == 1 && p.revents == POLLIN, "a channel that nobody read since is readable");
    ok(removed(other, 300, single) && cm_end(other, RDMA_USER_CM_CMD_DESTROY_ID, single) == 1,
       "an event that nobody took is lost, and not counted");
    ok(poll(&p, 1, 0) == 0, "until its last event is read");
    ok(cm_get_event(quiet, &event) == ENODEV, "a channel without IDs");
    p.fd = quiet;
    ok(poll(&p, 1, 0) == 0, "is silent, too");
    errno = 0;
    ok(open(CM_FILE, O_RDWR) == -1 && errno == ENOENT, "without a daemon there is no new channel");

    fake_start(false);
    int fresh = open(CM_FILE, O_RDWR | O_CLOEXEC);
    ok(fresh >= 0 && cm_create(fresh, 1) && cm_count(fresh) == 1, "the next daemon gives a channel");
    ok(cm_create(quiet, 1) == 0 && errno == ENODEV, "the old ones stay as they are");
    ok(close(quiet) == 0 && close(other) == 0 && close(waiting_fd) == 0 && cm_count(fresh) == 1, "and are closed");
    close(fresh);
}

/* The daemon is started again before the program notices. */
static void another_daemon(void)
{
    int fd = cm_open(0);
    uint32_t id = cm_create(fd, 1);
    fake_kill();
    fake_start(false);
    ok(cm_notify(fd, id, CM_ESTABLISHED) == ENODEV && removed(fd, 1, id), "another daemon does not know the channel");
    close(fd);
}

static void in_child(void)
{
    int fd = cm_open(0), status = -1;
    uint32_t id = cm_create(fd, 1);
    fake_kill();
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        _exit(removed(fd, 1, id) && cm_end(fd, RDMA_USER_CM_CMD_DESTROY_ID, id) == 1 ? 0 : 1);
    ok(waitpid(child, &status, 0) == child && status == 0, "a child sees the same");
    ok(removed(fd, 1, id), "and the parent, too");
    close(fd);
    fake_start(false);
}

static void refuses(void)
{
    char text[1024] = "";
    int pipes[2], old = dup(STDERR_FILENO);
    fake_kill();
    fake_start(true);
    need(pipe(pipes) == 0 && dup2(pipes[1], STDERR_FILENO) >= 0);
    errno = 0;
    bool failed = open(CM_FILE, O_RDWR) == -1 && errno == ENOENT;
    failed &= open(CM_FILE, O_RDWR) == -1 && errno == ENOENT;
    dup2(old, STDERR_FILENO);
    close(pipes[1]);
    (void)!read(pipes[0], text, sizeof(text) - 1);
    const char *line = strstr(text, "pumice: rdma_cm");
    ok(failed && line && strstr(text, "not today") && !strstr(line + 1, "pumice: rdma_cm"),
       "a daemon that refuses: ENOENT, and one line that says so");
}

int main(void)
{
    VT_OWN("the death of a daemon and the client library");
    fake_start(false);
    dies();
    another_daemon();
    in_child();
    refuses();
    return fake_end();
}
