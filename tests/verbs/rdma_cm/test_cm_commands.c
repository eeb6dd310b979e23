// SPDX-License-Identifier: BSD-2-Clause
/* Commands to the device of connection management: their results, errors as the kernel's, and waiting for events. */
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "tests/verbs/device.h"
#include "tests/verbs/rdma_cm/fake.h"

static bool readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1 && p.revents == POLLIN;
}

static void errors(void)
{
    int fd = cm_open(0);
    struct rdma_ucm_cmd_hdr h = {RDMA_USER_CM_CMD_CREATE_ID, 24, 4};
    struct {
        struct rdma_ucm_cmd_hdr h;
        struct rdma_ucm_create_id in;
    } create = {h, {.uid = 5, .response = 8, .ps = RDMA_PS_TCP}};
    void *volatile wrong = (void *)16;
    errno = 0;
    ok(write(fd, &h, 7) == -1 && errno == EINVAL, "a command shorter than its header");
    ok(write(fd, &h, sizeof(h)) == -1 && errno == EINVAL, "a command shorter than its header says");
    ok(cm_raw(fd, 25, "", 0, 0) == EINVAL, "a command that does not exist");
    ok(cm_raw(fd, RDMA_USER_CM_CMD_GET_OPTION, "", 0, 0) == ENOSYS, "a command that the kernel does not have");
    ok(write(fd, wrong, sizeof(create)) == -1 && errno == EFAULT, "a command at a wrong address");
    ok(write(fd, &create, sizeof(create)) == -1 && errno == EFAULT, "a response to a wrong address");
    uint32_t rep[2] = {0, 0x5a5a5a5a};
    create.in.response = (uintptr_t)rep;
    create.h.out = 2;
    ok(write(fd, &create, sizeof(create)) == sizeof(create) && rep[1] == 0x5a5a5a5a && rep[0] >> 16 == 0,
       "a response is no longer than the program wants");
    create.h.out = 400;
    ok(write(fd, &create, sizeof(create)) == sizeof(create) && rep[0] != 0 && rep[1] == 0x5a5a5a5a,
       "a response is no longer than it is");
    char longer[sizeof(create) + 16] = {0};
    memcpy(longer, &create, sizeof(create));
    ok(write(fd, longer, sizeof(longer)) == sizeof(longer), "bytes behind the command are ignored");
    struct rdma_ucm_get_event get = {.response = (uintptr_t)rep};
    ok(cm_raw(fd, RDMA_USER_CM_CMD_GET_EVENT, &get, sizeof(get), 100) == ENOSPC, "no room for an event");
    close(fd);
}

static void options(void)
{
    int fd = cm_open(0), other = cm_open(0), file = open("/dev/null", O_RDWR);
    uint8_t value[PM_CM_IN_MAX + 1];
    for (size_t i = 0; i < sizeof(value); i++)
        value[i] = (uint8_t)i;
    struct rdma_ucm_set_option in = {.optval = (uintptr_t)value, .id = cm_create(fd, 1), .optlen = 4};
    ok(cm_raw(fd, RDMA_USER_CM_CMD_SET_OPTION, &in, sizeof(in), 0) == 0, "a short option");
    in.optlen = 6 * 72;
    ok(cm_raw(fd, RDMA_USER_CM_CMD_SET_OPTION, &in, sizeof(in), 0) == 0, "six path records");
    in.optlen = sizeof(value);
    ok(cm_raw(fd, RDMA_USER_CM_CMD_SET_OPTION, &in, sizeof(in), 0) == EINVAL, "an option that is too long");
    in.optlen = 4;
    in.optval = 64;
    ok(cm_raw(fd, RDMA_USER_CM_CMD_SET_OPTION, &in, sizeof(in), 0) == EFAULT, "an option at a wrong address");

    struct rdma_ucm_migrate_resp rep = {99};
    struct rdma_ucm_migrate_id m = {.response = (uintptr_t)&rep, .id = in.id, .fd = (uint32_t)fd};
    uint32_t place = 0;
    ok(cm_raw(other, RDMA_USER_CM_CMD_MIGRATE_ID, &m, sizeof(m), sizeof(rep)) == 0, "an ID moves to another channel");
    place = rep.events_reported;
    m.fd = (uint32_t)other;
    ok(cm_raw(other, RDMA_USER_CM_CMD_MIGRATE_ID, &m, sizeof(m), sizeof(rep)) == 0 && rep.events_reported == place + 1,
       "the daemon gets the old channel");
    m.fd = (uint32_t)file;
    ok(cm_raw(other, RDMA_USER_CM_CMD_MIGRATE_ID, &m, sizeof(m), sizeof(rep)) == EINVAL, "from a file that is none");
    m.fd = 9999;
    ok(cm_raw(other, RDMA_USER_CM_CMD_MIGRATE_ID, &m, sizeof(m), sizeof(rep)) == ENOENT, "from no file");
    close(file);
    close(other);
    close(fd);
}

static void events(void)
{
    int fd = cm_open(O_NONBLOCK);
    uint32_t id = cm_create(fd, 0x1122334455667788);
    struct rdma_ucm_event_resp event;
    ok(!readable(fd) && cm_get_event(fd, &event) == EAGAIN, "without an event: not readable, EAGAIN");
    cm_notify(fd, id, CM_ADDR_RESOLVED);
    cm_notify(fd, id, CM_ESTABLISHED);
    ok(readable(fd) && cm_get_event(fd, &event) == 0 && event.uid == 0x1122334455667788 && event.id == id &&
           event.event == CM_ADDR_RESOLVED,
       "the first event");
    ok(readable(fd) && cm_get_event(fd, &event) == 0 && event.event == CM_ESTABLISHED && !readable(fd),
       "the second one, and no more");
    cm_notify(fd, id, FAKE_GONE);
    cm_notify(fd, id, FAKE_GONE);
    ok(readable(fd) && cm_get_event(fd, &event) == EAGAIN && !readable(fd), "events of destroyed IDs are skipped");
    cm_notify(fd, id, FAKE_GONE);
    cm_notify(fd, id, CM_ESTABLISHED);
    ok(cm_get_event(fd, &event) == 0 && event.event == CM_ESTABLISHED && cm_get_event(fd, &event) == EAGAIN,
       "the next event comes in their place");
    ok(cm_end(fd, RDMA_USER_CM_CMD_DESTROY_ID, id) == FAKE_DESTROYED, "the daemon says how many events there were");
    close(fd);
}

/* --- waiting ----------------------------------------------------------------------------------- */
static int waiting_fd;

static void *wait_for_event(void *event)
{
    return (void *)(intptr_t)cm_get_event(waiting_fd, event);
}

static void on_signal(int signal)
{
    (void)signal;
}

static void handle(int flags)
{
    struct sigaction act = {.sa_handler = on_signal, .sa_flags = flags};
    sigaction(SIGUSR1, &act, NULL);
}

/* Until the thread sleeps in a system call. */
static void let_it_wait(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
}

static void waits(void)
{
    waiting_fd = cm_open(0);
    uint32_t id = cm_create(waiting_fd, 7);
    struct rdma_ucm_event_resp event;
    pthread_t thread;
    void *rc;
    need(pthread_create(&thread, NULL, wait_for_event, &event) == 0);
    let_it_wait();
    cm_notify(waiting_fd, id, CM_ESTABLISHED);
    ok(pthread_join(thread, &rc) == 0 && rc == NULL && event.uid == 7, "a thread waits for an event");

    handle(0);
    need(pthread_create(&thread, NULL, wait_for_event, &event) == 0);
    let_it_wait();
    pthread_kill(thread, SIGUSR1);
    ok(pthread_join(thread, &rc) == 0 && (intptr_t)rc == EINTR, "a signal handler ends the wait");

    handle(SA_RESTART);
    need(pthread_create(&thread, NULL, wait_for_event, &event) == 0);
    let_it_wait();
    pthread_kill(thread, SIGUSR1);
    let_it_wait();
    cm_notify(waiting_fd, id, CM_ADDR_RESOLVED);
    ok(pthread_join(thread, &rc) == 0 && rc == NULL, "one with SA_RESTART does not");

#ifndef __SANITIZE_ADDRESS__ /* it does not follow the way out of a cancelled thread */
    need(pthread_create(&thread, NULL, wait_for_event, &event) == 0);
    let_it_wait();
    pthread_cancel(thread);
    ok(pthread_join(thread, &rc) == 0 && rc == PTHREAD_CANCELED, "the wait can be cancelled");
#endif
    cm_notify(waiting_fd, id, CM_ESTABLISHED);
    int other = cm_open(0);
    ok(cm_get_event(waiting_fd, &event) == 0, "the next thread gets the event");
    close(waiting_fd);
    ok(cm_count(other) == 1, "the channel ends when it is closed");
    close(other);
}

static void connection_lost(void)
{
    int fd = cm_open(0);
    struct rdma_ucm_event_resp event;
    uint32_t id = cm_create(fd, 3);
    ok(cm_notify(fd, id, FAKE_LOST) == EIO, "the connection to the daemon is lost");
    ok(cm_notify(fd, id, CM_ESTABLISHED) == 0 && cm_get_event(fd, &event) == 0 && event.uid == 3,
       "the channel goes on with another one");
    int other = open(CM_FILE, O_RDWR);
    ok(other >= 0 && cm_count(fd) == 2, "so do new channels");
    cm_notify(fd, id, FAKE_LOST);
    close(other);
    other = open(CM_FILE, O_RDWR);
    ok(other >= 0 && cm_count(fd) == 2, "opening is the first to see the loss");
    close(other);
    close(fd);
}

int main(void)
{
    VT_OWN("commands of the client library");
    fake_start(false);
    errors();
    options();
    events();
    waits();
    connection_lost();
    return fake_end();
}
