// SPDX-License-Identifier: BSD-2-Clause
#define LOG_AREA LOG_SESSION
#include "daemon/objects/mr_file.h"

#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "daemon/base/log.h"
#include "daemon/device/device.h"
#include "daemon/session/control_msg.h"
#include "daemon/session/segment_guard.h"
#include "daemon/session/session.h"
#include "daemon/threads/fd_closer.h"

#ifndef F_GET_SEALS
#define F_GET_SEALS 1034 /* from linux/fcntl.h */
#endif
#define HUGE_PAGE (2u << 20) /* files with pages of this size or more are unmapped quickly */

struct mr_file {
    struct shared_region region;
    unsigned number; /* of the region */
    void *p; /* whole pages */
    size_t size;
    struct guarded *guard;
};

/* Is it the file of the request, and one that is in memory? */
static bool is_right_file(int fd, const struct pm_reg_mr_req *rq, struct stat *st)
{
    return fcntl(fd, F_GET_SEALS) >= 0 && fstat(fd, st) == 0 && S_ISREG(st->st_mode) && st->st_dev == rq->file_dev &&
           st->st_ino == rq->file_ino;
}

/* Are the file and the region such that the daemon can map them? */
static bool is_fit(const struct stat *st, const struct pm_reg_mr_req *rq)
{
    uint64_t size = (uint64_t)st->st_size;

    return rq->length > 0 && st->st_size > 0 && rq->file_offset < size && rq->length <= size - rq->file_offset &&
           (rq->length <= MR_FILE_LENGTH_MAX || st->st_blksize >= (blksize_t)HUGE_PAGE);
}

static bool map(struct mr_file *f, int fd, const struct stat *st, const struct pm_reg_mr_req *rq)
{
    uint64_t page = st->st_blksize > 4096 ? (uint64_t)st->st_blksize : 4096; /* of hugetlbfs: its huge pages */
    uint64_t skip = rq->file_offset % page;

    if (page & (page - 1))
        return false;
    f->size = (size_t)((skip + rq->length + page - 1) & ~(page - 1));
    f->p = mmap(NULL, f->size, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd, (off_t)(rq->file_offset - skip));
    if (f->p == MAP_FAILED)
        return false;
    f->guard = segment_guard_add(f->p, f->size);
    if (!f->guard) {
        munmap(f->p, f->size);
        return false;
    }
    segment_guard_owner(f->guard, &f->region.lost);
    f->region.va = rq->va;
    f->region.length = rq->length;
    f->region.p = (const uint8_t *)f->p + skip;
    return true;
}

static void unmap(struct mr_file *f)
{
    segment_guard_remove(f->guard);
    munmap(f->p, f->size);
}

/* Maps the file and makes it known to the memory backend. */
static bool use(struct session *s, struct mr_file *f, int fd, const struct stat *st, const struct pm_reg_mr_req *rq)
{
    char why[QUOTA_WHY_MAX];

    if (quota_charge_memory(&s->owner, 1, 0, why) != 0)
        return false;
    if (map(f, fd, st, rq)) {
        f->number = shared_regions_add(&s->device->memory.shared, &f->region);
        if (f->number)
            return true;
        unmap(f);
    }
    quota_release_memory(&s->owner, 1, 0);
    return false;
}

struct mr_file *mr_file_map(struct session *s, const struct pm_reg_mr_req *rq)
{
    int fd = s->request ? control_take_fd(s->request) : -1;
    struct mr_file *f = NULL;
    struct stat st;

    if (fd < 0)
        return NULL;
    if (s->client_mem->path == PM_MEMORY_PROCESS_VM && !(rq->access & IBV_ACCESS_ON_DEMAND) &&
        is_right_file(fd, rq, &st) && is_fit(&st, rq))
        f = calloc(1, sizeof(*f));
    if (f && !use(s, f, fd, &st, rq)) {
        log_debug("session %u: a shared region of %llu bytes is not mapped: %s", s->number,
                  (unsigned long long)rq->length, strerror(errno));
        free(f);
        f = NULL;
    }
    fd_closer_close(fd, s->cred.uid);
    return f;
}

void mr_file_unmap(struct session *s, struct mr_file *f)
{
    if (!f)
        return;
    shared_regions_remove(&s->device->memory.shared, f->number);
    unmap(f);
    quota_release_memory(&s->owner, 1, 0);
    free(f);
}

uint32_t mr_file_space(const struct mr_file *f)
{
    return f ? f->number << CLIENT_MEM_REGION_SHIFT : 0;
}

bool mr_file_in_use(const struct mr_file *f)
{
    return f && !atomic_load_explicit(&f->region.lost, memory_order_relaxed);
}
