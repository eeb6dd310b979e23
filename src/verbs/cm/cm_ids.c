// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/cm/cm_ids.h"

#include <stdlib.h>
#include <string.h>

/* --- a list ------------------------------------------------------------------------------------ */
/* The place of the first entry with this number or a higher one. */
static size_t place(const struct vb_cm_id_list *l, uint32_t id)
{
    size_t low = 0, high = l->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (l->entry[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct vb_cm_id *find(const struct vb_cm_id_list *l, uint32_t id)
{
    size_t at = place(l, id);
    return at < l->n && l->entry[at].id == id ? &l->entry[at] : NULL;
}

/* Adds an entry, or replaces the one with the same number. */
static void put(struct vb_cm_id_list *l, const struct vb_cm_id *new)
{
    size_t at = place(l, new->id);
    if (at < l->n && l->entry[at].id == new->id) {
        l->entry[at] = *new;
        return;
    }
    if (l->n == l->size) {
        size_t size = l->size ? 2 * l->size : 4;
        struct vb_cm_id *entry = realloc(l->entry, size * sizeof(*entry));
        if (!entry)
            return;
        l->entry = entry;
        l->size = size;
    }
    memmove(&l->entry[at + 1], &l->entry[at], (l->n - at) * sizeof(*l->entry));
    l->entry[at] = *new;
    l->n++;
}

static void take_out(struct vb_cm_id_list *l, struct vb_cm_id *e)
{
    size_t at = (size_t)(e - l->entry);
    memmove(e, e + 1, (l->n - at - 1) * sizeof(*e));
    l->n--;
}

/* Removes the entry id, and says how many events it had. */
static bool end(struct vb_cm_id_list *l, uint32_t id, uint32_t *reported)
{
    struct vb_cm_id *e = find(l, id);
    if (!e)
        return false;
    *reported = e->reported;
    take_out(l, e);
    return true;
}

/* --- IDs and memberships ----------------------------------------------------------------------- */
void vb_cm_ids_fini(struct vb_cm_ids *ids)
{
    free(ids->ids.entry);
    free(ids->memberships.entry);
}

void vb_cm_ids_add(struct vb_cm_ids *ids, uint32_t id, uint64_t uid)
{
    put(&ids->ids, &(struct vb_cm_id){.id = id, .uid = uid});
}

void vb_cm_ids_join(struct vb_cm_ids *ids, uint32_t id, uint64_t uid, uint32_t owner)
{
    put(&ids->memberships, &(struct vb_cm_id){.id = id, .uid = uid, .owner = owner});
}

void vb_cm_ids_name(struct vb_cm_ids *ids, uint32_t id, uint64_t uid)
{
    struct vb_cm_id *e = find(&ids->ids, id);
    if (e)
        e->uid = uid;
}

bool vb_cm_ids_destroy(struct vb_cm_ids *ids, uint32_t id, uint32_t *reported)
{
    for (size_t i = ids->memberships.n; i-- > 0;)
        if (ids->memberships.entry[i].owner == id)
            take_out(&ids->memberships, &ids->memberships.entry[i]);
    return end(&ids->ids, id, reported);
}

bool vb_cm_ids_leave(struct vb_cm_ids *ids, uint32_t id, uint32_t *reported)
{
    return end(&ids->memberships, id, reported);
}

void vb_cm_ids_move(struct vb_cm_ids *from, struct vb_cm_ids *to, uint32_t id)
{
    const struct vb_cm_id *e = find(&from->ids, id);
    uint32_t reported;
    if (!e || from == to)
        return;
    put(&to->ids, e);
    for (size_t i = 0; i < from->memberships.n; i++)
        if (from->memberships.entry[i].owner == id)
            put(&to->memberships, &from->memberships.entry[i]);
    vb_cm_ids_destroy(from, id, &reported);
}

/* --- events ------------------------------------------------------------------------------------ */
/* The ID that a connection request came to. The event has only the number of the program. */
static struct vb_cm_id *listener(struct vb_cm_ids *ids, uint64_t uid)
{
    struct vb_cm_id *e = find(&ids->ids, ids->listener);
    if (e && e->uid == uid)
        return e;
    for (size_t i = 0; i < ids->ids.n; i++)
        if (ids->ids.entry[i].uid == uid) {
            ids->listener = ids->ids.entry[i].id;
            return &ids->ids.entry[i];
        }
    return NULL;
}

void vb_cm_ids_count(struct vb_cm_ids *ids, const struct rdma_ucm_event_resp *event)
{
    struct vb_cm_id *e, *membership;
    switch (event->event) {
    case VB_CM_EVENT_CONNECT_REQUEST:
        e = listener(ids, event->uid);
        break;
    case VB_CM_EVENT_MULTICAST_JOIN:
    case VB_CM_EVENT_MULTICAST_ERROR:
        membership = find(&ids->memberships, event->id);
        e = membership ? find(&ids->ids, membership->owner) : NULL;
        if (membership)
            membership->reported++;
        break;
    default:
        e = find(&ids->ids, event->id);
    }
    if (e)
        e->reported++;
    if (event->event == VB_CM_EVENT_CONNECT_REQUEST) /* may move the entries */
        vb_cm_ids_add(ids, event->id, 0);
}

/* The next ID that does not know it yet. */
static struct vb_cm_id *next_untold(struct vb_cm_ids *ids)
{
    size_t i = ids->untold > UINT32_MAX ? ids->ids.n : place(&ids->ids, (uint32_t)ids->untold);
    while (i < ids->ids.n && ids->ids.entry[i].uid == 0)
        i++;
    return i < ids->ids.n ? &ids->ids.entry[i] : NULL;
}

bool vb_cm_ids_removal(struct vb_cm_ids *ids, struct rdma_ucm_event_resp *event, bool *more)
{
    struct vb_cm_id *e = next_untold(ids);
    *more = false;
    if (!e)
        return false;
    e->reported++;
    *event = (struct rdma_ucm_event_resp){.uid = e->uid, .id = e->id, .event = VB_CM_EVENT_DEVICE_REMOVAL};
    ids->untold = e->id + 1ull;
    *more = next_untold(ids) != NULL;
    return true;
}
