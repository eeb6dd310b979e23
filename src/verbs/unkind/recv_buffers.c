// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/unkind/recv_buffers.h"

#include <sys/uio.h>

#include "src/verbs/base/clock.h"
#include "src/verbs/memory/mr.h"

#define PATTERN 0xdb
#define BLOCK 4096u
#define BLOCKS 16u
#define FILL_MAX (BLOCK * BLOCKS) /* bytes that are filled at each end of a buffer */

/* The system call, and not a loop, because the program may have unmapped or protected the memory. Then nothing is
 * filled. */
static void fill(uint8_t *p, size_t len)
{
    static const uint8_t block[BLOCK] = {[0 ... BLOCK - 1] = PATTERN};
    struct iovec from[BLOCKS], to = {p, len};
    unsigned n = 0;
    for (size_t left = len; left; n++) {
        size_t part = left < BLOCK ? left : BLOCK;
        from[n] = (struct iovec){(void *)(uintptr_t)block, part};
        left -= part;
    }
    ssize_t done = process_vm_writev(getpid(), from, n, &to, 1, 0);
    (void)done;
}

/* The memory of an SGE; NULL: it is not in a region that the device may write, or not in private memory. */
static uint8_t *memory_of(struct vb_context *c, const struct pm_sge *s)
{
    const struct vb_mr *mr = vb_table_get(&c->mrs, s->lkey >> 8);
    if (!mr || mr->mr.lkey != s->lkey || mr->dm || !mr->mr.addr || !(mr->access & IBV_ACCESS_LOCAL_WRITE) ||
        s->addr < mr->iova || s->addr - mr->iova > mr->mr.length || s->length > mr->mr.length - (s->addr - mr->iova))
        return NULL;
    return (uint8_t *)mr->mr.addr + (s->addr - mr->iova);
}

void vb_unkind_fill(struct vb_context *c, const struct pm_sge *sge, uint32_t num)
{
    if (!(c->caps.unkind & UNKIND_BUFFERS))
        return;
    for (uint32_t i = 0; i < num; i++) {
        uint8_t *p = memory_of(c, &sge[i]);
        uint32_t len = sge[i].length, first = len < FILL_MAX ? len : FILL_MAX, last = len - first;
        if (!p || !len)
            continue;
        fill(p, first);
        last = last < FILL_MAX ? last : FILL_MAX;
        if (last)
            fill(p + len - last, last);
    }
}

void vb_unkind_posted(struct vb_context *c, struct pm_recv_wqe *w)
{
    vb_unkind_fill(c, (const struct pm_sge *)(w + 1), w->num_sge);
    /* The daemon compares it with the time at which a message comes. */
    w->wqe_index = (uint32_t)(vb_clock(CLOCK_MONOTONIC) / 1000);
}
