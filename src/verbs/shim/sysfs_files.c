// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/shim/sysfs_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pumice/abi.h"
#include "src/verbs/base/api.h"
#include "src/verbs/session/session_path.h"
#include "src/verbs/shim/counter_files.h"
#include "src/verbs/shim/libc_next.h"
#include "src/verbs/shim/rdma_cm.h"

#define SYS_ROOT "/sys/class/infiniband"
#define MISC_ROOT "/sys/class/misc/rdma_cm"
#define DEV_ROOT "/dev/infiniband/"
#define RDMA_CM "rdma_cm"
#define PREFIX_LEN(text) (sizeof(text) - 1)

static bool exists(const char *path)
{
    return syscall(SYS_faccessat, AT_FDCWD, path, F_OK, 0) == 0;
}

/* Fills out[PATH_MAX] with a path in the daemon's directory: socket path, suffix and rest. Returns false if no socket
 * is known, or if the path is too long. */
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

/* Redirects /sys/class/infiniband, /sys/class/infiniband_verbs and paths below them. */
static const char *attribute(const char *path, char *out)
{
    const char *rest = path + PREFIX_LEN(SYS_ROOT);
    if (strncmp(rest, "_verbs", 6) == 0)
        rest += 6;
    if (*rest != 0 && *rest != '/')
        return path;
    return in_tree(path + PREFIX_LEN("/sys/class"), out) && exists(out) ? out : path;
}

/* Redirects the directory of connection management, and paths below it. */
static const char *cm_attribute(const char *path, char *out)
{
    const char *rest = path + PREFIX_LEN(MISC_ROOT);
    if (*rest != 0 && *rest != '/')
        return path;
    return in_tree(path + PREFIX_LEN("/sys/class"), out) && exists(out) ? out : path;
}

static const char cm_device[] = "/dev/null"; /* stands for the device of connection management */

/* Redirects the device file of a device of the daemon, or that of connection management. */
static const char *device_file(const char *path, char *out)
{
    static const char verbs[] = "/infiniband_verbs/";
    char rest[NAME_MAX + sizeof(verbs)];
    const char *name = path + PREFIX_LEN(DEV_ROOT);
    size_t len = strlen(name);
    if (len == 0 || len > NAME_MAX || strchr(name, '/'))
        return path;
    if (strcmp(name, RDMA_CM) == 0)
        return in_tree("/misc/" RDMA_CM, out) && exists(out) ? cm_device : path;
    memcpy(rest, verbs, PREFIX_LEN(verbs));
    memcpy(rest + PREFIX_LEN(verbs), name, len + 1);
    return in_tree(rest, out) && exists(out) ? "/dev/null" : path;
}

/* Returns the path that the kernel shall get: path itself, or another path, which may be in out[PATH_MAX]. errno is
 * kept. NULL becomes another invalid address; the kernel returns EFAULT for both. The declarations of the C library
 * promise the compiler that these functions never get NULL. So if NULL could reach such a call, the compiler may remove
 * every test for NULL in front of the call. */
static const char *redirect(const char *given, char *out)
{
    /* The compiler may inline this function into one that never gets NULL. It must not remove the test. */
    const char *volatile any = given;
    const char *path = any;
    if (!path)
        return (const char *)1;
    if (path[0] != '/' || (path[1] != 's' && path[1] != 'd'))
        return path;
    int e = errno;
    const char *to = path;
    if (strncmp(path, SYS_ROOT, PREFIX_LEN(SYS_ROOT)) == 0)
        to = attribute(path, out);
    else if (strncmp(path, MISC_ROOT, PREFIX_LEN(MISC_ROOT)) == 0)
        to = cm_attribute(path, out);
    else if (strncmp(path, DEV_ROOT, PREFIX_LEN(DEV_ROOT)) == 0)
        to = device_file(path, out);
    errno = e;
    return to;
}

/* --- replaced functions ----------------------------------------------------------------------- */
VB_EXPORT int stat(const char *restrict path, struct stat *restrict st)
{
    char out[PATH_MAX];
    return VB_NEXT(fstatat)(AT_FDCWD, redirect(path, out), st, 0);
}

VB_EXPORT int stat64(const char *restrict path, struct stat64 *restrict st)
{
    char out[PATH_MAX];
    return VB_NEXT(fstatat64)(AT_FDCWD, redirect(path, out), st, 0);
}

VB_EXPORT int lstat(const char *restrict path, struct stat *restrict st)
{
    char out[PATH_MAX];
    return VB_NEXT(fstatat)(AT_FDCWD, redirect(path, out), st, AT_SYMLINK_NOFOLLOW);
}

VB_EXPORT int lstat64(const char *restrict path, struct stat64 *restrict st)
{
    char out[PATH_MAX];
    return VB_NEXT(fstatat64)(AT_FDCWD, redirect(path, out), st, AT_SYMLINK_NOFOLLOW);
}

/* Programs that were linked before glibc 2.33 call these. On 64-bit Linux the structure has one version only. */
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

/* The type of statx without the promise of the C library that the path is not NULL. */
typedef int statx_any_path(int dir, const char *restrict path, int flags, unsigned mask, struct statx *restrict st);

/* ls calls this. With AT_EMPTY_PATH, the path may be NULL since Linux 6.11, so NULL stays NULL: the kernel knows whether
 * it is an error. Reading the path from a volatile variable keeps the compiler from removing the test for NULL. */
VB_EXPORT int statx(int dir, const char *restrict path, int flags, unsigned mask, struct statx *restrict st)
{
    statx_any_path *next = VB_NEXT(statx);
    const char *volatile given = path;
    const char *to = given;
    char out[PATH_MAX];
    int rc = next(dir, to ? redirect(to, out) : NULL, flags, mask, st);
    if (rc == 0 && flags & AT_EMPTY_PATH && (!to || !*to))
        vb_rdma_cm_statx(dir, st);
    return rc;
}

VB_EXPORT int access(const char *path, int mode)
{
    char out[PATH_MAX];
    return VB_NEXT(access)(redirect(path, out), mode);
}

/* open has a third argument with O_CREAT and O_TMPFILE only. */
#define MODE_OF(flags, mode)                                                                                           \
    mode_t mode = 0;                                                                                                   \
    if ((flags)&O_CREAT || ((flags)&O_TMPFILE) == O_TMPFILE) {                                                         \
        va_list ap;                                                                                                    \
        va_start(ap, flags);                                                                                           \
        mode = va_arg(ap, mode_t);                                                                                     \
        va_end(ap);                                                                                                    \
    }

/* openat() with redirection. */
static int open_at(int dir, const char *path, int flags, mode_t mode)
{
    char out[PATH_MAX];
    const char *to = redirect(path, out);
    if (to == out && !(flags & (O_DIRECTORY | O_PATH)) && vb_counter_is(path))
        return vb_counter_open(path, flags);
    if (to == cm_device && !(flags & O_PATH))
        return vb_rdma_cm_open(flags);
    return VB_NEXT(openat)(dir, to, flags, mode);
}

VB_EXPORT int open(const char *path, int flags, ...)
{
    MODE_OF(flags, mode)
    return open_at(AT_FDCWD, path, flags, mode);
}

VB_EXPORT int open64(const char *path, int flags, ...)
{
    MODE_OF(flags, mode)
    return open_at(AT_FDCWD, path, flags | O_LARGEFILE, mode);
}

/* grep opens the files of its command line with this. A name relative to dir goes to the kernel unchanged. */
VB_EXPORT int openat(int dir, const char *path, int flags, ...)
{
    MODE_OF(flags, mode)
    return open_at(dir, path, flags, mode);
}

VB_EXPORT int openat64(int dir, const char *path, int flags, ...)
{
    MODE_OF(flags, mode)
    return open_at(dir, path, flags | O_LARGEFILE, mode);
}

/* fopen() of the file of a counter. */
static FILE *open_counter(const char *path, const char *mode)
{
    int flags = mode[0] == 'r' && !strchr(mode, '+') ? O_RDONLY : O_RDWR;
    int fd = vb_counter_open(path, flags | (strchr(mode, 'e') ? O_CLOEXEC : 0));
    FILE *f = fd < 0 ? NULL : fdopen(fd, mode);
    if (fd >= 0 && !f)
        close(fd);
    return f;
}

VB_EXPORT FILE *fopen(const char *restrict path, const char *restrict mode)
{
    char out[PATH_MAX];
    const char *to = redirect(path, out);
    return to == out && vb_counter_is(path) ? open_counter(path, mode) : VB_NEXT(fopen)(to, mode);
}

VB_EXPORT FILE *fopen64(const char *restrict path, const char *restrict mode)
{
    char out[PATH_MAX];
    const char *to = redirect(path, out);
    return to == out && vb_counter_is(path) ? open_counter(path, mode) : VB_NEXT(fopen64)(to, mode);
}

/* realpath() with redirection. The result for an attribute is a path below /sys/class again, so that the program can
 * open it. (The directory of the daemon has no symbolic links, but the path to it may have some.) */
static char *real_name(const char *path, char *resolved)
{
    char out[PATH_MAX], root[PATH_MAX], real[PATH_MAX];
    if (redirect(path, out) != out)
        return VB_NEXT(realpath)(path, resolved);
    if (!VB_NEXT(realpath)(out, real) || !in_tree("", out) || !VB_NEXT(realpath)(out, root))
        return NULL;
    size_t len = strlen(root);
    if (strncmp(real, root, len) != 0) /* ".." leads out of the directory */
        return VB_NEXT(realpath)(real, resolved);
    snprintf(out, sizeof(out), "/sys/class%s", real + len);
    return resolved ? strcpy(resolved, out) : strdup(out);
}

VB_EXPORT char *realpath(const char *restrict path, char *restrict resolved)
{
    return real_name(path, resolved);
}

VB_EXPORT char *canonicalize_file_name(const char *path)
{
    return real_name(path, NULL);
}

/* Programs that were compiled with _FORTIFY_SOURCE call this. size is the size of resolved; the C library demands
 * PATH_MAX bytes. */
VB_EXPORT char *__realpath_chk(const char *path, char *resolved, size_t size)
{
    return size < PATH_MAX ? VB_NEXT(__realpath_chk)(path, resolved, size) : real_name(path, resolved);
}

VB_EXPORT ssize_t readlink(const char *restrict path, char *restrict buf, size_t len)
{
    char out[PATH_MAX];
    return VB_NEXT(readlink)(redirect(path, out), buf, len);
}

VB_EXPORT DIR *opendir(const char *path)
{
    char out[PATH_MAX];
    return VB_NEXT(opendir)(redirect(path, out));
}
