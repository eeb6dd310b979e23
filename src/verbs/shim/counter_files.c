// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/shim/counter_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pumice/abi.h"
#include "src/verbs/base/api.h"
#include "src/verbs/session/session.h"
#include "src/verbs/session/session_path.h"
#include "src/verbs/shim/libc_next.h"

#define SYS "/sys/class/"
#define MEMFD "/memfd:" /* prefix of the name of a memory file in /proc/self/fd */
#define CLASS "infiniband/"
#define PORT "/ports/1/"
#define LEN(text) (sizeof(text) - 1)

/* Splits "infiniband/DEVICE/ports/1/counters/NAME" into its parts. A blank also ends NAME. Returns false if the name
 * has another form. */
static bool parse(const char *name, struct pm_counter_req *rq)
{
    if (strncmp(name, CLASS, LEN(CLASS)) != 0)
        return false;
    const char *device = name + LEN(CLASS);
    size_t device_len = strcspn(device, "/");
    if (device_len == 0 || device_len >= sizeof(rq->device) || strncmp(device + device_len, PORT, LEN(PORT)) != 0)
        return false;
    const char *file = device + device_len + LEN(PORT);
    size_t dir_len = strcspn(file, "/"), file_len = strcspn(file, " ");
    if (strncmp(file, "counters/", dir_len + 1) != 0 && strncmp(file, "hw_counters/", dir_len + 1) != 0)
        return false;
    if (file_len <= dir_len + 1 || file_len >= sizeof(rq->file) ||
        memchr(file + dir_len + 1, '/', file_len - dir_len - 1))
        return false;
    memset(rq, 0, sizeof(*rq));
    memcpy(rq->device, device, device_len);
    memcpy(rq->file, file, file_len);
    return true;
}

/* Asks the daemon for the value, on a new connection. So it needs no open device, and it works in a forked child,
 * too. */
static bool ask(const struct pm_counter_req *rq, uint64_t *value)
{
    char path[256];
    struct vb_session s;
    struct pm_counter_rep rep = {0};
    struct vb_call call = {.op = PM_OP_COUNTER, .req = rq, .req_len = sizeof(*rq), .rep = &rep, .rep_len = sizeof(rep)};
    if (vb_session_path(path, sizeof(path)) != 0 || vb_session_connect(&s, path) != 0)
        return false;
    int rc = vb_session_call(&s, &call);
    vb_session_close(&s);
    *value = rep.value;
    return rc == 0;
}

/* Asks for the value, and makes it the text of the file at fd. Returns false if the daemon did not answer. */
static bool compose(int fd, const struct pm_counter_req *rq)
{
    char text[24];
    uint64_t value;
    if (!ask(rq, &value))
        return false;
    int n = snprintf(text, sizeof(text), "%" PRIu64 "\n", value);
    return pwrite(fd, text, (size_t)n, 0) == n && ftruncate(fd, n) == 0;
}

/* --- opening ---------------------------------------------------------------------------------- */
/* The descriptors that open returned for counters are marked. A marked descriptor may be another file by now. A
 * descriptor of MARKED_MAX or more, and a duplicate, shows the value of the last read through a marked descriptor. */
#define MARKED_MAX 1024
static _Atomic bool marked[MARKED_MAX];

bool vb_counter_is(const char *path)
{
    struct pm_counter_req rq;
    return strncmp(path, SYS, LEN(SYS)) == 0 && !strchr(path, ' ') && parse(path + LEN(SYS), &rq);
}

int vb_counter_open(const char *path, int flags)
{
    struct pm_counter_req rq;
    if ((flags & O_ACCMODE) != O_RDONLY || !parse(path + LEN(SYS), &rq)) {
        errno = EACCES;
        return -1;
    }
    int fd = memfd_create(path + LEN(SYS), flags & O_CLOEXEC ? MFD_CLOEXEC : 0);
    if (fd < 0)
        return -1;
    if (fchmod(fd, 0444) != 0 || !compose(fd, &rq)) {
        close(fd);
        errno = ENODEV;
        return -1;
    }
    if (fd < MARKED_MAX)
        atomic_store_explicit(&marked[fd], true, memory_order_relaxed);
    return fd;
}

/* --- reading ---------------------------------------------------------------------------------- */
static inline bool is_marked(int fd)
{
    return (unsigned)fd < MARKED_MAX && atomic_load_explicit(&marked[fd], memory_order_relaxed);
}

/* Is the file at fd a counter? Fills rq if so. */
static bool at_counter(int fd, struct pm_counter_req *rq)
{
    char link[32], name[256];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlinkat(AT_FDCWD, link, name, sizeof(name) - 1);
    name[n < 0 ? 0 : n] = 0;
    return strncmp(name, MEMFD, LEN(MEMFD)) == 0 && parse(name + LEN(MEMFD), rq);
}

/* Writes the current value into the file of a counter. While the daemon answers, another thread may close fd, and the
 * program may open a file of its own with that number. So this function checks and writes a duplicate of fd. */
static bool compose_again(int fd)
{
    struct pm_counter_req rq;
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own < 0)
        return errno == EBADF; /* closed meanwhile: the read reports it */
    bool composed = !at_counter(own, &rq) || compose(own, &rq);
    close(own);
    return composed;
}

/* Prepares a read of a marked descriptor. at is the offset of the read; -1: the current offset of the descriptor.
 * Returns false with errno ENODEV if the daemon is gone. Closing any descriptor of a file ends the locks of the process
 * on that file. So the function duplicates a descriptor only if the file seems to be a counter. */
static bool refresh(int fd, off_t at)
{
    struct pm_counter_req rq;
    int e = errno;
    if (!at_counter(fd, &rq)) /* another file by now */
        atomic_store_explicit(&marked[fd], false, memory_order_relaxed);
    else if ((at < 0 ? lseek(fd, 0, SEEK_CUR) : at) == 0 && !compose_again(fd)) {
        errno = ENODEV;
        return false;
    }
    errno = e;
    return true;
}

/* These functions replace those of the C library. For a descriptor that is no counter they cost two loads. They make
 * the very system call that the program asked for, because a filter may allow no other. The C library reads a stream
 * without them, so a stream shows the value of the time when it was opened. */
VB_EXPORT ssize_t read(int fd, void *buf, size_t len)
{
    if (is_marked(fd) && !refresh(fd, -1))
        return -1;
    return VB_NEXT(read)(fd, buf, len);
}

VB_EXPORT ssize_t pread(int fd, void *buf, size_t len, off_t at)
{
    if (is_marked(fd) && !refresh(fd, at))
        return -1;
    return VB_NEXT(pread)(fd, buf, len, at);
}

VB_EXPORT ssize_t pread64(int fd, void *buf, size_t len, off64_t at)
{
    if (is_marked(fd) && !refresh(fd, at))
        return -1;
    return VB_NEXT(pread64)(fd, buf, len, at);
}

/* Programs that were compiled with _FORTIFY_SOURCE call these if the compiler does not know len. size is the size of
 * buf. No header declares them. */
_Noreturn void __chk_fail(void); /* ends the program */
ssize_t __read_chk(int fd, void *buf, size_t len, size_t size);
ssize_t __pread_chk(int fd, void *buf, size_t len, off_t at, size_t size);
ssize_t __pread64_chk(int fd, void *buf, size_t len, off64_t at, size_t size);

VB_EXPORT ssize_t __read_chk(int fd, void *buf, size_t len, size_t size)
{
    if (len > size)
        __chk_fail();
    return read(fd, buf, len);
}

VB_EXPORT ssize_t __pread_chk(int fd, void *buf, size_t len, off_t at, size_t size)
{
    if (len > size)
        __chk_fail();
    return pread(fd, buf, len, at);
}

VB_EXPORT ssize_t __pread64_chk(int fd, void *buf, size_t len, off64_t at, size_t size)
{
    if (len > size)
        __chk_fail();
    return pread64(fd, buf, len, at);
}
