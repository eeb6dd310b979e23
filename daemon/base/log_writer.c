// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/base/log_writer.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define POLL_MS 1000 /* a non-blocking standard error that is full is tried again after this time, or earlier */

enum mode {
    DIRECT, /* no thread: log_writer_put writes */
    RUNNING,
    STOPPING, /* the thread writes the waiting lines and ends */
    LOST, /* the thread hangs, and nothing is written any more */
};

static struct {
    pthread_mutex_t lock; /* held for copies of lines only, never for a write */
    pthread_cond_t filled, ended;
    pthread_t thread;
    enum mode mode;
    bool has_ended;
    bool report; /* lines were dropped after the last report was tried */
    uint64_t dropped, reported;
    uint64_t head, tail; /* bytes taken out and put in */
    log_gap_line *gap_line;
    void (*enter)(void); /* NULL: none */
    char ring[LOG_WRITER_BYTES]; /* of each line: its length as uint32_t, and the line */
} w = {.lock = PTHREAD_MUTEX_INITIALIZER, .filled = PTHREAD_COND_INITIALIZER};

/* --- the ring ---------------------------------------------------------------------------------- */

static void ring_put(const void *from, size_t len)
{
    size_t at = w.tail % LOG_WRITER_BYTES, first = LOG_WRITER_BYTES - at;

    first = first < len ? first : len;
    memcpy(w.ring + at, from, first);
    memcpy(w.ring, (const char *)from + first, len - first);
    w.tail += len;
}

static void ring_take(void *to, size_t len)
{
    size_t at = w.head % LOG_WRITER_BYTES, first = LOG_WRITER_BYTES - at;

    first = first < len ? first : len;
    memcpy(to, w.ring + at, first);
    memcpy((char *)to + first, w.ring, len - first);
    w.head += len;
}

/* --- writing ----------------------------------------------------------------------------------- */

/* Writes one line. False: it can't be written. */
static bool write_line(const char *line, size_t len)
{
    while (len) {
        ssize_t n = write(STDERR_FILENO, line, len);

        if (n >= 0) {
            line += n;
            len -= (size_t)n;
        } else if (errno == EAGAIN) {
            struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};

            poll(&p, 1, POLL_MS);
        } else if (errno != EINTR) {
            return false;
        }
    }
    return true;
}

/* Takes the next line out, or makes the report of dropped lines if no line waits. *count: the dropped lines that it
 * reports; 0: another line. Returns the line's length; 0: there is nothing to write. */
static size_t next_line(char *line, uint64_t *count)
{
    uint32_t len;

    *count = 0;
    if (w.head != w.tail) {
        ring_take(&len, sizeof(len));
        ring_take(line, len);
        return len;
    }
    if (!w.report)
        return 0;
    w.report = false;
    *count = w.dropped - w.reported;
    return w.gap_line(*count, line, LOG_WRITER_LINE);
}

static void *run(void *arg)
{
    static char line[LOG_WRITER_LINE];
    uint64_t count;
    size_t len;

    (void)arg;
    prctl(PR_SET_NAME, "log");
    if (w.enter)
        w.enter();
    pthread_mutex_lock(&w.lock);
    for (;;) {
        while ((len = next_line(line, &count)) == 0 && w.mode == RUNNING)
            pthread_cond_wait(&w.filled, &w.lock);
        if (len == 0)
            break;
        pthread_mutex_unlock(&w.lock);
        bool written = write_line(line, len);
        pthread_mutex_lock(&w.lock);
        if (written)
            w.reported += count;
        else if (count == 0)
            w.dropped++; /* reported with the next lines that are dropped, because a report would fail, too */
    }
    w.has_ended = true;
    pthread_cond_signal(&w.ended);
    pthread_mutex_unlock(&w.lock);
    return NULL;
}

void log_writer_put(const char *line, size_t len)
{
    uint32_t size = (uint32_t)len;

    pthread_mutex_lock(&w.lock);
    enum mode mode = w.mode;
    if (mode == RUNNING && len <= LOG_WRITER_LINE && LOG_WRITER_BYTES - (w.tail - w.head) >= sizeof(size) + len) {
        ring_put(&size, sizeof(size));
        ring_put(line, len);
        pthread_cond_signal(&w.filled);
    } else if (mode != DIRECT) {
        w.dropped++;
        w.report = true;
    }
    pthread_mutex_unlock(&w.lock);
    if (mode == DIRECT)
        write_line(line, len);
}

uint64_t log_writer_dropped(void)
{
    pthread_mutex_lock(&w.lock);
    uint64_t n = w.dropped;
    pthread_mutex_unlock(&w.lock);
    return n;
}

/* --- the thread -------------------------------------------------------------------------------- */

bool log_writer_start(log_gap_line *gap_line, void (*enter)(void))
{
    pthread_condattr_t attr;
    sigset_t all, old;

    w.gap_line = gap_line;
    w.enter = enter;
    w.mode = RUNNING;
    w.has_ended = false;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&w.ended, &attr);
    pthread_condattr_destroy(&attr);
    sigfillset(&all); /* the main thread handles the signals */
    pthread_sigmask(SIG_SETMASK, &all, &old);
    if (pthread_create(&w.thread, NULL, run, NULL) != 0)
        w.mode = DIRECT;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return w.mode == RUNNING;
}

void log_writer_stop(unsigned wait_ms)
{
    struct timespec end;

    pthread_mutex_lock(&w.lock);
    if (w.mode != RUNNING) {
        pthread_mutex_unlock(&w.lock);
        return;
    }
    w.mode = STOPPING;
    pthread_cond_signal(&w.filled);
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += wait_ms / 1000;
    end.tv_nsec += (long)(wait_ms % 1000) * 1000000;
    if (end.tv_nsec >= 1000000000) {
        end.tv_sec++;
        end.tv_nsec -= 1000000000;
    }
    while (!w.has_ended && pthread_cond_timedwait(&w.ended, &w.lock, &end) == 0)
        continue;
    bool ended = w.has_ended;
    w.mode = ended ? DIRECT : LOST;
    pthread_mutex_unlock(&w.lock);
    if (ended)
        pthread_join(w.thread, NULL);
    else
        pthread_detach(w.thread);
}
