// SPDX-License-Identifier: BSD-2-Clause
#include "examples/tagmpi/offload.h"

#include <errno.h>
#include <string.h>

/* One of so many operations has a completion. It says that all operations before it are finished, too. So the
 * program knows how many are outstanding, and hardware can reuse its resources. */
enum { SIGNAL_EVERY = 16 };

void offload_init(struct offload *o, struct device *d)
{
    *o = (struct offload){.d = d};
}

/* Posts one operation; 0 or an errno value. */
static int post(struct offload *o, struct ibv_ops_wr *wr)
{
    struct ibv_ops_wr *bad;

    wr->wr_id = o->posted + 1;
    if (wr->wr_id % SIGNAL_EVERY == 0)
        wr->flags |= IBV_OPS_SIGNALED;
    int rc = ibv_post_srq_ops(o->d->srq, wr, &bad);
    if (rc == 0)
        o->posted++;
    if (rc == 0 && wr->flags & IBV_OPS_TM_SYNC) {
        o->reported = (uint16_t)wr->tm.unexpected_cnt;
        o->asked = false;
    }
    if (rc != 0 && rc != ENOMEM)
        fatal(o->d->rank, "operation on the matching list: %s", strerror(rc));
    return rc;
}

/* Half of the operations are reserved for DELs and SYNCs, so that these always have room. */
static bool may_add(const struct offload *o)
{
    return o->listed < o->d->max_tags && o->posted - o->finished < o->d->max_ops / 2;
}

bool offload_add(struct offload *o, struct tagmpi_request *r)
{
    struct ibv_sge sge = {.addr = (uintptr_t)r->buf, .length = (uint32_t)r->capacity, .lkey = r->lkey};
    struct ibv_ops_wr wr = {.opcode = IBV_WR_TAG_ADD, .flags = IBV_OPS_TM_SYNC};

    wr.tm.unexpected_cnt = o->count;
    wr.tm.add.recv_wr_id = (uintptr_t)r;
    wr.tm.add.sg_list = &sge;
    wr.tm.add.num_sge = r->capacity > 0;
    wr.tm.add.tag = r->pattern.tag;
    wr.tm.add.mask = r->pattern.mask;
    if (!may_add(o) || post(o, &wr) != 0)
        return false;
    r->listed = true;
    r->handle = wr.tm.handle;
    o->listed++;
    o->adds++;
    return true;
}

void offload_del(struct offload *o, struct tagmpi_request *r)
{
    struct ibv_ops_wr wr = {.opcode = IBV_WR_TAG_DEL};

    /* It reports no count: the message of this entry counts as handled only after the entry is gone. */
    wr.tm.handle = r->handle;
    if (post(o, &wr) != 0)
        fatal(o->d->rank, "no room to delete an entry of the matching list");
    r->listed = false;
    o->listed--;
    o->dels++;
}

void offload_count(struct offload *o)
{
    o->count++;
}

void offload_sync(struct offload *o)
{
    struct ibv_ops_wr wr = {.opcode = IBV_WR_TAG_SYNC, .flags = IBV_OPS_TM_SYNC};

    /* Without entries, none can be pending, and the next ADD reports the count anyway. */
    if (o->count == o->reported || (o->listed == 0 && !o->asked))
        return;
    if (o->posted - o->finished >= o->d->max_ops - o->d->max_tags)
        return; /* there is room again after the next completions */
    wr.tm.unexpected_cnt = o->count;
    if (post(o, &wr) == 0)
        o->syncs++;
}

void offload_release(struct offload *o)
{
    o->listed--;
}

void offload_finished(struct offload *o, const struct arrival *a)
{
    o->finished = a->wr_id;
}
