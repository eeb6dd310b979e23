// SPDX-License-Identifier: BSD-2-Clause
#include "src/check/verbs/memory_verbs.h"

#include <errno.h>

#include "src/check/base/finding.h"
#include "src/check/base/next.h"
#include "src/check/base/trace.h"
#include "src/check/connect/tables.h"
#include "src/check/objects/dead_keys.h"
#include "src/check/objects/records.h"
#include "src/check/requests/region.h"
#include "src/check/verbs/export.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

/* As requests name it. */
static uint64_t first_address(const void *memory, unsigned access)
{
    return access & IBV_ACCESS_ZERO_BASED ? 0 : (uintptr_t)memory;
}

EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
    return region_made(NEXT(ibv_reg_mr, pd, addr, length, access), addr, length, first_address(addr, (unsigned)access),
                       (unsigned)access, TRACE_HERE);
}

EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
    return region_made(NEXT(ibv_reg_mr_iova, pd, addr, length, iova, access), addr, length, iova, (unsigned)access,
                       TRACE_HERE);
}

EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
    return region_made(NEXT(ibv_reg_mr_iova2, pd, addr, length, iova, access), addr, length, iova, access, TRACE_HERE);
}

EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd,
                                        int access)
{
    return region_made(NEXT(ibv_reg_dmabuf_mr, pd, offset, length, iova, fd, access), NULL, length, iova,
                       (unsigned)access, TRACE_HERE);
}

/* --- calls of later versions of the library ---------------------------------------------------- */

#define HAS_IOVA 1u /* enum ibv_mr_init_attr_mask, like the next ones */
#define HAS_ADDR 2u

/* struct ibv_mr_init_attr. The header of the build machine may lack it. */
struct mr_attr {
    size_t length;
    int access;
    uint64_t mask;
    uint64_t iova;
    void *addr;
};
struct ibv_mr_init_attr;
struct ibv_buf;

struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, struct ibv_mr_init_attr *attr);
struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf, void *addr, size_t length, int access);

/* A program that asks whether the library has the call finds that of the checker. */
static struct ibv_mr *library_has_none(void)
{
    errno = EOPNOTSUPP;
    return NULL;
}

EXPORT struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, struct ibv_mr_init_attr *attr)
{
    if (!next_has("ibv_reg_mr_ex"))
        return library_has_none();
    struct ibv_mr *mr = NEXT(ibv_reg_mr_ex, pd, attr);
    const struct mr_attr *a = (const struct mr_attr *)(const void *)attr;
    const void *memory = a->mask & HAS_ADDR ? a->addr : NULL; /* else it is that of a file */

    return region_made(mr, memory, a->length, a->mask & HAS_IOVA ? a->iova : first_address(memory, (unsigned)a->access),
                       (unsigned)a->access, TRACE_HERE);
}

EXPORT struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf, void *addr, size_t length, int access)
{
    if (!next_has("ibv_reg_buf_mr"))
        return library_has_none();
    return region_made(NEXT(ibv_reg_buf_mr, pd, buf, addr, length, access), addr, length,
                       first_address(addr, (unsigned)access), (unsigned)access, TRACE_HERE);
}

/* --- changes ----------------------------------------------------------------------------------- */

/* The region has new attributes, and may have new keys. */
static void changed(struct ibv_mr *mr, const struct mr_record *was, int flags, const void *addr, size_t length,
                    int access, const struct trace *where)
{
    bool moved = flags & IBV_REREG_MR_CHANGE_TRANSLATION, allowed = flags & IBV_REREG_MR_CHANGE_ACCESS;
    unsigned now = allowed ? (unsigned)access : was->access;

    if (moved)
        region_made(mr, addr, length, first_address(addr, now), now, where);
    else
        region_made(mr, (const void *)was->memory, was->length, was->addr, now, where); // NOLINT: of the program
}

EXPORT int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length, int access)
{
    records_lock();
    const struct mr_record *r = record_find(KIND_MR, mr, __builtin_return_address(0));
    const struct mr_record was = r ? *r : (struct mr_record){0};
    records_unlock();
    int rc = NEXT(ibv_rereg_mr, mr, flags, pd, addr, length, access);
    if (rc == 0 && r)
        changed(mr, &was, flags, addr, length, access, TRACE_HERE);
    return rc;
}

/* A request whose data the device may still read or fill. Receive requests are left out: programs that end often have some,
 * and no message comes any more. */
static void look_for_key(void *record, void *arg)
{
    const struct qp_record *q = record;
    const struct mr_record *mr = arg;
    const struct request *r;

    if (q->qp->context != mr->key.context || qp_is_done(q))
        return;
    TAILQ_FOREACH (r, &q->sends, link) {
        for (unsigned i = 0; r->signaled && i < r->num_sge; i++) {
            if (r->sge[i].lkey != mr->key.lkey || r->sge[i].length == 0)
                continue;
            finding_add(
                RULE_DEREG,
                &(const struct finding_place){.where = mr->r.where, .other = r->where, .whose = "the request"},
                "QP 0x%x: the region with key 0x%x is deregistered, but the %s with wr_id %llu has no completion yet",
                q->qp->qp_num, (unsigned)mr->key.lkey, request_kind(r->opcode), (unsigned long long)r->wr_id);
            return;
        }
    }
}

EXPORT int ibv_dereg_mr(struct ibv_mr *mr)
{
    records_lock();
    struct mr_record *r = record_find(KIND_MR, mr, __builtin_return_address(0));
    struct mr_record gone = r ? *r : (struct mr_record){0};
    if (r) {
        gone.r.where = TRACE_HERE;
        if (rule_is_on(RULE_DEREG))
            records_each(KIND_QP, look_for_key, &gone);
        dead_keys_add(r->key.context, (uint32_t)r->key.lkey,
                      gone.r.where); /* before another thread gets the key for another region */
    }
    records_unlock();
    int rc = NEXT(ibv_dereg_mr, mr);
    if (r && rc) {
        records_lock();
        dead_keys_remove(gone.key.context, (uint32_t)gone.key.lkey);
        records_unlock();
    }
    if (r) {
        if (rc == 0)
            tables_deregistered(&gone, gone.r.where);
        export_destroyed(KIND_MR, mr, rc, gone.r.where);
    }
    return rc;
}
