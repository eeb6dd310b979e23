// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/objects/qp/slab.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/session/control_msg.h"
#include "daemon/session/mapping.h"
#include "daemon/session/segment.h"

#define SLOTS_MAX 256u
#define SLAB_BYTES_MAX ((size_t)16 << 20)

struct slab {
    LIST_ENTRY(slab) link; /* in the session's list, while it has free slots */
    struct slab_list *list; /* NULL: it has one slot */
    struct segment segment; /* its descriptor stays open while the slab has several slots */
    struct mapping mapping;
    size_t shared, own; /* bytes of a slot, whole pages */
    uint32_t slots, used;
    uint32_t num_free;
    uint32_t free[]; /* stack of the numbers of free slots */
};

static size_t whole_pages(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    return (size + page - 1) & ~(page - 1);
}

static struct slab_list *list_of(struct slabs *s, size_t shared, size_t own)
{
    return &s->free[(shared / 4096 + own / 4096 * 7) % SLAB_LISTS];
}

static void destroy(struct slab *b)
{
    if (b->list && b->num_free)
        LIST_REMOVE(b, link);
    if (b->list && b->segment.owner.quota && b->segment.fd >= 0)
        quota_release_open_file(&b->segment.owner);
    segment_destroy(&b->segment);
    mapping_destroy(&b->mapping);
    free(b);
}

/* The client may map slots next to each other, and later ones below earlier ones. So slots are taken from the end: then
 * the kernel joins the client's mappings to one. */
static void fill(struct slab *b)
{
    for (uint32_t i = 0; i < b->slots; i++)
        b->free[i] = i;
    b->num_free = b->slots;
}

static int map(struct slab *b, const struct quota_owner *owner, struct control_reply *rp)
{
    int rc = mapping_create(&b->mapping, owner, b->own * b->slots, rp);

    if (rc)
        return rc;
    /* Without this, one QP with traffic could make the kernel give a huge page to all QPs around it. */
    if (b->slots > 1)
        madvise(b->mapping.p, b->mapping.size, MADV_NOHUGEPAGE);
    return segment_create(&b->segment, owner, "pumice-qp", b->shared * b->slots, rp);
}

static int create(const struct quota_owner *owner, const struct slab_need *need, uint32_t slots, struct slab **out,
                  struct control_reply *rp)
{
    struct slab *b = calloc(1, sizeof(*b) + slots * sizeof(b->free[0]));

    if (!b)
        return -ENOMEM;
    b->segment.fd = -1;
    b->shared = whole_pages(need->shared);
    b->own = whole_pages(need->own);
    b->slots = slots;
    fill(b);
    int rc = map(b, owner, rp);
    if (rc) {
        destroy(b);
        return rc;
    }
    if (need->lost)
        segment_guard(&b->segment, need->lost);
    *out = b;
    return 0;
}

/* How many slots a new slab gets. A session with few QPs gets single slots: the slabs at most double what it has. */
static uint32_t slots_for(const struct slab_need *need)
{
    size_t bytes = whole_pages(need->shared) + whole_pages(need->own);
    uint32_t slots = need->others / 2;

    if (slots > SLOTS_MAX)
        slots = SLOTS_MAX;
    if (slots > SLAB_BYTES_MAX / bytes)
        slots = (uint32_t)(SLAB_BYTES_MAX / bytes);
    return slots ? slots : 1;
}

static struct slab *find(struct slab_list *list, size_t shared, size_t own)
{
    struct slab *b;

    LIST_FOREACH (b, list, link) {
        if (b->shared == shared && b->own == own)
            return b;
    }
    return NULL;
}

/* The user may have room for one QP, but not for a whole slab. */
static int add(struct slab_list *list, const struct quota_owner *owner, const struct slab_need *need, struct slab **out,
               struct control_reply *rp)
{
    uint32_t slots = slots_for(need);
    int rc = slots > 1 ? create(owner, need, slots, out, rp) : -ENOMEM;

    if (rc || (owner->quota && !quota_charge_open_file(owner))) {
        if (rc == 0)
            destroy(*out);
        control_payload(rp, 0); /* not the reason of a failure of what follows */
        return create(owner, need, 1, out, rp);
    }
    (*out)->list = list;
    LIST_INSERT_HEAD(list, *out, link);
    return 0;
}

int slab_take(struct slabs *s, const struct quota_owner *owner, const struct slab_need *need, struct slab_slot *out,
              struct control_reply *rp)
{
    size_t shared = whole_pages(need->shared), own = whole_pages(need->own);
    struct slab_list *list = s ? list_of(s, shared, own) : NULL;
    struct slab *b = s ? find(list, shared, own) : NULL;

    if (!b) {
        int rc = s ? add(list, owner, need, &b, rp) : create(owner, need, 1, &b, rp);

        if (rc)
            return rc;
    }
    *out = (struct slab_slot){b, b->free[--b->num_free]};
    b->used++;
    if (b->list && b->num_free == 0)
        LIST_REMOVE(b, link);
    return 0;
}

void slab_release(struct slab_slot *slot)
{
    struct slab *b = slot->slab;

    if (!b)
        return;
    if (--b->used == 0) {
        destroy(b);
    } else {
        fallocate(b->segment.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)slab_offset(slot),
                  (off_t)b->shared);
        madvise(slab_own(slot), b->own, MADV_DONTNEED);
        if (b->num_free == 0)
            LIST_INSERT_HEAD(b->list, b, link);
        b->free[b->num_free++] = slot->index;
    }
    slot->slab = NULL;
}

void *slab_shared(const struct slab_slot *slot)
{
    return (uint8_t *)slot->slab->segment.p + slab_offset(slot);
}

void *slab_own(const struct slab_slot *slot)
{
    return (uint8_t *)slot->slab->mapping.p + slot->index * slot->slab->own;
}

uint64_t slab_offset(const struct slab_slot *slot)
{
    return (uint64_t)slot->index * slot->slab->shared;
}

size_t slab_shared_size(const struct slab_slot *slot)
{
    return slot->slab->shared;
}

int slab_descriptor(const struct slab_slot *slot)
{
    struct slab *b = slot->slab;
    int fd = b->list ? fcntl(b->segment.fd, F_DUPFD_CLOEXEC, 0) : segment_take_fd(&b->segment);

    return fd < 0 ? -errno : fd;
}
