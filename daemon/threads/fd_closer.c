// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/threads/fd_closer.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/clock.h"

#define LANES (FD_CLOSER_USERS + 1)
#define OWN_LANE FD_CLOSER_USERS /* of sockets that hold nothing of a user */
#define IDLE_S 10 /* a thread without work ends after this time */

struct waiting_fd {
    int fd;
    STAILQ_ENTRY(waiting_fd) next;
};
STAILQ_HEAD(waiting_fds, waiting_fd);

/* The descriptors of one user. */
struct lane {
    struct waiting_fds waiting; /* in the order in which they came */
    unsigned num_waiting;
    uint64_t since[FD_CLOSER_PER_USER]; /* when the close() that runs now began; 0: none runs */
};

static struct {
    pthread_mutex_t lock; /* never held during a close() */
    pthread_cond_t work;
    struct lane lane[LANES];
    unsigned next; /* the lane to look at first, so that lanes take turns */
    unsigned threads, idle;
} c = {.lock = PTHREAD_MUTEX_INITIALIZER};

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void init(void)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&c.work, &attr);
    pthread_condattr_destroy(&attr);
    for (unsigned i = 0; i < LANES; i++)
        STAILQ_INIT(&c.lane[i].waiting);
}

static struct lane *lane_of(uid_t owner)
{
    return &c.lane[owner % FD_CLOSER_USERS];
}

/* --- the threads ------------------------------------------------------------------------------- */

/* Returns the entry of `since` for another close() of this user. NULL: nothing waits, or the user has all its
 * threads. */
static uint64_t *turn_of(struct lane *l)
{
    for (unsigned i = 0; l->num_waiting && i < FD_CLOSER_PER_USER; i++) {
        if (l->since[i] == 0)
            return &l->since[i];
    }
    return NULL;
}

static void *run(void *arg);

/* Makes sure that a thread will look at the waiting descriptors. */
static void wake(void)
{
    pthread_attr_t attr;
    sigset_t all, old;
    pthread_t thread;

    if (c.idle) {
        pthread_cond_signal(&c.work);
        return;
    }
    if (c.threads == FD_CLOSER_THREADS)
        return;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    sigfillset(&all); /* the main thread handles the signals */
    pthread_sigmask(SIG_SETMASK, &all, &old);
    if (pthread_create(&thread, &attr, run, NULL) == 0)
        c.threads++;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
}

static bool is_work_left(void)
{
    for (unsigned i = 0; i < LANES; i++) {
        if (turn_of(&c.lane[i]))
            return true;
    }
    return false;
}

/* Closes one descriptor. False: none may be closed now. */
static bool close_next(void)
{
    for (unsigned i = 0; i < LANES; i++) {
        struct lane *l = &c.lane[c.next++ % LANES];
        uint64_t *since = turn_of(l);

        if (!since)
            continue;
        struct waiting_fd *w = STAILQ_FIRST(&l->waiting);
        STAILQ_REMOVE_HEAD(&l->waiting, next);
        l->num_waiting--;
        *since = clock_ns();
        if (is_work_left())
            wake(); /* this thread may hang now */
        pthread_mutex_unlock(&c.lock);
        close(w->fd);
        free(w);
        pthread_mutex_lock(&c.lock);
        *since = 0;
        return true;
    }
    return false;
}

static void *run(void *arg)
{
    int rc = 0;

    (void)arg;
    prctl(PR_SET_NAME, "fd-closer");
    pthread_mutex_lock(&c.lock);
    while (rc == 0) {
        struct timespec end;

        if (close_next())
            continue;
        clock_gettime(CLOCK_MONOTONIC, &end);
        end.tv_sec += IDLE_S;
        c.idle++;
        rc = pthread_cond_timedwait(&c.work, &c.lock, &end);
        c.idle--;
        if (rc && close_next())
            rc = 0;
    }
    c.threads--;
    pthread_mutex_unlock(&c.lock);
    return NULL;
}

/* --- calls ------------------------------------------------------------------------------------- */

static void close_later(int fd, struct lane *l)
{
    struct waiting_fd *w = malloc(sizeof(*w));

    if (!w) {
        close(fd); /* it may block, but an open descriptor would never be closed */
        return;
    }
    w->fd = fd;
    pthread_once(&once, init);
    pthread_mutex_lock(&c.lock);
    STAILQ_INSERT_TAIL(&l->waiting, w, next);
    l->num_waiting++;
    if (turn_of(l))
        wake();
    pthread_mutex_unlock(&c.lock);
}

void fd_closer_close(int fd, uid_t owner)
{
    close_later(fd, lane_of(owner));
}

/* Are there messages that nobody has read? Only they can hold descriptors. Nothing comes after a shutdown. An empty
 * message looks like the end of the connection, but with this option each message also has the numbers of its sender, for
 * which there is no room here. */
static bool has_messages(int fd)
{
    struct msghdr m = {.msg_iov = NULL};
    int on = 1;

    return setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) != 0 ||
           recvmsg(fd, &m, MSG_DONTWAIT | MSG_PEEK) != 0 || m.msg_flags & MSG_CTRUNC;
}

void fd_closer_close_socket(int fd, uid_t owner)
{
    close_later(fd, shutdown(fd, SHUT_RDWR) == 0 && !has_messages(fd) ? &c.lane[OWN_LANE] : lane_of(owner));
}

static bool is_stuck(uint64_t since, uint64_t now)
{
    return since && now - since >= FD_CLOSER_STUCK_NS;
}

bool fd_closer_crowded(uid_t owner)
{
    struct lane *l = lane_of(owner);
    uint64_t now = clock_ns();
    bool stuck = true;

    pthread_mutex_lock(&c.lock);
    for (unsigned i = 0; i < FD_CLOSER_PER_USER; i++)
        stuck = stuck && is_stuck(l->since[i], now);
    bool crowded = l->num_waiting >= (stuck ? FD_CLOSER_STUCK_MAX : FD_CLOSER_WAITING_MAX);
    pthread_mutex_unlock(&c.lock);
    return crowded;
}

struct fd_closer_counts fd_closer_counts(void)
{
    struct fd_closer_counts n = {0};
    uint64_t now = clock_ns();

    pthread_mutex_lock(&c.lock);
    for (unsigned i = 0; i < LANES; i++) {
        n.waiting += c.lane[i].num_waiting;
        for (unsigned k = 0; k < FD_CLOSER_PER_USER; k++) {
            n.waiting += c.lane[i].since[k] != 0;
            n.stuck += is_stuck(c.lane[i].since[k], now);
        }
    }
    pthread_mutex_unlock(&c.lock);
    return n;
}
