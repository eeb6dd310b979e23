// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/path/mcast.h"

#include <errno.h>
#include <string.h>

void mcast_init(struct mcast *m, struct mcast_member *members, uint32_t size)
{
    for (uint32_t i = 0; i < MCAST_BUCKETS; i++)
        list_init(&m->bucket[i]);
    list_init(&m->unused);
    m->members = members;
    m->size = size;
    m->untouched = 0;
}

/* Groups usually differ in their last bytes. */
static uint32_t bucket_of(const uint8_t gid[16])
{
    uint32_t h = (uint32_t)gid[12] << 24 | (uint32_t)gid[13] << 16 | (uint32_t)gid[14] << 8 | gid[15];
    return h * 2654435761u >> 26 & (MCAST_BUCKETS - 1);
}

struct mcast_member *mcast_next(const struct mcast *m, const uint8_t gid[16], struct mcast_member *at)
{
    const struct list_node *head = &m->bucket[bucket_of(gid)];
    for (struct list_node *l = at ? at->group.next : head->next; l != head; l = l->next) {
        struct mcast_member *member = list_entry(l, struct mcast_member, group);
        if (memcmp(member->gid, gid, 16) == 0)
            return member;
    }
    return NULL;
}

static struct mcast_member *find(const struct mcast *m, const uint8_t gid[16], const struct qp *qp)
{
    struct mcast_member *member = NULL;
    while ((member = mcast_next(m, gid, member)) != NULL)
        if (member->qp == qp)
            return member;
    return NULL;
}

static struct mcast_member *take_unused(struct mcast *m)
{
    if (!list_empty(&m->unused)) {
        struct mcast_member *member = list_entry(m->unused.next, struct mcast_member, group);
        list_remove(&member->group);
        return member;
    }
    if (m->untouched == m->size)
        return NULL;
    struct mcast_member *member = &m->members[m->untouched++];
    list_init(&member->group);
    list_init(&member->of_qp);
    return member;
}

int mcast_join(struct mcast *m, struct qp *qp, struct list_node *groups, const uint8_t gid[16])
{
    if (find(m, gid, qp))
        return 0;
    struct mcast_member *member = take_unused(m);
    if (!member)
        return -ENOMEM;
    member->qp = qp;
    memcpy(member->gid, gid, 16);
    list_append(&m->bucket[bucket_of(gid)], &member->group);
    list_append(groups, &member->of_qp);
    return 0;
}

static void release(struct mcast *m, struct mcast_member *member)
{
    list_remove(&member->group);
    list_remove(&member->of_qp);
    member->qp = NULL;
    list_append(&m->unused, &member->group);
}

int mcast_leave(struct mcast *m, struct qp *qp, const uint8_t gid[16])
{
    struct mcast_member *member = find(m, gid, qp);
    if (!member)
        return -ENOENT;
    release(m, member);
    return 0;
}

void mcast_leave_all(struct mcast *m, struct list_node *groups)
{
    while (!list_empty(groups))
        release(m, list_entry(groups->next, struct mcast_member, of_qp));
}
