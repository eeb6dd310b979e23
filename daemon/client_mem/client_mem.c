// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/client_mem/client_mem.h"

#include <errno.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "daemon/threads/fd_closer.h"

/* --- copying ----------------------------------------------------------------------------------- */

/* Does the error of a copy of 0 bytes say that there is no memory at the address? Else the process is gone. */
static bool is_unmapped(int err)
{
    return err == EFAULT || err == EIO; /* of process_vm, of /proc/PID/mem */
}

static struct copier_target target(const struct client_mem *s)
{
    return (struct copier_target){
        .fd = s->path == PM_MEMORY_PROC_MEM ? s->fds.mem : -1,
        .pid = s->pid,
        .maps_fd = s->fds.maps,
        .limit_ms = s->limit_ms,
        .lock_limit_ms = s->lock_limit_ms,
    };
}

static uint64_t copied(struct client_mem *s, int64_t result)
{
    s->err = result < 0 ? (int)-result : 0;
    s->stuck |= result == -ETIMEDOUT;
    return result < 0 ? 0 : (uint64_t)result;
}

uint64_t client_mem_read(struct client_mem *s, const struct iovec *local, unsigned nlocal, const struct iovec *remote,
                         unsigned nremote)
{
    struct copier_target from = target(s);

    if (s->path == PM_MEMORY_NONE || s->stuck)
        return copied(s, -ESRCH);
    return copied(s, copier_read(s->copier, &from, local, nlocal, remote, nremote));
}

uint64_t client_mem_write(struct client_mem *s, const struct iovec *local, unsigned nlocal, const struct iovec *remote,
                          unsigned nremote)
{
    struct copier_target to = target(s);

    if (s->path == PM_MEMORY_NONE || s->stuck)
        return copied(s, -ESRCH);
    return copied(s, copier_write(s->copier, &to, local, nlocal, remote, nremote));
}

/* Nothing is mapped at address 0. The error of a read there tells whether the process still has memory. */
bool client_mem_is_gone(struct client_mem *s)
{
    uint8_t byte;
    struct iovec local = {&byte, 1}, remote = {NULL, 1};

    return s->path != PM_MEMORY_NONE && !s->stuck && client_mem_read(s, &local, 1, &remote, 1) == 0 && s->err == ESRCH;
}

/* --- probing ----------------------------------------------------------------------------------- */

static bool works(struct client_mem *s, enum pm_memory_path path, uint64_t va, uint64_t value)
{
    uint64_t seen = 0;
    struct iovec local = {&seen, sizeof(seen)};
    struct iovec remote = {(void *)(uintptr_t)va, sizeof(seen)};

    s->path = path;
    if (client_mem_read(s, &local, 1, &remote, 1) == sizeof(seen) && seen == value &&
        client_mem_write(s, &local, 1, &remote, 1) == sizeof(seen))
        return true;
    s->path = PM_MEMORY_NONE;
    return false;
}

#define PROC_BLOCK 1024 /* s_blocksize of procfs */
#define PROC_PATH_MAX 64

/* Is it the file `name` of a process in procfs? The descriptor comes from the client; on any other file, reads and writes
 * could block the loop. *dir: the path of its directory. fstatfs could, too: FUSE and NFS ask their server, which may be dead. So two questions come first that the
 * kernel answers without the file system: the path, and the size of blocks. Blocks of FUSE and NFS are larger than those
 * of procfs. */
static bool is_proc_file(int fd, const char *name, char dir[PROC_PATH_MAX])
{
    char link[64];
    const ssize_t len = (ssize_t)strlen(name);
    struct statfs fs;
    int block;

    if (fd < 0)
        return false;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, dir, PROC_PATH_MAX - 1);
    if (n <= len || n >= PROC_PATH_MAX - 1 || memcmp(dir + n - len, name, (size_t)len) != 0)
        return false;
    dir[n - len] = 0;
    if (ioctl(fd, FIGETBSZ, &block) != 0 || block != PROC_BLOCK)
        return false;
    return fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

/* Are both files of one process? Equal paths can be in the procfs of two PID namespaces. */
static bool are_of_one_process(const struct client_fds *fds)
{
    char dir[2][PROC_PATH_MAX];
    struct stat st[2];

    return is_proc_file(fds->mem, "/mem", dir[0]) && is_proc_file(fds->maps, "/maps", dir[1]) &&
           strcmp(dir[0], dir[1]) == 0 && fstat(fds->mem, &st[0]) == 0 && fstat(fds->maps, &st[1]) == 0 &&
           st[0].st_dev == st[1].st_dev;
}

void client_fds_close(struct client_fds *fds, uid_t owner)
{
    if (fds->mem >= 0)
        fd_closer_close(fds->mem, owner);
    if (fds->maps >= 0)
        fd_closer_close(fds->maps, owner);
    *fds = (struct client_fds){-1, -1};
}

void client_mem_init(struct client_mem *s, uint32_t number, pid_t pid, struct client_fds fds, bool same_user,
                     enum memory_mode mode, uint64_t probe_va, uint64_t probe_value)
{
    char dir[PROC_PATH_MAX];
    struct copier *copier = s->copier;
    unsigned limit_ms = s->limit_ms, lock_limit_ms = s->lock_limit_ms;
    uid_t owner = s->owner;

    memset(s, 0, offsetof(struct client_mem, local));
    s->copier = copier;
    s->limit_ms = limit_ms;
    s->lock_limit_ms = lock_limit_ms;
    s->owner = owner;
    s->number = number;
    s->pid = pid;
    s->fds = fds;
    if (fds.maps >= 0 && !are_of_one_process(&fds)) {
        fd_closer_close(fds.maps, owner);
        s->fds.maps = -1;
    }
    s->path = PM_MEMORY_NONE;
    if (mode != MEMORY_PROC_MEM && same_user && pid > 0 && works(s, PM_MEMORY_PROCESS_VM, probe_va, probe_value))
        return;
    if (mode != MEMORY_PROCESS_VM && is_proc_file(fds.mem, "/mem", dir))
        works(s, PM_MEMORY_PROC_MEM, probe_va, probe_value);
}

void client_mem_fini(struct client_mem *s)
{
    client_fds_close(&s->fds, s->owner);
    s->path = PM_MEMORY_NONE;
}

const char *client_mem_path_name(enum pm_memory_path path)
{
    switch (path) {
    case PM_MEMORY_PROCESS_VM:
        return "process_vm";
    case PM_MEMORY_PROC_MEM:
        return "proc_mem";
    case PM_MEMORY_NONE:
        break;
    }
    return "none";
}

/* --- deferred writes --------------------------------------------------------------------------- */

bool client_mem_defer(struct client_mem *s, uint32_t qpn, uint64_t va, const uint8_t *src, size_t len)
{
    struct iovec *last = s->nremote ? &s->remote[s->nremote - 1] : NULL;
    bool adjacent = last && (uintptr_t)last->iov_base + last->iov_len == va;

    if (s->nlocal == CLIENT_MEM_IOVS || (!adjacent && s->nremote == CLIENT_MEM_IOVS))
        return false;
    if (adjacent)
        last->iov_len += len;
    else
        s->remote[s->nremote++] = (struct iovec){(void *)(uintptr_t)va, len};
    s->local[s->nlocal] = (struct iovec){(void *)(uintptr_t)src, len};
    s->qpn[s->nlocal++] = qpn;
    s->waiting_bytes += len;
    return true;
}

unsigned client_mem_take(struct client_mem *s, struct client_write out[CLIENT_MEM_IOVS])
{
    const struct iovec *to = s->remote;
    size_t done = 0; /* bytes of *to */
    unsigned n = s->nlocal;

    for (unsigned i = 0; i < n; i++) {
        out[i] = (struct client_write){.va = (uintptr_t)to->iov_base + done,
                                       .src = s->local[i].iov_base,
                                       .len = s->local[i].iov_len,
                                       .owner = s->qpn[i]};
        done += s->local[i].iov_len;
        if (done == to->iov_len) { /* a source never reaches into a second destination */
            to++;
            done = 0;
        }
    }
    s->nlocal = s->nremote = 0;
    s->waiting_bytes = 0;
    return n;
}

/* Removes the first `bytes` bytes of a list and returns its new length. */
static unsigned drop_front(struct iovec *v, unsigned n, uint64_t bytes)
{
    unsigned i = 0;

    while (i < n && bytes >= v[i].iov_len)
        bytes -= v[i++].iov_len;
    memmove(v, v + i, (n - i) * sizeof(*v));
    if (n > i && bytes) {
        v[0].iov_base = (void *)((uintptr_t)v[0].iov_base + bytes); /* an address of a client may be 0 */
        v[0].iov_len -= bytes;
    }
    return n - i;
}

/* Bytes of both pieces in the page where the client's piece begins. Linux has no smaller pages. */
static size_t rest_of_page(const struct iovec *local, const struct iovec *remote)
{
    size_t n = CLIENT_MEM_PAGE - (uintptr_t)remote->iov_base % CLIENT_MEM_PAGE;

    n = n < remote->iov_len ? n : remote->iov_len;
    return n < local->iov_len ? n : local->iov_len;
}

/* Removes the first `bytes` bytes of the waiting writes. */
static void drop_writes(struct client_mem *s, uint64_t bytes)
{
    unsigned before = s->nlocal;

    s->nremote = drop_front(s->remote, s->nremote, bytes);
    s->nlocal = drop_front(s->local, s->nlocal, bytes);
    memmove(s->qpn, s->qpn + (before - s->nlocal), s->nlocal * sizeof(s->qpn[0]));
    s->waiting_bytes -= bytes;
}

void client_mem_flush(struct client_mem *s, client_mem_failed *failed, void *ctx)
{
    while (s->nlocal) {
        uint64_t done = client_mem_write(s, s->local, s->nlocal, s->remote, s->nremote);
        bool unmapped = is_unmapped(s->err);

        if (done >= s->waiting_bytes)
            break;
        if (done) { /* the next call says why it stopped */
            drop_writes(s, done);
            continue;
        }
        unmapped = unmapped && !(s->qpn[0] & CLIENT_MEM_ON_DEMAND);
        failed(ctx, s->qpn[0] & ~CLIENT_MEM_ON_DEMAND, unmapped);
        drop_writes(s, unmapped ? rest_of_page(s->local, s->remote) : s->local[0].iov_len);
    }
    s->nlocal = s->nremote = 0;
    s->waiting_bytes = 0;
}

enum client_mem_result client_mem_read_all(struct client_mem *s, struct iovec *local, unsigned nlocal,
                                           struct iovec *remote, unsigned nremote, uint64_t bytes)
{
    enum client_mem_result result = CLIENT_MEM_DONE;

    for (;;) {
        uint64_t done = client_mem_read(s, local, nlocal, remote, nremote);
        bool unmapped = is_unmapped(s->err);

        if (done >= bytes)
            return result;
        if (done == 0 && !unmapped)
            return CLIENT_MEM_FAILED;
        if (done == 0) {
            done = rest_of_page(local, remote);
            memset(local->iov_base, 0, done);
            result = CLIENT_MEM_UNMAPPED;
        }
        bytes -= done;
        if (bytes == 0)
            return result;
        nlocal = drop_front(local, nlocal, done);
        nremote = drop_front(remote, nremote, done);
    }
}
_Static_assert(sizeof(uintptr_t) == sizeof(uint64_t), "addresses of clients are 64 bits");
