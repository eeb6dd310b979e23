// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/cm/host/ucma_id.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/base/clock.h"

/* A number, and the charge for the object. */
static int enter(struct handles *t, void *obj, const struct quota_owner *owner, uint32_t *number,
                 char why[QUOTA_WHY_MAX])
{
    int rc = quota_charge(owner, QUOTA_CM_IDS, why);

    if (rc)
        return rc;
    rc = handles_add(t, obj, number);
    if (rc) {
        quota_release(owner, QUOTA_CM_IDS);
        snprintf(why, QUOTA_WHY_MAX, "the daemon has no number for another ID");
    }
    return rc ? -ENOMEM : 0;
}

static void leave(struct handles *t, uint32_t number, const struct quota_owner *owner)
{
    handles_remove(t, number);
    quota_release(owner, QUOTA_CM_IDS);
}

int ucma_id_create(struct cm_channel *ch, struct cm_id *cm, uint64_t uid, struct ucma_id **out, char why[QUOTA_WHY_MAX])
{
    struct ucma_id *id = calloc(1, sizeof(*id));

    if (!id) {
        snprintf(why, QUOTA_WHY_MAX, "the daemon is out of memory");
        return -ENOMEM;
    }
    id->owner = ch->owner;
    int rc = enter(&ch->host->ids, id, &id->owner, &id->number, why);
    if (rc) {
        free(id);
        return rc;
    }
    id->channel = ch;
    id->cm = cm;
    id->uid = uid;
    TAILQ_INIT(&id->joins);
    TAILQ_INSERT_TAIL(&ch->ids, id, link);
    *out = id;
    return 0;
}

static bool is_of_id(const struct cm_note *n, const void *id)
{
    return n->id == id;
}

static bool is_of_join(const struct cm_note *n, const void *join)
{
    return n->join == join;
}

/* Frees events. New connections that the program has not seen end. */
static void free_notes(struct cm_note_list *list, uint64_t now)
{
    struct cm_note *n;

    while ((n = TAILQ_FIRST(list)) != NULL) {
        TAILQ_REMOVE(list, n, link);
        if (n->child)
            ucma_id_destroy(n->child, now);
        free(n);
    }
}

uint32_t ucma_id_destroy(struct ucma_id *id, uint64_t now)
{
    struct cm_channel *ch = id->channel;
    struct cm_note_list notes = TAILQ_HEAD_INITIALIZER(notes);
    uint32_t reported = id->reported;

    while (!TAILQ_EMPTY(&id->joins))
        ucma_join_destroy(TAILQ_FIRST(&id->joins));
    cm_channel_remove(ch, is_of_id, id, &notes);
    cm_id_destroy(id->cm, now);
    TAILQ_REMOVE(&ch->ids, id, link);
    leave(&ch->host->ids, id->number, &id->owner);
    free(id);
    free_notes(&notes, now);
    return reported;
}

/* The error for an object of another channel. IDs of other users do not exist for it. */
static int check_channel(const struct cm_channel *ch, const struct cm_channel *of)
{
    if (!of || of->owner.uid != ch->owner.uid)
        return -ENOENT;
    return of == ch ? 0 : -EINVAL;
}

int ucma_id_find(const struct cm_channel *ch, uint32_t number, struct ucma_id **out)
{
    struct ucma_id *id = handles_get(&ch->host->ids, number);

    *out = id;
    return check_channel(ch, id ? id->channel : NULL);
}

void ucma_id_move(struct ucma_id *id, struct cm_channel *to)
{
    struct cm_channel *from = id->channel;
    struct cm_note_list notes = TAILQ_HEAD_INITIALIZER(notes);
    struct cm_note *n;

    if (from == to)
        return;
    cm_channel_remove(from, is_of_id, id, &notes);
    TAILQ_REMOVE(&from->ids, id, link);
    TAILQ_INSERT_TAIL(&to->ids, id, link);
    id->channel = to;
    while ((n = TAILQ_FIRST(&notes)) != NULL) {
        TAILQ_REMOVE(&notes, n, link);
        if (n->child)
            ucma_id_move(n->child, to);
        cm_channel_add(to, n);
    }
}

/* --- multicast groups -------------------------------------------------------------------------- */

int ucma_join_create(struct ucma_id *id, uint64_t uid, struct ucma_join **out, char why[QUOTA_WHY_MAX])
{
    struct ucma_join *j = calloc(1, sizeof(*j));

    if (!j) {
        snprintf(why, QUOTA_WHY_MAX, "the daemon is out of memory");
        return -ENOMEM;
    }
    int rc = enter(&id->channel->host->joins, j, &id->owner, &j->number, why);
    if (rc) {
        free(j);
        return rc;
    }
    j->id = id;
    j->uid = uid;
    TAILQ_INSERT_TAIL(&id->joins, j, link);
    *out = j;
    return 0;
}

uint32_t ucma_join_destroy(struct ucma_join *j)
{
    struct cm_note_list notes = TAILQ_HEAD_INITIALIZER(notes);
    uint32_t reported = j->reported;

    cm_channel_remove(j->id->channel, is_of_join, j, &notes);
    free_notes(&notes, 0);
    TAILQ_REMOVE(&j->id->joins, j, link);
    leave(&j->id->channel->host->joins, j->number, &j->id->owner);
    free(j);
    return reported;
}

int ucma_join_find(const struct cm_channel *ch, uint32_t number, struct ucma_join **out)
{
    struct ucma_join *j = handles_get(&ch->host->joins, number);

    *out = j;
    return check_channel(ch, j ? j->id->channel : NULL);
}

/* --- the end of channels ----------------------------------------------------------------------- */

/* Destroys IDs until the time is over. True: none is left. */
static bool destroy_ids(struct cm_channel *ch, uint64_t end)
{
    struct ucma_id *id;

    while ((id = TAILQ_FIRST(&ch->ids)) != NULL) {
        uint64_t now = clock_ns();

        if (now >= end)
            return false;
        ucma_id_destroy(id, now);
    }
    return true;
}

static void on_idle(struct ev_loop *loop, ev_idle *w, int revents)
{
    struct cm_host *h = w->data;
    struct cm_channel *ch = TAILQ_FIRST(&h->ending);

    (void)revents;
    if (ch && destroy_ids(ch, clock_ns() + SLICE_NS)) {
        TAILQ_REMOVE(&h->ending, ch, link);
        cm_channel_free(ch);
    }
    if (TAILQ_EMPTY(&h->ending))
        ev_idle_stop(loop, w);
}

/* The unread events go first: nobody reads them, and a search for those of each ID would take long. */
static void drop_notes(struct cm_channel *ch)
{
    struct cm_note *n;

    while ((n = TAILQ_FIRST(&ch->notes)) != NULL) {
        TAILQ_REMOVE(&ch->notes, n, link);
        free(n); /* a child is an ID of the channel, too */
    }
    ch->num_notes = ch->unsent = 0;
}

void ucma_channel_end(struct cm_channel *ch)
{
    struct cm_host *h = ch->host;

    ch->over = true;
    ev_io_stop(h->loop, &ch->no_reader);
    cm_channel_hide(ch);
    drop_notes(ch);
    if (destroy_ids(ch, clock_ns() + SLICE_NS)) {
        cm_channel_free(ch);
        return;
    }
    TAILQ_INSERT_TAIL(&h->ending, ch, link);
    ev_idle_start(h->loop, &h->ends);
}

void ucma_channels_end(struct cm_host *h)
{
    while (!TAILQ_EMPTY(&h->channels))
        ucma_channel_end(TAILQ_FIRST(&h->channels));
    for (struct cm_channel *ch; (ch = TAILQ_FIRST(&h->ending)) != NULL;) {
        destroy_ids(ch, UINT64_MAX);
        TAILQ_REMOVE(&h->ending, ch, link);
        cm_channel_free(ch);
    }
    ev_idle_stop(h->loop, &h->ends);
}

void ucma_channels_init(struct cm_host *h)
{
    TAILQ_INIT(&h->channels);
    TAILQ_INIT(&h->ending);
    ev_idle_init(&h->ends, on_idle);
    ev_set_priority(&h->ends, EV_MAXPRI); /* busy connections cannot hold it off */
    h->ends.data = h;
}
