// SPDX-License-Identifier: BSD-2-Clause
/* The closer of clients' descriptors: users do not wait for each other, and pay for what waits. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/base/quota.h"
#include "daemon/threads/fd_closer.h"

/* A process of these tests has few descriptors, so these numbers are free. Closing one blocks until release_all. */
#define STUCK 100000
#define UID 70000u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool released;
static unsigned blocked;
static struct quota quota;

/* The closer calls this one. */
int close(int fd)
{
    if (fd < STUCK)
        return (int)syscall(SYS_close, fd);
    pthread_mutex_lock(&lock);
    blocked++;
    pthread_cond_broadcast(&changed);
    while (!released)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return 0;
}

static void await_blocked(unsigned n)
{
    pthread_mutex_lock(&lock);
    while (blocked < n)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void release_all(void)
{
    pthread_mutex_lock(&lock);
    released = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    while (fd_closer_counts().waiting)
        usleep(1000);
}

static void setup(void)
{
    struct quota_limits limits;
    uint64_t capacity[QUOTA_KINDS];

    cr_assert(quota_limits_parse("", &limits) == 0);
    for (unsigned i = 0; i < QUOTA_KINDS; i++)
        capacity[i] = 1000;
    quota_init(&quota, &limits, capacity);
    fd_closer_set_quota(&quota);
}
static void teardown(void)
{
    release_all();
    fd_closer_set_quota(NULL);
    quota_fini(&quota);
}
TestSuite(fd_closer, .init = setup, .fini = teardown, .timeout = 60);

static void stick(uid_t uid, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        fd_closer_close(STUCK, uid);
}

/* True if another process closes the other end of the pipe. */
static bool ends(int fd)
{
    char c;

    return read(fd, &c, 1) == 0;
}

/* A pipe whose write end is for the closer. */
static int pipe_for(int *write_fd)
{
    int fd[2];

    cr_assert(pipe(fd) == 0);
    *write_fd = fd[1];
    return fd[0];
}

/* Also users whose numbers are equal modulo a power of two. */
Test(fd_closer, users_do_not_wait_for_each_other)
{
    int write_fd, read_fd = pipe_for(&write_fd);

    for (unsigned bits = 0; bits < 16; bits++)
        stick(UID + (1u << bits), 8);
    await_blocked(16 * FD_CLOSER_PER_USER);
    fd_closer_close(write_fd, UID);
    cr_expect(ends(read_fd));
    cr_expect_not(fd_closer_crowded(UID));
}

Test(fd_closer, a_user_with_stuck_descriptors_may_send_no_more)
{
    stick(UID, FD_CLOSER_PER_USER + FD_CLOSER_STUCK_MAX);
    await_blocked(FD_CLOSER_PER_USER);
    while (fd_closer_counts().stuck < FD_CLOSER_PER_USER)
        usleep(10000);
    cr_expect(fd_closer_crowded(UID));
    cr_expect_not(fd_closer_crowded(UID + 64));
}

/* --- sockets ----------------------------------------------------------------------------------- */

static void send_message(int sock, const char *text, int fd)
{
    _Alignas(struct cmsghdr) char ctl[CMSG_SPACE(sizeof(fd))] = {0};
    struct iovec iov = {(void *)(uintptr_t)text, strlen(text)};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

    if (fd >= 0) {
        m.msg_control = ctl;
        m.msg_controllen = sizeof(ctl);
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        *c = (struct cmsghdr){CMSG_LEN(sizeof(fd)), SOL_SOCKET, SCM_RIGHTS};
        memcpy(CMSG_DATA(c), &fd, sizeof(fd));
    }
    cr_assert_eq(sendmsg(sock, &m, 0), (ssize_t)strlen(text));
}

/* A connection whose client has sent some messages, empty ones too, and perhaps one with a descriptor. Returns the
 * daemon's end. */
static int connection(int *client, bool with_fd)
{
    int fd[2];

    cr_assert(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fd) == 0);
    send_message(fd[0], "", -1);
    send_message(fd[0], "text", -1);
    send_message(fd[0], "", -1);
    if (with_fd)
        send_message(fd[0], "", fd[0]);
    *client = fd[0];
    return fd[1];
}

Test(fd_closer, a_socket_waits_only_for_descriptors_in_its_messages)
{
    int client[2], plain = connection(&client[0], false), loaded = connection(&client[1], true);

    stick(UID, FD_CLOSER_PER_USER);
    await_blocked(FD_CLOSER_PER_USER);
    fd_closer_close_socket(loaded, UID);
    fd_closer_close_socket(plain, UID);
    while (fd_closer_counts().waiting > FD_CLOSER_PER_USER + 1)
        usleep(1000);
    cr_expect_eq(fd_closer_counts().waiting, FD_CLOSER_PER_USER + 1, "one socket waits");
    cr_expect_eq(read(plain, &(char){0}, 1), -1, "it is not this one");
    cr_expect_eq(read(loaded, &(char){0}, 1), 0, "it is this one, with an empty message");
    cr_expect_eq(send(client[1], "", 0, MSG_NOSIGNAL), -1, "but the connection has ended");
}

Test(fd_closer, a_client_that_left_answers_unread)
{
    int fd[2];

    cr_assert(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fd) == 0);
    send_message(fd[1], "answer", -1);
    cr_assert_eq(close(fd[0]), 0); /* fd[1] has ECONNRESET now */
    stick(UID, FD_CLOSER_PER_USER);
    await_blocked(FD_CLOSER_PER_USER);
    fd_closer_close_socket(fd[1], UID);
    while (fd_closer_counts().waiting > FD_CLOSER_PER_USER)
        usleep(1000);
}

/* All users together can't take the threads that close ordinary sockets. */
Test(fd_closer, sockets_are_closed_while_all_threads_are_stuck)
{
    int client, sock = connection(&client, false);

    for (unsigned i = 0; i < FD_CLOSER_THREADS; i++)
        stick(UID + i, 2);
    await_blocked(FD_CLOSER_THREADS);
    unsigned waiting = fd_closer_counts().waiting;
    fd_closer_close_socket(sock, UID);
    while (fd_closer_counts().waiting > waiting)
        usleep(1000);
    cr_expect_eq(blocked, FD_CLOSER_THREADS);
}

/* --- quotas ------------------------------------------------------------------------------------ */

Test(fd_closer, waiting_descriptors_are_open_files_of_their_user)
{
    const struct quota_owner o = {&quota, UID, 0};
    char why[QUOTA_WHY_MAX];
    int client, sock = connection(&client, true);

    stick(UID, 300);
    fd_closer_close_socket(sock, UID);
    cr_expect_eq(quota_total(&quota, QUOTA_DESCRIPTORS), 301);
    cr_assert_eq(quota_charge(&o, QUOTA_CONNECTIONS, why), 0, "its limit is 500");
    quota_release(&o, QUOTA_CONNECTIONS);
    stick(UID, 300);
    cr_expect_eq(quota_charge(&o, QUOTA_CONNECTIONS, why), -EDQUOT);
    cr_expect_eq(quota_excess_files(&quota), 0);
    stick(UID, 400);
    cr_expect_eq(quota_excess_files(&quota), 1);
    cr_expect(fd_closer_crowded(UID + 1), "there are none for others either");
    release_all();
    cr_expect_eq(quota_total(&quota, QUOTA_DESCRIPTORS), 0);
}

/* As at the end of the daemon. */
Test(fd_closer, nobody_pays_without_quotas)
{
    stick(UID, 10);
    await_blocked(FD_CLOSER_PER_USER);
    fd_closer_set_quota(NULL);
    cr_expect_eq(quota_total(&quota, QUOTA_DESCRIPTORS), 0);
    stick(UID, 10);
    cr_expect_eq(quota_total(&quota, QUOTA_DESCRIPTORS), 0);
}
