// SPDX-License-Identifier: BSD-2-Clause
/* Programs look for RDMA devices in the file system, too: UCX wants a character device /dev/infiniband/DEV_NAME, and
 * reads /sys/class/infiniband/DEVICE/… by name. Without root there is no such thing, so these functions stand in for
 * libc's and lead exactly these two trees elsewhere: the device file to /dev/null, the attributes to the directory that
 * the daemon keeps beside its control socket. Everything else goes to the kernel as it came.
 *
 * The library is preloaded into every shell and launcher, and these may run in constructors, in signal handlers and
 * between fork and exec: for other paths they cost a few compares and call the function of libc that takes a directory
 * descriptor, which is not replaced; nothing is allocated. What a real device of this machine has in these trees is
 * still found, because only names that the daemon has are led away. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "session.h"

#define SYS_ROOT "/sys/class/infiniband"
#define DEV_ROOT "/dev/infiniband/"
#define PREFIX_LEN(text) (sizeof(text) - 1)

static bool exists(const char *path)
{
    return syscall(SYS_faccessat, AT_FDCWD, path, F_OK, 0) == 0;
}

/* Socket path, suffix and rest in out[PATH_MAX]; false: no socket is known, or too long. */
static bool in_tree(const char *rest, char *out)
{
    if (vb_session_path(out, PATH_MAX) != 0)
        return false;
    size_t at = strlen(out), len = strlen(rest);
    if (at + PREFIX_LEN(PM_SYSFS_SUFFIX) + len >= PATH_MAX)
        return false;
    memcpy(out + at, PM_SYSFS_SUFFIX, PREFIX_LEN(PM_SYSFS_SUFFIX));
    memcpy(out + at + PREFIX_LEN(PM_SYSFS_SUFFIX), rest, len + 1);
    return true;
}

/* A path below /sys/class/infiniband or /sys/class/infiniband_verbs, or one of them. */
static const char *attribute(const char *path, char *out)
{
    const char *rest = path + PREFIX_LEN(SYS_ROOT);
    if (strncmp(rest, "_verbs", 6) == 0)
        rest += 6;
    if (*rest != 0 && *rest != '/')
        return path;
    return in_tree(path + PREFIX_LEN("/sys/class"), out) && exists(out) ? out : path;
}

static const char *device_file(const char *path, char *out)
{
    static const char verbs[] = "/infiniband_verbs/";
    char rest[NAME_MAX + sizeof(verbs)];
    const char *name = path + PREFIX_LEN(DEV_ROOT);
    size_t len = strlen(name);
    if (len == 0 || len > NAME_MAX || strchr(name, '/'))
        return path;
    memcpy(rest, verbs, PREFIX_LEN(verbs));
    memcpy(rest + PREFIX_LEN(verbs), name, len + 1);
    return in_tree(rest, out) && exists(out) ? "/dev/null" : path;
}

/* Where the file really is: path itself, or another name that may be in out[PATH_MAX]. errno stays as it was. No path at all
 * becomes an address where nothing is: the kernel says EFAULT of both, but libc's declarations promise the compiler that
 * there is a path, and it may take out every test for NULL that comes before such a call. */
static const char *lead(const char *path, char *out)
{
    if (!path)
        return (const char *)1;
    if (path[0] != '/' || (path[1] != 's' && path[1] != 'd'))
        return path;
    int e = errno;
    const char *to = path;
    if (strncmp(path, SYS_ROOT, PREFIX_LEN(SYS_ROOT)) == 0)
        to = attribute(path, out);
    else if (strncmp(path, DEV_ROOT, PREFIX_LEN(DEV_ROOT)) == 0)
        to = device_file(path, out);
    errno = e;
    return to;
}

/* Connection management (librdmacm: perftest's -R, libfabric's message endpoints) wants this device of the kernel, and
 * without it says no more than "failed". So say what is missing, once in a process; but not below UCX, which asks in every
 * process and goes on without it, nor in the ranks of an MPI job, which load libfabric to see whether it is of use. A kernel that has the device is asked, not judged. */
static void tell_rdma_cm(const char *path)
{
    static bool told;
    static const char text[] = "pumice: rdma_cm, connection management, is not there: take out-of-band connections "
                               "(perftest without -R, libfabric's verbs;ofi_rxd)\n";
    char out[PATH_MAX];
    int e = errno;
    if (strcmp(path, DEV_ROOT "rdma_cm") != 0 || vb_session_launched() || !in_tree("/infiniband", out) || !exists(out))
        return;
    void *ucx = dlopen("libuct.so.0", RTLD_LAZY | RTLD_NOLOAD);
    if (ucx)
        dlclose(ucx);
    else if (!__atomic_test_and_set(&told, __ATOMIC_RELAXED))
        (void)!write(STDERR_FILENO, text, PREFIX_LEN(text));
    errno = e;
}

/* --- what stands in --------------------------------------------------------------------------------------------------- */
/* Prototypes of functions that the headers no longer have. */
int __xstat(int version, const char *path, struct stat *st);
int __xstat64(int version, const char *path, struct stat64 *st);
int __lxstat(int version, const char *path, struct stat *st);
int __lxstat64(int version, const char *path, struct stat64 *st);

VB_EXPORT int stat(const char *restrict path, struct stat *restrict st)
{
    char out[PATH_MAX];
    return fstatat(AT_FDCWD, lead(path, out), st, 0);
}

VB_EXPORT int stat64(const char *restrict path, struct stat64 *restrict st)
{
    char out[PATH_MAX];
    return fstatat64(AT_FDCWD, lead(path, out), st, 0);
}

VB_EXPORT int lstat(const char *restrict path, struct stat *restrict st)
{
    char out[PATH_MAX];
    return fstatat(AT_FDCWD, lead(path, out), st, AT_SYMLINK_NOFOLLOW);
}

VB_EXPORT int lstat64(const char *restrict path, struct stat64 *restrict st)
{
    char out[PATH_MAX];
    return fstatat64(AT_FDCWD, lead(path, out), st, AT_SYMLINK_NOFOLLOW);
}

/* As programs linked before glibc 2.33 call them; there is one version of the structure on every 64-bit Linux. */
VB_EXPORT int __xstat(int version, const char *path, struct stat *st)
{
    (void)version;
    return stat(path, st);
}

VB_EXPORT int __xstat64(int version, const char *path, struct stat64 *st)
{
    (void)version;
    return stat64(path, st);
}

VB_EXPORT int __lxstat(int version, const char *path, struct stat *st)
{
    (void)version;
    return lstat(path, st);
}

VB_EXPORT int __lxstat64(int version, const char *path, struct stat64 *st)
{
    (void)version;
    return lstat64(path, st);
}

/* What ls calls. */
VB_EXPORT int statx(int dir, const char *restrict path, int flags, unsigned mask, struct statx *restrict st)
{
    char out[PATH_MAX];
    return (int)syscall(SYS_statx, dir, lead(path, out), flags, mask, st);
}

VB_EXPORT int access(const char *path, int mode)
{
    char out[PATH_MAX];
    return faccessat(AT_FDCWD, lead(path, out), mode, 0);
}

/* The third argument of open is there with O_CREAT and O_TMPFILE only. */
#define MODE_OF(flags, mode)                                                                                           \
    mode_t mode = 0;                                                                                                   \
    if ((flags)&O_CREAT || ((flags)&O_TMPFILE) == O_TMPFILE) {                                                         \
        va_list ap;                                                                                                    \
        va_start(ap, flags);                                                                                           \
        mode = va_arg(ap, mode_t);                                                                                     \
        va_end(ap);                                                                                                    \
    }

VB_EXPORT int open(const char *path, int flags, ...)
{
    char out[PATH_MAX];
    MODE_OF(flags, mode)
    int fd = openat(AT_FDCWD, lead(path, out), flags, mode);
    if (fd < 0 && errno == ENOENT && strncmp(path, DEV_ROOT, PREFIX_LEN(DEV_ROOT)) == 0)
        tell_rdma_cm(path);
    return fd;
}

VB_EXPORT int open64(const char *path, int flags, ...)
{
    char out[PATH_MAX];
    MODE_OF(flags, mode)
    int fd = openat64(AT_FDCWD, lead(path, out), flags, mode);
    if (fd < 0 && errno == ENOENT && strncmp(path, DEV_ROOT, PREFIX_LEN(DEV_ROOT)) == 0)
        tell_rdma_cm(path);
    return fd;
}

/* There is no fopen that takes a descriptor of a directory: libc's own does the work. */
static FILE *libc_fopen(const char *name, const char *path, const char *mode)
{
    char out[PATH_MAX];
    FILE *(*real)(const char *, const char *);
    void *symbol = dlsym(RTLD_NEXT, name);
    memcpy(&real, &symbol, sizeof(real));
    return real(lead(path, out), mode);
}

VB_EXPORT FILE *fopen(const char *restrict path, const char *restrict mode)
{
    return libc_fopen("fopen", path, mode);
}

VB_EXPORT FILE *fopen64(const char *restrict path, const char *restrict mode)
{
    return libc_fopen("fopen64", path, mode);
}

VB_EXPORT ssize_t readlink(const char *restrict path, char *restrict buf, size_t len)
{
    char out[PATH_MAX];
    return readlinkat(AT_FDCWD, lead(path, out), buf, len);
}

VB_EXPORT DIR *opendir(const char *path)
{
    char out[PATH_MAX];
    int fd = openat(AT_FDCWD, lead(path, out), O_RDONLY | O_NDELAY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    DIR *dir = fdopendir(fd);
    if (!dir) {
        int e = errno;
        close(fd);
        errno = e;
    }
    return dir;
}
