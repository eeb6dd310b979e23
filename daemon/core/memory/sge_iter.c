// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/memory/sge_iter.h"

#include <assert.h>

#include "daemon/core/base/tx_batch.h"

void sge_iter_sgl(struct sge_iter *s, const struct key_table *t, uint32_t pd, const struct sge *sge, uint32_t off,
                  uint32_t len, uint32_t access)
{
    s->keys = t;
    s->pd = pd;
    s->access = access;
    s->remote = s->layout = false;
    s->left = len;
    if (len)
        for (; off >= sge->length; sge++)
            off -= sge->length;
    s->sge = sge;
    s->off = off;
}

void sge_iter_remote(struct sge_iter *s, const struct key_table *t, uint32_t pd, uint32_t qpn, uint32_t key,
                     uint64_t addr, uint32_t len, uint32_t access)
{
    s->keys = t;
    s->pd = pd;
    s->access = access;
    s->qpn = qpn;
    s->remote = true;
    s->layout = false;
    s->left = len;
    s->own = (struct sge){.addr = addr, .length = len, .lkey = key};
    s->sge = NULL;
    s->off = 0;
}

static const struct sge *present(const struct sge_iter *s)
{
    return s->sge ? s->sge : &s->own;
}

static const struct mkey *open_sge(const struct sge_iter *s, const struct sge *sge, uint32_t off, uint32_t len)
{
    return key_open(s->keys, s->pd, s->remote, s->qpn, sge->lkey, sge->addr + off, len, s->access);
}

/* --- checks without pieces -------------------------------------------------------------------- */

/* Is every object that has a byte in the range unchanged? */
static bool objects_there(const struct key_table *t, const struct layout *l, uint64_t off, uint32_t len)
{
    struct layout_span span;
    layout_span(&span, l, off, len);
    for (uint32_t i = 0; i < l->count; i++)
        if (layout_span_has(&span, i) && !key_object(t, &l->entry[i]))
            return false;
    return true;
}

/* Is the access allowed? plain: also check the condition of sge_iter_plain. */
static bool check(const struct sge_iter *s, bool plain)
{
    const struct sge *sge = present(s);
    uint32_t off = s->off, left = s->left;
    for (; left > 0; sge++, off = 0) {
        uint32_t len = sge->length - off < left ? sge->length - off : left;
        if (len == 0)
            continue;
        const struct mkey *k = open_sge(s, sge, off, len);
        if (!k || (k->depth && !objects_there(s->keys, &k->shape->layout, sge->addr + off, len)))
            return false;
        if (plain && (k->depth || k->init.va != k->init.iova))
            return false;
        left -= len;
    }
    return true;
}

bool sge_iter_allowed(const struct sge_iter *s)
{
    return check(s, false);
}

bool sge_iter_plain(const struct sge_iter *s)
{
    return check(s, true);
}

/* --- pieces ----------------------------------------------------------------------------------- */

/* Steps through windows with layouts to the next piece of a region. False: it is not allowed. */
static bool inner_segment(struct sge_iter *s, const struct layout *l, const struct layout_segment *from,
                          struct mem_segment *out)
{
    struct layout_segment p = *from;
    for (;;) {
        const struct mkey *k = key_object(s->keys, &l->entry[p.entry]);
        if (!k)
            return false;
        if (k->depth == 0) { /* the piece lies in the object: the bind checked that, and the object has not changed */
            *out = (struct mem_segment){
                .va = k->init.va + (p.addr - k->init.iova), .len = (uint32_t)p.len, .space = k->init.space};
            return true;
        }
        if (!layout_walk_push(&s->walk, &k->shape->layout, p.addr, p.len) || !layout_walk_next(&s->walk, &p))
            return false;
        l = &k->shape->layout;
    }
}

/* Returns the next piece, not joined with others. 1: a piece; 0: there is none; -1: it is not allowed. */
static int next_segment(struct sge_iter *s, struct mem_segment *out)
{
    for (;;) {
        if (s->layout) {
            struct layout_segment p;
            const struct layout *l = layout_walk_next(&s->walk, &p);
            if (l)
                return inner_segment(s, l, &p, out) ? 1 : -1;
        }
        if (s->left == 0)
            return 0;
        const struct sge *sge = present(s);
        uint32_t len = sge->length - s->off < s->left ? sge->length - s->off : s->left;
        uint64_t addr = sge->addr + s->off;
        if (len) {
            const struct mkey *k = open_sge(s, sge, s->off, len);
            if (!k)
                return -1;
            s->left -= len;
            s->off = 0;
            if (s->left)
                s->sge++;
            if (k->depth == 0) {
                *out =
                    (struct mem_segment){.va = k->init.va + (addr - k->init.iova), .len = len, .space = k->init.space};
                return 1;
            }
            if (!s->layout)
                layout_walk_init(&s->walk);
            s->layout = true;
            if (!layout_walk_push(&s->walk, &k->shape->layout, addr, len))
                return -1;
        } else { /* an SGE without bytes, between others */
            s->sge++;
            s->off = 0;
        }
    }
}

int sge_iter_segments(struct sge_iter *s, struct mem_segment *out, unsigned max)
{
    unsigned n = 0;
    while (n < max) {
        int result = next_segment(s, &out[n]);
        if (result < 0)
            return -1;
        if (result == 0)
            break;
        struct mem_segment *last = n ? &out[n - 1] : NULL;
        if (last && last->space == out[n].space && last->va + last->len == out[n].va &&
            out[n].len <= UINT32_MAX - last->len)
            last->len += out[n].len;
        else
            n++;
    }
    return (int)n;
}

bool sge_iter_done(const struct sge_iter *s)
{
    return s->left == 0 && (!s->layout || layout_walk_done(&s->walk));
}

/* --- copying ---------------------------------------------------------------------------------- */

static uint32_t sum(const struct mem_segment *segment, unsigned n)
{
    uint32_t bytes = 0;
    for (unsigned i = 0; i < n; i++)
        bytes += segment[i].len;
    return bytes;
}

enum copied sge_iter_read(struct sge_iter *s, const struct mem_access *mem, const struct buf *dst, unsigned ndst)
{
    struct mem_segment segment[MEM_SEGMENT_BATCH];
    struct buf part[TX_BATCH_PKTS];
    /* Index of the buffer that is filled next. */
    unsigned at = 0;
    /* Bytes of dst[at] that are filled. */
    size_t filled = 0;
    enum copied result = COPIED;
    int n;
    while ((n = sge_iter_segments(s, segment, MEM_SEGMENT_BATCH)) > 0) {
        size_t bytes = sum(segment, (unsigned)n);
        unsigned parts = 0;
        while (bytes) {
            assert(at < ndst && parts < TX_BATCH_PKTS); /* dst has the same length, in no more buffers */
            size_t len = dst[at].len - filled < bytes ? dst[at].len - filled : bytes;
            part[parts++] = (struct buf){.p = dst[at].p + filled, .len = len};
            bytes -= len;
            filled += len;
            if (filled == dst[at].len) {
                at++;
                filled = 0;
            }
        }
        int err = mem->ops->read(mem->ctx, segment, (unsigned)n, part, parts);
        if (err < 0)
            return COPY_FAILED;
        if (err == MEM_UNMAPPED)
            result = COPIED_ZEROS;
    }
    return n < 0 ? COPY_REFUSED : result;
}

/* Are all remaining pieces allowed? */
static bool rest_allowed(const struct sge_iter *s)
{
    struct sge_iter ahead = *s;
    struct mem_segment segment[MEM_SEGMENT_BATCH];
    int n;
    while ((n = sge_iter_segments(&ahead, segment, MEM_SEGMENT_BATCH)) > 0)
        ;
    return n == 0;
}

enum copied sge_iter_write(struct sge_iter *s, const struct mem_access *mem, uint32_t qpn, const uint8_t *src,
                           uint32_t len)
{
    struct mem_segment segment[MEM_SEGMENT_BATCH];
    int n = sge_iter_segments(s, segment, MEM_SEGMENT_BATCH);
    if (n < 0 || (!sge_iter_done(s) && !rest_allowed(s)))
        return COPY_REFUSED;
    for (; n > 0; n = sge_iter_segments(s, segment, MEM_SEGMENT_BATCH)) {
        uint32_t bytes = sum(segment, (unsigned)n);
        assert(bytes <= len); /* the range has len bytes */
        if (mem->ops->write(mem->ctx, qpn, segment, (unsigned)n, src, bytes))
            return COPY_FAILED;
        src += bytes;
        len -= bytes;
    }
    return COPIED;
}
