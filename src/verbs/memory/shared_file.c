// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/memory/shared_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <limits.h>
#include <linux/types.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "src/verbs/base/cancel.h"

#ifndef F_GET_SEALS
#define F_GET_SEALS 1034 /* from linux/fcntl.h */
#endif

/* A question about the mapping of an address: PROCMAP_QUERY of Linux 6.11, whose header may be older. */
struct mapping_query {
    __u64 size, query_flags, query_addr;
    __u64 vma_start, vma_end, vma_flags, vma_page_size, vma_offset, inode;
    __u32 dev_major, dev_minor, vma_name_size, build_id_size;
    __u64 vma_name_addr, build_id_addr;
};
#define MAPPING_QUERY _IOWR('f', 17, struct mapping_query)
#define MAPPING_SHARED 0x08u
#define MAPPING_OF_FILE 0x20u

/* Shorter regions gain little. */
#define LENGTH_MIN 4096u
#define PAGES_AT_ONCE 65536u

/* The descriptor that was found last: the next region is mostly in the same file. */
static atomic_int latest = -1;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool wanted;

static void find_whether_wanted(void)
{
    const char *v = getenv(PM_ENV_MAP_SHARED);
    wanted = !v || strcmp(v, "off") != 0;
}

/* Describes the mapping at addr, if it is a shared one of a file. path: of the file. */
static bool find_mapping(uint64_t addr, struct mapping_query *q, char path[PATH_MAX])
{
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    *q = (struct mapping_query){
        .size = sizeof(*q),
        .query_flags = MAPPING_SHARED | MAPPING_OF_FILE,
        .query_addr = addr,
        .vma_name_size = PATH_MAX,
        .vma_name_addr = (uintptr_t)path,
    };
    bool found = ioctl(fd, MAPPING_QUERY, q) == 0;
    close(fd);
    return found;
}

/* Do all pages exist? For a page that does not, the program may have a userfaultfd, which a page fault of the daemon
 * would not ask. */
static bool is_present(uint64_t addr, uint64_t length)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t left = (addr % page + length + page - 1) / page;
    uint64_t at = addr - addr % page;
    unsigned char *there = malloc(left < PAGES_AT_ONCE ? left : PAGES_AT_ONCE);
    bool present = there != NULL;
    while (left && present) {
        size_t n = left < PAGES_AT_ONCE ? left : PAGES_AT_ONCE;
        present = mincore((void *)(uintptr_t)at, n * page, there) == 0;
        for (size_t i = 0; i < n && present; i++)
            present = there[i] & 1;
        left -= n;
        at += n * page;
    }
    free(there);
    return present;
}

/* Is fd the file of the mapping, open for reading, and in memory? Only files in memory know seals. */
static bool is_file(int fd, const struct mapping_query *q, struct pm_reg_mr_req *req)
{
    struct stat st;
    int flags;
    if (fd < 0 || fcntl(fd, F_GET_SEALS) < 0 || (flags = fcntl(fd, F_GETFL)) < 0 || (flags & O_ACCMODE) == O_WRONLY ||
        fstat(fd, &st) != 0 || st.st_ino != q->inode || major(st.st_dev) != q->dev_major ||
        minor(st.st_dev) != q->dev_minor)
        return false;
    req->file_dev = st.st_dev;
    req->file_ino = st.st_ino;
    return true;
}

/* Looks at all descriptors of the program. */
static int find_descriptor(const struct mapping_query *q, struct pm_reg_mr_req *req)
{
    int fd = atomic_load(&latest);
    if (is_file(fd, q, req))
        return fd;
    DIR *d = opendir("/proc/self/fd");
    struct dirent *e;
    fd = -1;
    while (d && fd < 0 && (e = readdir(d)) != NULL) {
        char *end;
        long n = strtol(e->d_name, &end, 10);
        if (*end == 0 && end != e->d_name && is_file((int)n, q, req))
            fd = (int)n;
    }
    if (d)
        closedir(d);
    if (fd >= 0)
        atomic_store(&latest, fd);
    return fd;
}

/* Opens the file by its path, if it is in a directory of files in memory. Files of other file systems are left alone,
 * because these may be slow to answer. */
static int open_path(const char *path, const struct mapping_query *q, struct pm_reg_mr_req *req)
{
    static const char *const directories[] = {"/dev/shm/", "/dev/hugepages/"};
    for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++) {
        struct stat st;
        if (strncmp(path, directories[i], strlen(directories[i])) != 0 || stat(directories[i], &st) != 0 ||
            major(st.st_dev) != q->dev_major || minor(st.st_dev) != q->dev_minor)
            continue;
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (fd < 0 || is_file(fd, q, req))
            return fd;
        close(fd);
    }
    return -1;
}

/* A program loses its POSIX locks of a file when it closes any descriptor of the file. So the library keeps the
 * descriptor open while the file has locks: F_OFD_GETLK shows them, those of this process as well. The next region of the file
 * finds it. */
static void close_gently(int fd)
{
    struct flock any = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(fd, F_OFD_GETLK, &any) == 0 && any.l_type == F_UNLCK)
        close(fd);
}

void vb_shared_file_find(struct vb_shared_file *f, struct pm_reg_mr_req *req)
{
    int saved = errno, was = vb_cancel_off(); /* a cancelled thread would leave a descriptor open */
    struct mapping_query q;
    char path[PATH_MAX];
    *f = (struct vb_shared_file){.fd = -1};
    pthread_once(&once, find_whether_wanted);
    if (wanted && req->length >= LENGTH_MIN && !(req->access & IBV_ACCESS_ON_DEMAND) &&
        find_mapping(req->va, &q, path) && req->length <= q.vma_end - req->va && is_present(req->va, req->length)) {
        req->file_offset = q.vma_offset + (req->va - q.vma_start);
        f->fd = find_descriptor(&q, req);
        if (f->fd < 0) {
            f->fd = open_path(path, &q, req);
            f->opened = f->fd >= 0;
        }
    }
    vb_cancel_restore(was);
    errno = saved;
}

void vb_shared_file_end(const struct vb_shared_file *f)
{
    int saved = errno, was = vb_cancel_off();
    if (f->opened)
        close_gently(f->fd);
    vb_cancel_restore(was);
    errno = saved;
}
