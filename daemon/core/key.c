// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/key.h"

#include <errno.h>

#include "daemon/core/engine_priv.h"

void key_table_init(struct key_table *t, struct mr *entries, uint32_t max)
{
    t->mr = entries;
    t->size = max + 1;
    t->untouched = 1;
    t->free = t->free_last = 0;
}

static struct mr *find(const struct key_table *t, uint32_t key)
{
    uint32_t index = key >> 8;
    if (index == 0 || index >= t->untouched)
        return NULL;
    struct mr *mr = &t->mr[index];
    return mr->used && mr->tag == (key & 0xff) ? mr : NULL;
}

static int check_init(const struct mr_init *init)
{
    uint32_t known = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC |
                     ACCESS_MW_BIND | ACCESS_ZERO_BASED;
    if (init->pd == 0 || init->access & ~known)
        return -EINVAL;
    /* IBA 10.6.3.1: remote rights to change memory need the local one. */
    if (init->access & (ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC) && !(init->access & ACCESS_LOCAL_WRITE))
        return -EINVAL;
    if (init->va + init->length < init->va || init->iova + init->length < init->iova)
        return -EINVAL;
    return 0;
}

int mr_register(struct engine *e, const struct mr_init *init, uint32_t *key)
{
    struct key_table *t = &e->keys;
    int err = check_init(init);
    if (err)
        return err;

    uint32_t index = t->free;
    if (index)
        t->free = t->mr[index].next_free;
    else if (t->untouched < t->size)
        index = t->untouched++;
    else
        return -ENOMEM;

    struct mr *mr = &t->mr[index];
    mr->init = *init;
    mr->windows = 0;
    mr->used = true;
    *key = index << 8 | mr->tag;
    return 0;
}

int mr_reregister(struct engine *e, uint32_t key, const struct mr_init *init)
{
    struct mr *mr = find(&e->keys, key);
    if (!mr)
        return -ENOENT;
    int err = check_init(init);
    if (err)
        return err;
    mr->init = *init;
    return 0;
}

int mr_deregister(struct engine *e, uint32_t key)
{
    struct mr *mr = find(&e->keys, key);
    if (!mr)
        return -ENOENT;
    if (mr->windows)
        return -EBUSY;
    mr->used = false;
    mr->tag++; /* 255 reuses until an old key could be mistaken for a new one */
    mr->next_free = 0;
    /* To the end of the list: the longer an index rests, the later its old keys come round. */
    struct key_table *t = &e->keys;
    if (t->free)
        t->mr[t->free_last].next_free = key >> 8;
    else
        t->free = key >> 8;
    t->free_last = key >> 8;
    return 0;
}

bool key_resolve(const struct key_table *t, uint32_t pd, uint32_t key, uint64_t addr, uint32_t len, uint32_t access,
                 struct piece *out)
{
    const struct mr *mr = find(t, key);
    if (!mr || mr->init.pd != pd)
        return false;
    if ((mr->init.access & access) != access)
        return false;
    uint64_t off = addr - mr->init.iova; /* wraps to something huge if addr is before the start */
    if (off > mr->init.length || len > mr->init.length - off)
        return false;
    *out = (struct piece){.va = mr->init.va + off, .len = len, .space = mr->init.space};
    return true;
}

int sgl_resolve(const struct key_table *t, uint32_t pd, const struct sge *sge, unsigned num_sge, uint32_t off,
                uint32_t len, uint32_t access, struct piece *out, unsigned max)
{
    unsigned n = 0;
    for (unsigned i = 0; i < num_sge && len > 0; i++) {
        if (off >= sge[i].length) {
            off -= sge[i].length;
            continue;
        }
        uint32_t take = sge[i].length - off;
        if (take > len)
            take = len;
        if (n == max || !key_resolve(t, pd, sge[i].lkey, sge[i].addr + off, take, access, &out[n]))
            return -1;
        n++;
        len -= take;
        off = 0;
    }
    return len == 0 ? (int)n : -1;
}
