// SPDX-License-Identifier: BSD-2-Clause
#define LOG_AREA LOG_SESSION
#include "daemon/cm/host/cm_channel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "daemon/base/clock.h"
#include "daemon/base/event_loop.h"
#include "daemon/base/log.h"

/* The loop asks for readability, which a write end never has. epoll reports an error in any case. */
static void on_no_reader(struct ev_loop *loop, ev_io *w, int revents)
{
    struct cm_channel *ch = w->data;

    event_loop_rewatch(loop, w, revents);
    if (!ch->pipe.stuck && cm_pipe_has_reader(&ch->pipe))
        return;
    ev_io_stop(loop, w);
    ch->ended(ch);
}

/* A client that is stuck keeps others waiting, so its channel ends. */
static void look_if_stuck(struct cm_channel *ch)
{
    struct cm_host *h = ch->host;

    if (!ch->pipe.stuck || !ev_is_active(&ch->no_reader))
        return;
    log_warn("pid %d, uid %u: it reads events into memory that did not answer within %u ms, so its channel ends",
             (int)ch->pid, (unsigned)ch->owner.uid, ch->pipe.limit_ms);
    memory_strikes_add(&h->strikes, ch->owner.uid, clock_ns());
    ev_feed_event(h->loop, &ch->no_reader, EV_READ);
}

static int open_pipe(struct cm_channel *ch, int *read_fd, char why[QUOTA_WHY_MAX])
{
    struct cm_host *h = ch->host;
    uint64_t now = clock_ns();

    if (memory_strikes_wait(&h->strikes, ch->owner.uid, now)) {
        snprintf(why, QUOTA_WHY_MAX, "memory of this user did not answer several times; try again later");
        return -EBUSY;
    }
    unsigned limit = memory_strikes_limit(&h->strikes, ch->owner.uid, h->pipe_limit_ms, now);
    int rc = cm_pipe_init(&ch->pipe, h->thread, limit, ch->owner.uid, read_fd);
    if (rc)
        snprintf(why, QUOTA_WHY_MAX, "cannot make a pipe: %s", strerror(-rc));
    return rc;
}

/* Tokens are random, so their lowest bits are a hash. */
static struct cm_channel_bucket *bucket_of(struct cm_host *h, uint64_t token)
{
    return &h->by_token[token % CM_CHANNEL_BUCKETS];
}

int cm_channel_create(struct cm_host *h, uid_t uid, pid_t pid, void (*ended)(struct cm_channel *ch),
                      struct cm_channel **out, int *read_fd, char why[QUOTA_WHY_MAX])
{
    struct cm_channel *ch = calloc(1, sizeof(*ch));

    if (!ch || getrandom(&ch->token, sizeof(ch->token), 0) != (ssize_t)sizeof(ch->token)) {
        free(ch);
        snprintf(why, QUOTA_WHY_MAX, "the daemon is out of memory");
        return -ENOMEM;
    }
    ch->host = h;
    ch->pid = pid;
    ch->ended = ended;
    ch->owner = (struct quota_owner){h->quota, uid, 0};
    TAILQ_INIT(&ch->ids);
    TAILQ_INIT(&ch->notes);
    int rc = quota_charge(&ch->owner, QUOTA_CM_CHANNELS, why);
    if (rc == 0 && (rc = open_pipe(ch, read_fd, why)) != 0)
        quota_release(&ch->owner, QUOTA_CM_CHANNELS);
    if (rc) {
        free(ch);
        return rc;
    }
    ev_io_init(&ch->no_reader, on_no_reader, ch->pipe.write_fd, EV_READ);
    ch->no_reader.data = ch;
    ev_io_start(h->loop, &ch->no_reader);
    TAILQ_INSERT_TAIL(&h->channels, ch, link);
    LIST_INSERT_HEAD(bucket_of(h, ch->token), ch, same_bucket);
    *out = ch;
    return 0;
}

void cm_channel_free(struct cm_channel *ch)
{
    ev_io_stop(ch->host->loop, &ch->no_reader);
    cm_pipe_fini(&ch->pipe);
    quota_release(&ch->owner, QUOTA_CM_CHANNELS);
    free(ch);
}

struct cm_channel *cm_channel_find(struct cm_host *h, uid_t uid, uint64_t token)
{
    struct cm_channel *ch;

    LIST_FOREACH (ch, bucket_of(h, token), same_bucket) {
        if (ch->token == token && ch->owner.uid == uid)
            break;
    }
    return ch;
}

void cm_channel_hide(struct cm_channel *ch)
{
    TAILQ_REMOVE(&ch->host->channels, ch, link);
    LIST_REMOVE(ch, same_bucket);
}

/* --- events ------------------------------------------------------------------------------------ */

void cm_channel_add(struct cm_channel *ch, struct cm_note *n)
{
    TAILQ_INSERT_TAIL(&ch->notes, n, link);
    ch->num_notes++;
    if (ch->unsent || !cm_pipe_put(&ch->pipe))
        ch->unsent++;
    look_if_stuck(ch);
}

struct cm_note *cm_channel_next(struct cm_channel *ch)
{
    struct cm_note *n = TAILQ_FIRST(&ch->notes);

    if (!n)
        return NULL;
    TAILQ_REMOVE(&ch->notes, n, link);
    ch->num_notes--;
    if (ch->unsent && cm_pipe_put(&ch->pipe))
        ch->unsent--;
    /* A client that took no byte before it asked has bytes too many in its pipe. */
    if (ch->unsent > ch->num_notes)
        ch->unsent = ch->num_notes;
    look_if_stuck(ch);
    return n;
}

void cm_channel_remove(struct cm_channel *ch, bool (*which)(const struct cm_note *n, const void *arg), const void *arg,
                       struct cm_note_list *out)
{
    unsigned removed = 0, unsent;

    for (struct cm_note *n = TAILQ_FIRST(&ch->notes), *next; n; n = next) {
        next = TAILQ_NEXT(n, link);
        if (!which(n, arg))
            continue;
        TAILQ_REMOVE(&ch->notes, n, link);
        TAILQ_INSERT_TAIL(out, n, link);
        removed++;
    }
    ch->num_notes -= removed;
    unsent = removed < ch->unsent ? removed : ch->unsent;
    ch->unsent -= unsent;
    cm_pipe_take_back(&ch->pipe, removed - unsent);
    look_if_stuck(ch);
}
