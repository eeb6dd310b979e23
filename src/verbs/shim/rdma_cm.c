// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/shim/rdma_cm.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "src/verbs/base/api.h"
#include "src/verbs/base/cancel.h"
#include "src/verbs/cm/cm_channel.h"
#include "src/verbs/cm/cm_command.h"
#include "src/verbs/cm/cm_descriptor.h"
#include "src/verbs/cm/cm_lock.h"
#include "src/verbs/shim/libc_next.h"

/* --- opening ---------------------------------------------------------------------------------- */
static void explain(const struct vb_cm_refusal *r, int rc)
{
    static atomic_flag given = ATOMIC_FLAG_INIT;
    if (atomic_flag_test_and_set(&given))
        return;
    if (rc == -EDQUOT)
        fprintf(stderr, "pumice: rdma_cm (connection management): the daemon at %s refuses a connection: %s\n", r->path,
                r->why);
    else
        fprintf(stderr,
                "pumice: rdma_cm (connection management) is not available: the daemon at %s does not offer it%s%s. Use "
                "`pumice run` and the library of one installation.\n",
                r->path, r->why[0] ? ": " : "", r->why);
}

static int open_channel(int flags)
{
    struct vb_cm_channel *ch;
    struct vb_cm_refusal refusal = {.why = ""};
    int fd;
    int rc = vb_cm_channel_create(&ch, &fd, &refusal);
    if (rc == -EPROTONOSUPPORT || (rc == -EDQUOT && refusal.why[0]))
        explain(&refusal, rc);
    if (rc)
        return rc == -EPROTONOSUPPORT || rc == -ENOTCONN ? -ENOENT : rc;
    if (!(flags & O_CLOEXEC))
        VB_NEXT(fcntl)(fd, F_SETFD, NULL);
    if (flags & O_NONBLOCK)
        VB_NEXT(fcntl)(fd, F_SETFL, (void *)O_NONBLOCK);
    rc = vb_cm_mark(fd, ch);
    if (rc)
        vb_close(fd);
    vb_cm_channel_release(ch);
    return rc ? rc : fd;
}

int vb_rdma_cm_open(int flags)
{
    int was = vb_cancel_off();
    int fd = open_channel(flags);
    vb_cancel_restore(was);
    if (fd >= 0)
        return fd;
    errno = -fd;
    return -1;
}

/* --- the state of a descriptor ----------------------------------------------------------------- */
/* The number of the device. If the kernel has connection management, too, librdmacm asks it for the number, and expects
 * that number here. Otherwise it is that of /dev/null, which stands for all device files of Pumice. */
static dev_t number;

static void find_number(void)
{
    char text[24];
    unsigned high, low;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, "/sys/class/misc/rdma_cm/dev", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : syscall(SYS_read, fd, text, sizeof(text) - 1);
    if (fd >= 0)
        vb_close(fd);
    text[n > 0 ? n : 0] = 0;
    number = sscanf(text, "%u:%u", &high, &low) == 2 ? makedev(high, low) : makedev(1, 3);
}

static dev_t device_number(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_number);
    return number;
}

#define DEVICE_MODE (S_IFCHR | 0666)

/* Changes a struct stat or stat64. */
#define MAKE_DEVICE(fd, st)                                                                                            \
    do {                                                                                                               \
        if (vb_cm_is_channel(fd)) {                                                                                    \
            (st)->st_mode = DEVICE_MODE;                                                                               \
            (st)->st_rdev = device_number();                                                                           \
        }                                                                                                              \
    } while (0)

void vb_rdma_cm_statx(int fd, struct statx *st)
{
    if (vb_cm_marked(fd) && vb_cm_is_channel(fd)) {
        st->stx_mode = DEVICE_MODE;
        st->stx_rdev_major = major(device_number());
        st->stx_rdev_minor = minor(device_number());
    }
}

/* The functions for old programs do not call the exported ones: another library may replace those by calling the
 * former (ThreadSanitizer does). */
static int file_state(int fd, struct stat *st)
{
    int rc = VB_NEXT(fstat)(fd, st);
    if (vb_cm_marked(fd) && rc == 0)
        MAKE_DEVICE(fd, st);
    return rc;
}

static int file_state64(int fd, struct stat64 *st)
{
    int rc = VB_NEXT(fstat64)(fd, st);
    if (vb_cm_marked(fd) && rc == 0)
        MAKE_DEVICE(fd, st);
    return rc;
}

VB_EXPORT int fstat(int fd, struct stat *st)
{
    return file_state(fd, st);
}

VB_EXPORT int fstat64(int fd, struct stat64 *st)
{
    return file_state64(fd, st);
}

VB_EXPORT int __fxstat(int version, int fd, struct stat *st)
{
    (void)version;
    return file_state(fd, st);
}

VB_EXPORT int __fxstat64(int version, int fd, struct stat64 *st)
{
    (void)version;
    return file_state64(fd, st);
}

VB_EXPORT int fstatat(int dir, const char *restrict path, struct stat *restrict st, int flags)
{
    int rc = VB_NEXT(fstatat)(dir, path, st, flags);
    if (rc == 0 && flags & AT_EMPTY_PATH && vb_cm_marked(dir))
        MAKE_DEVICE(dir, st);
    return rc;
}

VB_EXPORT int fstatat64(int dir, const char *restrict path, struct stat64 *restrict st, int flags)
{
    int rc = VB_NEXT(fstatat64)(dir, path, st, flags);
    if (rc == 0 && flags & AT_EMPTY_PATH && vb_cm_marked(dir))
        MAKE_DEVICE(dir, st);
    return rc;
}

/* --- commands ---------------------------------------------------------------------------------- */
static void release(void *channel)
{
    vb_cm_channel_release(channel);
}

static ssize_t write_command(int fd, struct vb_cm_channel *ch, const void *buf, size_t len)
{
    ssize_t rc;
    pthread_cleanup_push(release, ch);
    rc = vb_cm_write(fd, ch, buf, len);
    pthread_cleanup_pop(1);
    if (rc >= 0)
        return rc;
    errno = (int)-rc;
    return -1;
}

VB_EXPORT ssize_t write(int fd, const void *buf, size_t len)
{
    struct vb_cm_channel *ch = vb_cm_marked(fd) && vb_cm_is_owner() ? vb_cm_channel_at(fd) : NULL;
    return ch ? write_command(fd, ch, buf, len) : VB_NEXT(write)(fd, buf, len);
}

/* --- descriptors that end or appear ------------------------------------------------------------ */
/* Between vfork and exec, the marks are those of the parent, and stay as they are. */
static inline bool is_channel(int fd)
{
    return vb_cm_marked(fd) && vb_cm_is_owner();
}

/* The descriptor has ended, so that its channel may end, too. errno is kept. */
static void closed(struct vb_cm_channel *ch)
{
    int e = errno, was = vb_cancel_off();
    vb_cm_closed(ch);
    vb_cancel_restore(was);
    errno = e;
}

VB_EXPORT int close(int fd)
{
    struct vb_cm_channel *ch = is_channel(fd) ? vb_cm_unmark(fd) : NULL;
    if (!ch)
        return VB_NEXT(close)(fd);
    int rc = VB_NEXT(close)(fd);
    closed(ch);
    return rc;
}

/* Marks the new descriptor to, a duplicate of a channel. to < 0: there is none. Takes the reference to the channel. */
static int duplicated(int to, struct vb_cm_channel *ch)
{
    int e = errno;
    if (to >= 0 && vb_cm_mark(to, ch) != 0) {
        vb_close(to);
        to = -1;
        e = EMFILE;
    }
    vb_cm_channel_release(ch);
    errno = e;
    return to;
}

VB_EXPORT int dup(int fd)
{
    struct vb_cm_channel *ch = is_channel(fd) ? vb_cm_channel_at(fd) : NULL;
    int to = VB_NEXT(dup)(fd);
    return ch ? duplicated(to, ch) : to;
}

/* dup2, or dup3 with flags. One of both descriptors is a channel. */
static int replace(int fd, int to, int flags, bool is_dup2)
{
    struct vb_cm_channel *ch = is_channel(fd) ? vb_cm_channel_at(fd) : NULL;
    struct vb_cm_channel *old = fd != to && is_channel(to) ? vb_cm_unmark(to) : NULL;
    int rc = is_dup2 ? VB_NEXT(dup2)(fd, to) : VB_NEXT(dup3)(fd, to, flags);
    if (rc < 0 && old)
        vb_cm_mark(to, old);
    if (old)
        closed(old);
    return ch ? duplicated(rc, ch) : rc;
}

VB_EXPORT int dup2(int fd, int to)
{
    return is_channel(fd) || is_channel(to) ? replace(fd, to, 0, true) : VB_NEXT(dup2)(fd, to);
}

VB_EXPORT int dup3(int fd, int to, int flags)
{
    return is_channel(fd) || is_channel(to) ? replace(fd, to, flags, false) : VB_NEXT(dup3)(fd, to, flags);
}

typedef int fcntl_function(int fd, int cmd, ...);

/* The device is open for reading and writing, but its pipe is not. */
static int channel_fcntl(fcntl_function *next, int fd, int cmd, void *arg)
{
    struct vb_cm_channel *ch = vb_cm_channel_at(fd);
    int rc = next(fd, cmd, arg);
    if (!ch)
        return rc;
    if (cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC)
        return duplicated(rc, ch);
    vb_cm_channel_release(ch);
    return cmd == F_GETFL && rc >= 0 ? (rc & ~O_ACCMODE) | O_RDWR : rc;
}

/* As in the C library: the third argument is read for each command. */
#define ARGUMENT(cmd, arg)                                                                                             \
    va_list ap;                                                                                                        \
    va_start(ap, cmd);                                                                                                 \
    void *arg = va_arg(ap, void *);                                                                                    \
    va_end(ap)

VB_EXPORT int fcntl(int fd, int cmd, ...)
{
    ARGUMENT(cmd, arg);
    fcntl_function *next = VB_NEXT(fcntl);
    return is_channel(fd) ? channel_fcntl(next, fd, cmd, arg) : next(fd, cmd, arg);
}

VB_EXPORT int fcntl64(int fd, int cmd, ...)
{
    ARGUMENT(cmd, arg);
    fcntl_function *next = VB_NEXT(fcntl64);
    return is_channel(fd) ? channel_fcntl(next, fd, cmd, arg) : next(fd, cmd, arg);
}
