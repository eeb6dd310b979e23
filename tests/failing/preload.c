// SPDX-License-Identifier: BSD-2-Clause
/* A library for LD_PRELOAD: the calls that failing.h describes fail, and return the error that the test has chosen. All
 * others go to the C library. With FAILING_TRACE in the environment, a call that fails prints where it was made.
 *
 * It names the allocation functions of glibc directly (__libc_malloc), because dlsym itself allocates. */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "tests/failing/failing.h"

static struct failing_page *page; /* NULL: nothing fails */
static bool trace;

__attribute__((constructor)) static void start(void)
{
    const char *path = getenv("FAILING_PAGE");
    int fd = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC) : -1;
    void *stack[2], *p;

    trace = getenv("FAILING_TRACE") != NULL;
    backtrace(stack, 2); /* loads what it needs */
    if (fd < 0)
        return;
    p = (void *)syscall(SYS_mmap, NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (p != MAP_FAILED)
        page = p;
}

/* Counts a call of the kind. True if it fails; errno is set then. */
static bool fails(enum failing_kind kind)
{
    if (!page || atomic_load(&page->kind) != kind)
        return false;
    int64_t n = atomic_fetch_add(&page->calls, 1) + 1;
    if (n < atomic_load(&page->first) || n > atomic_load(&page->last))
        return false;
    atomic_fetch_add(&page->failed, 1);
    if (trace) {
        static _Thread_local bool inside;
        void *stack[24];

        if (!inside) {
            inside = true;
            backtrace_symbols_fd(stack, backtrace(stack, 24), STDERR_FILENO);
            inside = false;
        }
    }
    errno = atomic_load(&page->error);
    return true;
}

static void count_blocks(int by)
{
    if (page)
        atomic_fetch_add_explicit(&page->blocks, by, memory_order_relaxed);
}

/* Finds the function of the C library once. */
#define REAL(name)                                                                                                     \
    static __typeof__(&name) real;                                                                                     \
    if (!real)                                                                                                         \
    real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

/* --- memory ------------------------------------------------------------------------------------ */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t align, size_t size);
void __libc_free(void *p);

static void *counted(void *p)
{
    count_blocks(p != NULL);
    return p;
}

void *malloc(size_t size)
{
    return fails(FAILING_MALLOC) ? NULL : counted(__libc_malloc(size));
}

void *calloc(size_t n, size_t size)
{
    return fails(FAILING_MALLOC) ? NULL : counted(__libc_calloc(n, size));
}

void *realloc(void *p, size_t size)
{
    if (fails(FAILING_MALLOC))
        return NULL;
    void *q = __libc_realloc(p, size);
    count_blocks((!p && q) - (p && !q && !size));
    return q;
}

void *aligned_alloc(size_t align, size_t size)
{
    return fails(FAILING_MALLOC) ? NULL : counted(__libc_memalign(align, size));
}

int posix_memalign(void **out, size_t align, size_t size)
{
    if (fails(FAILING_MALLOC))
        return errno;
    void *p = counted(__libc_memalign(align, size));
    *out = p ? p : *out;
    return p ? 0 : ENOMEM;
}

void free(void *p)
{
    count_blocks(p ? -1 : 0);
    __libc_free(p);
}

void *mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset)
{
    REAL(mmap);
    return fails(FAILING_MMAP) ? MAP_FAILED : real(at, size, prot, flags, fd, offset);
}

/* --- descriptors ------------------------------------------------------------------------------- */

int memfd_create(const char *name, unsigned flags)
{
    REAL(memfd_create);
    return fails(FAILING_MEMFD) || fails(FAILING_DESCRIPTOR) ? -1 : real(name, flags);
}

int ftruncate(int fd, off_t length)
{
    REAL(ftruncate);
    return fails(FAILING_MEMFD) ? -1 : real(fd, length);
}

int eventfd(unsigned count, int flags)
{
    REAL(eventfd);
    return fails(FAILING_DESCRIPTOR) ? -1 : real(count, flags);
}

int timerfd_create(int clock, int flags)
{
    REAL(timerfd_create);
    return fails(FAILING_DESCRIPTOR) ? -1 : real(clock, flags);
}

int pipe2(int fds[2], int flags)
{
    REAL(pipe2);
    return fails(FAILING_DESCRIPTOR) ? -1 : real(fds, flags);
}

int open(const char *path, int flags, ...)
{
    va_list ap;

    REAL(open);
    va_start(ap, flags);
    mode_t mode = va_arg(ap, mode_t);
    va_end(ap);
    return fails(FAILING_DESCRIPTOR) ? -1 : real(path, flags, mode);
}

FILE *fopen(const char *path, const char *mode)
{
    REAL(fopen);
    return fails(FAILING_DESCRIPTOR) ? NULL : real(path, mode);
}

int fcntl(int fd, int op, ...)
{
    va_list ap;

    REAL(fcntl);
    va_start(ap, op);
    void *arg = va_arg(ap, void *);
    va_end(ap);
    return (op == F_DUPFD_CLOEXEC || op == F_DUPFD) && fails(FAILING_DESCRIPTOR) ? -1 : real(fd, op, arg);
}

int epoll_create1(int flags)
{
    REAL(epoll_create1);
    return fails(FAILING_DESCRIPTOR) ? -1 : real(flags);
}

/* --- sockets ----------------------------------------------------------------------------------- */

int socket(int family, int type, int protocol)
{
    REAL(socket);
    return fails(FAILING_SOCKET) || fails(FAILING_DESCRIPTOR) ? -1 : real(family, type, protocol);
}

int bind(int fd, const struct sockaddr *addr, socklen_t len)
{
    REAL(bind);
    return fails(FAILING_SOCKET) ? -1 : real(fd, addr, len);
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
    REAL(setsockopt);
    return fails(FAILING_SOCKET) ? -1 : real(fd, level, name, value, len);
}

int getsockopt(int fd, int level, int name, void *restrict value, socklen_t *restrict len)
{
    REAL(getsockopt);
    return fails(FAILING_SOCKET) ? -1 : real(fd, level, name, value, len);
}

int accept4(int fd, struct sockaddr *restrict addr, socklen_t *restrict len, int flags)
{
    REAL(accept4);
    return fails(FAILING_SOCKET) || fails(FAILING_DESCRIPTOR) ? -1 : real(fd, addr, len, flags);
}

ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
    REAL(sendmsg);
    return fails(FAILING_SEND) ? -1 : real(fd, m, flags);
}

int sendmmsg(int fd, struct mmsghdr *m, unsigned n, int flags)
{
    REAL(sendmmsg);
    return fails(FAILING_SEND) ? -1 : real(fd, m, n, flags);
}

ssize_t sendto(int fd, const void *p, size_t n, int flags, const struct sockaddr *to, socklen_t len)
{
    REAL(sendto);
    return fails(FAILING_SEND) ? -1 : real(fd, p, n, flags, to, len);
}

ssize_t recvmsg(int fd, struct msghdr *m, int flags)
{
    REAL(recvmsg);
    return fails(FAILING_RECEIVE) ? -1 : real(fd, m, flags);
}

int recvmmsg(int fd, struct mmsghdr *m, unsigned n, int flags, struct timespec *timeout)
{
    REAL(recvmmsg);
    return fails(FAILING_RECEIVE) ? -1 : real(fd, m, n, flags, timeout);
}

/* --- waiting and writing ----------------------------------------------------------------------- */

int epoll_ctl(int ep, int op, int fd, struct epoll_event *e)
{
    REAL(epoll_ctl);
    return op != EPOLL_CTL_DEL && fails(FAILING_EPOLL_CTL) ? -1 : real(ep, op, fd, e);
}

int epoll_wait(int ep, struct epoll_event *e, int n, int timeout)
{
    REAL(epoll_wait);
    return fails(FAILING_WAIT) ? -1 : real(ep, e, n, timeout);
}

int poll(struct pollfd *p, nfds_t n, int timeout)
{
    REAL(poll);
    return fails(FAILING_WAIT) ? -1 : real(p, n, timeout);
}

ssize_t write(int fd, const void *p, size_t n)
{
    struct stat st;

    REAL(write);
    /* Writing to an eventfd needs no memory, so it does not fail. */
    if (fd != STDERR_FILENO && fstat(fd, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISREG(st.st_mode)) &&
        fails(FAILING_WRITE))
        return -1;
    return real(fd, p, n);
}
