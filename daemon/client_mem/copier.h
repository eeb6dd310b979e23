// SPDX-License-Identifier: BSD-2-Clause
/* Copies between the buffers of a device and the memory of its clients, by system calls that may never return: a page of
 * a client can come from a FUSE server that is silent, from a dead NFS server, or from a userfaultfd. When a copy lasts
 * too long, another kernel thread continues the device (threads/takeover.h), and the copy counts as failed.
 *
 * The kernel may finish a lost copy at any later time. It would then write the client's bytes over the packets of others,
 * or show the client the packets of others. So all copies go through a window: a second mapping of the device's buffers,
 * at other addresses. When a copy is lost, its window is made inaccessible for ever, and the later copies use another
 * one. An access by the lost copy is then an error of the lost copy.
 *
 * The buffers are for everything that is copied often. Other memory, such as a variable on the stack, is copied through a
 * part of the buffers. */
#ifndef PUMICE_DAEMON_CLIENT_MEM_COPIER_H
#define PUMICE_DAEMON_CLIENT_MEM_COPIER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define COPIER_IOVS IOV_MAX /* the most entries of a list */
#define COPIER_DETOUR_BYTES (64u << 10) /* the most bytes of one copy that lie outside of the buffers */

struct takeover;

/* The memory of a process, as the copy reaches it. */
struct copier_target {
    int fd; /* of /proc/PID/mem; -1: by process_vm_readv and process_vm_writev */
    int pid;
    int maps_fd; /* of /proc/PID/maps; -1: none */
    unsigned limit_ms; /* how long one system call may last */
    /* How long it may last while it waits for the lock of the mappings. Not less than limit_ms. */
    unsigned lock_limit_ms;
};

enum copier_loss {
    COPIER_LOST_COPY, /* a copy */
    COPIER_LOST_SERVED_COPY, /* a copy that had less time, because its pages come from a server (served_memory.h) */
    COPIER_LOST_CALL, /* a call of copier_call */
};

#define COPIER_FUNCTION_MAX 48u /* bytes of its name that are kept, with the 0 */

struct copier {
    struct takeover *thread; /* makes the calls; NULL: the calling thread makes them, without a limit */
    uint8_t *buffers; /* NULL: none; then `thread` is NULL, too */
    uint8_t *window, *spare; /* mappings of the buffers; spare NULL: not prepared yet */
    size_t size, used; /* bytes of the buffers */
    uint8_t *detour; /* in the buffers */
    uint32_t lost; /* copies that were lost so far */
    /* The latest of them. */
    struct {
        enum copier_loss what;
        char waits_in[COPIER_FUNCTION_MAX]; /* the function of the kernel in which the call slept; "": not known */
        unsigned limit_ms; /* which the call exceeded */
    } loss;
    /* The copy under way, for the watching thread. remote NULL: another call. */
    struct {
        int maps_fd;
        const struct iovec *remote;
        unsigned n;
        unsigned limit_ms, lock_limit_ms;
        /* Written by the watching thread. */
        bool served; /* its pages come from a server */
        char waits_in[COPIER_FUNCTION_MAX]; /* as in `loss` */
    } now;
};

/* Makes the buffers, with `size` bytes for copier_alloc. 0 or -ENOMEM. */
int copier_init(struct copier *c, size_t size);
void copier_fini(struct copier *c);

/* Returns zeroed memory in the buffers, aligned to a page. It is freed by copier_fini. NULL: copier_init was told a
 * smaller size. */
void *copier_alloc(struct copier *c, size_t size);

/* For the operations `may_last`, `prepare` and `replaced` of threads/takeover.h. A copy may last until its limit, unless its
 * pages come from a server: of a file system, or of a userfaultfd. (While the copy waits for the lock of the mappings, it
 * waits for no page. To read the mappings would need the same lock.) */
bool copier_may_last(struct copier *c, const char *waits_in);
bool copier_prepare(struct copier *c);
void copier_replaced(struct copier *c);

/* For the operation `may_go_on`: a copy that waits for the lock of the mappings may last for lock_limit_ms. */
bool copier_may_go_on(struct copier *c, const char *waits_in, uint64_t slept_ns);
/* Was the latest loss a copy that waited for that lock? */
bool copier_lost_by_lock(const struct copier *c);
/* Does a copy that sleeps in this function of the kernel wait for the lock of the mappings? Most kernels do not name the
 * function of the lock, but the one that calls it. A copy that waits for a page is in another function. */
bool copier_waits_for_lock(const char *function);

/* Copy between local[0 … nlocal) and remote[0 … nremote) of the target, up to the end of the shorter list. Each has at
 * most COPIER_IOVS entries. c NULL: the calling thread copies, without a limit.
 *
 * They return the bytes copied before the first one that could not be copied, or -errno if that is the very first.
 * -ETIMEDOUT: the copy is lost. It may have copied some of the bytes. A short result has no error: the next copy, which
 * starts there, says the reason. */
int64_t copier_read(struct copier *c, const struct copier_target *from, const struct iovec *local, unsigned nlocal,
                    const struct iovec *remote, unsigned nremote);
int64_t copier_write(struct copier *c, const struct copier_target *to, const struct iovec *local, unsigned nlocal,
                     const struct iovec *remote, unsigned nremote);

/* Makes another system call that may wait for a client, in the same way. The memory that its arguments name must belong
 * to the window: the lost call can't reach it later. c NULL: the calling thread makes the call, without a limit. */
long copier_call(struct copier *c, unsigned limit_ms, long nr, const long a[6]);
/* Returns COPIER_DETOUR_BYTES bytes of the buffers for the arguments of such a call. They are free until the next copy.
 * NULL: such calls are not guarded, and may use any memory. */
uint8_t *copier_detour(const struct copier *c);
/* The address of p, which is in the buffers, for an argument of such a call. */
void *copier_seen_by_kernel(const struct copier *c, const void *p);

#endif
