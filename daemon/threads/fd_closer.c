// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/threads/fd_closer.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/quota.h"
#include "daemon/threads/socket_reaper.h"

#define THREADS_MAX (FD_CLOSER_THREADS + FD_CLOSER_PER_USER)
#define IDLE_S 10 /* a thread without work ends after this time */

struct waiting_fd {
    int fd;
    bool charged; /* to the user of the lane */
    uint64_t since; /* when its close() began */
    STAILQ_ENTRY(waiting_fd) next;
};

/* The descriptors of one user. */
struct lane {
    uid_t owner;
    STAILQ_HEAD(, waiting_fd) waiting; /* in the order in which they came */
    unsigned num_waiting;
    struct waiting_fd *closing[FD_CLOSER_PER_USER]; /* NULL: a thread is free for the next one */
    TAILQ_ENTRY(lane) link;
};

static struct {
    pthread_mutex_t lock; /* never held during a close() */
    pthread_cond_t work;
    TAILQ_HEAD(, lane) lanes; /* those with descriptors, and `own`; in the order of their turns */
    struct lane own; /* of sockets that hold nothing of a user */
    unsigned threads, idle;
    unsigned closing; /* descriptors of users that are being closed */
    struct quota *quota;
} c = {.lock = PTHREAD_MUTEX_INITIALIZER};

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void init(void)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&c.work, &attr);
    pthread_condattr_destroy(&attr);
    TAILQ_INIT(&c.lanes);
    STAILQ_INIT(&c.own.waiting);
    TAILQ_INSERT_TAIL(&c.lanes, &c.own, link);
}

/* All calls begin with this one. */
static void lock(void)
{
    pthread_once(&once, init);
    pthread_mutex_lock(&c.lock);
}

/* --- lanes ------------------------------------------------------------------------------------- */

/* NULL: the user has none. */
static struct lane *find_lane(uid_t owner)
{
    struct lane *l;

    TAILQ_FOREACH (l, &c.lanes, link) {
        if (l != &c.own && l->owner == owner)
            break;
    }
    return l;
}

static struct lane *find_or_add_lane(uid_t owner)
{
    struct lane *l = find_lane(owner);

    if (l)
        return l;
    l = calloc(1, sizeof(*l));
    if (!l)
        return NULL;
    l->owner = owner;
    STAILQ_INIT(&l->waiting);
    TAILQ_INSERT_TAIL(&c.lanes, l, link);
    return l;
}

static bool is_empty(const struct lane *l)
{
    for (unsigned i = 0; i < FD_CLOSER_PER_USER; i++) {
        if (l->closing[i])
            return false;
    }
    return !l->num_waiting;
}

static struct quota_owner payer(const struct lane *l)
{
    return (struct quota_owner){c.quota, l->owner, 0};
}

static void release(const struct lane *l, struct waiting_fd *w)
{
    const struct quota_owner o = payer(l);

    if (w->charged)
        quota_release_open_file(&o);
    w->charged = false;
}

/* --- the threads ------------------------------------------------------------------------------- */

/* Returns the entry of `closing` for another close() of this lane. NULL: nothing waits, or the lane has all its
 * threads. */
static struct waiting_fd **turn_of(struct lane *l)
{
    if (l != &c.own && c.closing == FD_CLOSER_THREADS)
        return NULL;
    for (unsigned i = 0; l->num_waiting && i < FD_CLOSER_PER_USER; i++) {
        if (!l->closing[i])
            return &l->closing[i];
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
    if (c.threads == THREADS_MAX)
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

/* The next lane with something to close. NULL: none. */
static struct lane *next_lane(void)
{
    struct lane *l;

    TAILQ_FOREACH (l, &c.lanes, link) {
        if (turn_of(l))
            break;
    }
    return l;
}

static void close_one(struct lane *l)
{
    struct waiting_fd **turn = turn_of(l), *w = STAILQ_FIRST(&l->waiting);

    STAILQ_REMOVE_HEAD(&l->waiting, next);
    l->num_waiting--;
    w->since = clock_ns();
    *turn = w;
    c.closing += l != &c.own;
    TAILQ_REMOVE(&c.lanes, l, link);
    TAILQ_INSERT_TAIL(&c.lanes, l, link);
    if (next_lane())
        wake(); /* this thread may hang now */
    pthread_mutex_unlock(&c.lock);
    close(w->fd);
    pthread_mutex_lock(&c.lock);
    *turn = NULL;
    c.closing -= l != &c.own;
    release(l, w);
    free(w);
    if (l != &c.own && is_empty(l)) {
        TAILQ_REMOVE(&c.lanes, l, link);
        free(l);
    }
}

/* Closes one descriptor. False: none may be closed now. */
static bool close_next(void)
{
    struct lane *l = next_lane();

    if (l)
        close_one(l);
    return l != NULL;
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

/* owner NULL: the descriptor holds nothing of a user. */
static void close_later(int fd, const uid_t *owner)
{
    struct waiting_fd *w = calloc(1, sizeof(*w));

    lock();
    struct lane *l = !w ? NULL : owner ? find_or_add_lane(*owner) : &c.own;
    if (!l) {
        pthread_mutex_unlock(&c.lock);
        free(w);
        close(fd); /* it may block, but an open descriptor would never be closed */
        return;
    }
    const struct quota_owner o = payer(l);
    w->fd = fd;
    w->charged = owner && c.quota && quota_charge_open_file(&o);
    STAILQ_INSERT_TAIL(&l->waiting, w, next);
    l->num_waiting++;
    if (turn_of(l))
        wake();
    pthread_mutex_unlock(&c.lock);
}

static bool is_socket(int fd)
{
    int type;
    socklen_t len = sizeof(type);

    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0;
}

void fd_closer_close(int fd, uid_t owner)
{
    if (!is_socket(fd) || !socket_reaper_take(fd))
        close_later(fd, &owner);
}

/* Messages in a socket; a socket has room for some hundred. */
#define MESSAGES_MAX 1024u

/* May unread messages in the socket bring descriptors? Nothing comes after a shutdown. Messages without descriptors are
 * read, because one with some may be behind them. With SO_PASSCRED, each message also has the numbers of its sender. So
 * an empty message does not look like the end of the connection. There is room for these numbers only: the kernel says
 * that it cut descriptors off. */
static bool holds_fds(int fd)
{
    _Alignas(struct cmsghdr) uint8_t ctl[CMSG_SPACE(sizeof(struct ucred))];
    int on = 1;

    if (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) != 0)
        return true;
    for (unsigned i = 0; i < MESSAGES_MAX; i++) {
        struct msghdr m = {.msg_control = ctl, .msg_controllen = sizeof(ctl)};
        ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_PEEK);

        if (n < 0 && errno == ECONNRESET)
            continue; /* the kernel says it once: the client left messages unread */
        if (n < 0)
            return errno != EAGAIN;
        if (m.msg_flags & MSG_CTRUNC)
            return true;
        if (n == 0 && m.msg_controllen == 0)
            return false;
        m = (struct msghdr){.msg_control = ctl, .msg_controllen = sizeof(ctl)};
        if (recvmsg(fd, &m, MSG_DONTWAIT) < 0)
            return true;
    }
    return true;
}

void fd_closer_close_socket(int fd, uid_t owner)
{
    if (shutdown(fd, SHUT_RDWR) == 0 && !holds_fds(fd))
        close_later(fd, NULL);
    else if (!socket_reaper_take(fd))
        close_later(fd, &owner);
}

static bool is_stuck(const struct waiting_fd *closing, uint64_t now)
{
    return closing && now - closing->since >= FD_CLOSER_STUCK_NS;
}

bool fd_closer_crowded(uid_t owner)
{
    uint64_t now = clock_ns();
    bool stuck = true;

    lock();
    const struct lane *l = find_lane(owner);
    for (unsigned i = 0; l && i < FD_CLOSER_PER_USER; i++)
        stuck = stuck && is_stuck(l->closing[i], now);
    bool crowded = l && l->num_waiting >= (stuck ? FD_CLOSER_STUCK_MAX : FD_CLOSER_WAITING_MAX);
    crowded |= c.quota && quota_excess_files(c.quota);
    pthread_mutex_unlock(&c.lock);
    return crowded;
}

struct fd_closer_counts fd_closer_counts(void)
{
    struct fd_closer_counts n = {0};
    uint64_t now = clock_ns();
    const struct lane *l;

    lock();
    TAILQ_FOREACH (l, &c.lanes, link) {
        n.waiting += l->num_waiting;
        for (unsigned i = 0; i < FD_CLOSER_PER_USER; i++) {
            n.waiting += l->closing[i] != NULL;
            n.stuck += is_stuck(l->closing[i], now);
        }
    }
    pthread_mutex_unlock(&c.lock);
    return n;
}

void fd_closer_set_quota(struct quota *quota)
{
    struct waiting_fd *w;
    struct lane *l;

    lock();
    TAILQ_FOREACH (l, &c.lanes, link) {
        STAILQ_FOREACH(w, &l->waiting, next)
        release(l, w);
        for (unsigned i = 0; i < FD_CLOSER_PER_USER; i++) {
            if (l->closing[i])
                release(l, l->closing[i]);
        }
    }
    c.quota = quota;
    pthread_mutex_unlock(&c.lock);
}
