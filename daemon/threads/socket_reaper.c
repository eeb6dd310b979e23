// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/threads/socket_reaper.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define TAKEN_MOST 64u /* sockets that one thread closes with its end */

static atomic_int to = -1; /* the end that the sockets are sent into */
/* Held from the sending of a socket to the close() of the sender's descriptor. Neither blocks. */
static pthread_mutex_t sending = PTHREAD_MUTEX_INITIALIZER;

/* What a new thread gets. It belongs to the thread that starts the new one. */
struct start {
    int from; /* the other end */
    sem_t ready;
    bool own_table; /* the new thread has a table of descriptors of its own */
};

static bool start_thread(int from);

/* Receives some of the sockets. They are in the table of this thread only. */
static void receive(int from)
{
    _Alignas(struct cmsghdr) uint8_t ctl[CMSG_SPACE(sizeof(int))];
    char byte;

    for (unsigned i = 0; i < TAKEN_MOST; i++) {
        struct iovec iov = {&byte, 1};
        struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = ctl, .msg_controllen = sizeof(ctl)};

        if (recvmsg(from, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) <= 0)
            return;
    }
}

/* Waits for sockets. False: there will be none. The thread before this one may take what poll() has reported. */
static bool wait_for_sockets(int from)
{
    struct pollfd p = {.fd = from, .events = POLLIN};
    ssize_t n;
    char byte;

    do {
        while (poll(&p, 1, -1) < 0)
            continue;
        n = recv(from, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT);
    } while (n < 0);
    return n > 0;
}

static void *run(void *arg)
{
    const struct timespec pause = {.tv_nsec = 100000000};
    struct start *s = arg;
    int from = s->from;
    bool own = unshare(CLONE_FILES) == 0;

    s->own_table = own;
    sem_post(&s->ready);
    if (!own)
        return NULL;
    prctl(PR_SET_NAME, "socket-reaper");
    if (from > 0)
        close_range(0, (unsigned)from - 1, 0);
    close_range((unsigned)from + 1, ~0u, 0);
    if (!wait_for_sockets(from))
        return NULL;
    while (!start_thread(from))
        nanosleep(&pause, NULL);
    receive(from);
    /* The senders of these sockets have closed theirs now, so that the descriptors of this thread are the last ones. */
    pthread_mutex_lock(&sending);
    pthread_mutex_unlock(&sending);
    return NULL; /* closes them */
}

/* Starts a thread that receives from this end. The new thread copies the table of this one, which must not yet have any
 * socket that is to be closed. */
static bool start_thread(int from)
{
    struct start s = {.from = from};
    pthread_attr_t attr;
    sigset_t all, old;
    pthread_t thread;

    sem_init(&s.ready, 0, 0);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    sigfillset(&all); /* the main thread handles the signals */
    pthread_sigmask(SIG_SETMASK, &all, &old);
    bool started = pthread_create(&thread, &attr, run, &s) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    while (started && sem_wait(&s.ready) != 0)
        continue;
    sem_destroy(&s.ready);
    return started && s.own_table;
}

void socket_reaper_start(void)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
        return;
    if (start_thread(ends[1]))
        atomic_store(&to, ends[0]);
    else
        close(ends[0]);
    close(ends[1]);
}

void socket_reaper_stop(void)
{
    int end = atomic_exchange(&to, -1);

    if (end >= 0)
        close(end);
}

bool socket_reaper_take(int fd)
{
    _Alignas(struct cmsghdr) uint8_t ctl[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec iov = {"", 1};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = ctl, .msg_controllen = sizeof(ctl)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    int end = atomic_load(&to);

    if (end < 0)
        return false;
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &fd, sizeof(fd));
    pthread_mutex_lock(&sending);
    bool sent = sendmsg(end, &m, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
    if (sent)
        close(fd);
    pthread_mutex_unlock(&sending);
    return sent;
}
