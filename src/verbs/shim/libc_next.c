// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/shim/libc_next.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The callers in this library always pass the mode. */
static int early_openat(int dir, const char *path, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    mode_t mode = va_arg(ap, mode_t);
    va_end(ap);
    return (int)syscall(SYS_openat, dir, path, flags, mode);
}

static int early_access(const char *path, int mode)
{
    return (int)syscall(SYS_faccessat, AT_FDCWD, path, mode);
}

static ssize_t early_readlink(const char *restrict path, char *restrict buf, size_t len)
{
    return syscall(SYS_readlinkat, AT_FDCWD, path, buf, len);
}

static int early_statx(int dir, const char *restrict path, int flags, unsigned mask, struct statx *restrict st)
{
    return (int)syscall(SYS_statx, dir, path, flags, mask, st);
}

static ssize_t early_read(int fd, void *buf, size_t len)
{
    return syscall(SYS_read, fd, buf, len);
}

static ssize_t early_pread(int fd, void *buf, size_t len, off_t at)
{
    return syscall(SYS_pread64, fd, buf, len, at);
}

static ssize_t early_write(int fd, const void *buf, size_t len)
{
    return syscall(SYS_write, fd, buf, len);
}

static int early_close(int fd)
{
    return (int)syscall(SYS_close, fd);
}

static int early_dup(int fd)
{
    return (int)syscall(SYS_dup, fd);
}

static int early_dup3(int fd, int to, int flags)
{
    return (int)syscall(SYS_dup3, fd, to, flags);
}

static int early_dup2(int fd, int to)
{
#ifdef SYS_dup2
    return (int)syscall(SYS_dup2, fd, to);
#endif
    /* dup2 accepts that both are the same descriptor; the system call dup3 does not. */
    if (fd == to)
        return syscall(SYS_fcntl, fd, F_GETFD) < 0 ? -1 : to;
    return early_dup3(fd, to, 0);
}

/* The callers in this library always pass the argument. */
static int early_fcntl(int fd, int cmd, ...)
{
    va_list ap;
    va_start(ap, cmd);
    void *arg = va_arg(ap, void *);
    va_end(ap);
    return (int)syscall(SYS_fcntl, fd, cmd, arg);
}

static int early_fstatat(int dir, const char *restrict path, struct stat *restrict st, int flags)
{
    return (int)syscall(SYS_newfstatat, dir, path, st, flags);
}

static int early_fstatat64(int dir, const char *restrict path, struct stat64 *restrict st, int flags)
{
    return (int)syscall(SYS_newfstatat, dir, path, st, flags);
}

static int early_fstat(int fd, struct stat *st)
{
    return (int)syscall(SYS_fstat, fd, st);
}

static int early_fstat64(int fd, struct stat64 *st)
{
    return (int)syscall(SYS_fstat, fd, st);
}

struct vb_next vb_next = {
    .openat = early_openat,
    .access = early_access,
    .readlink = early_readlink,
    .statx = early_statx,
    .fstat = early_fstat,
    .fstat64 = early_fstat64,
    .fstatat = early_fstatat,
    .fstatat64 = early_fstatat64,
    .write = early_write,
    .close = early_close,
    .dup = early_dup,
    .dup2 = early_dup2,
    .dup3 = early_dup3,
    .fcntl = early_fcntl,
    .fcntl64 = early_fcntl,
    .read = early_read,
    .pread = early_pread,
    .pread64 = early_pread,
};

/* Looks up one function. If there is no such function, the entry keeps its value. */
#define FIND(function)                                                                                                 \
    {                                                                                                                  \
        __typeof__(&function) found_;                                                                                  \
        void *symbol_ = dlsym(RTLD_NEXT, #function);                                                                   \
        memcpy(&found_, &symbol_, sizeof(found_));                                                                     \
        if (symbol_)                                                                                                   \
            atomic_store_explicit(&vb_next.function, found_, memory_order_relaxed);                                    \
    }

__attribute__((constructor)) void vb_next_find(void)
{
    VB_NEXT_FUNCTIONS(FIND)
}
