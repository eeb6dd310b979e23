// SPDX-License-Identifier: BSD-2-Clause
/* The functions of the C library that this library replaces. Each entry of a table is the next function of that name:
 * the one of the C library, or of another library that replaces it, too.
 *
 * dlsym finds these functions. It takes locks and may allocate memory, but some of the functions may be called in a
 * signal handler, or between vfork and exec. So a constructor finds all of them. Constructors of other libraries may
 * run earlier. Until this constructor runs, the entries of the functions that must always work point to functions of
 * this module. They make the system call themselves. dlsym finds the other functions when they are called. (The
 * functions of this module are no cancellation points. That makes no difference, since no thread is cancelled that
 * early.) */
#ifndef PUMICE_SRC_VERBS_SHIM_LIBC_NEXT_H
#define PUMICE_SRC_VERBS_SHIM_LIBC_NEXT_H

#include <dirent.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

char *__realpath_chk(const char *path, char *resolved, size_t size); /* no header declares it */

// clang-format off
#define VB_NEXT_FUNCTIONS(X) \
    /* these must always work */ \
    X(openat) X(access) X(readlink) X(statx) X(fstat) X(fstat64) X(fstatat) X(fstatat64) X(read) X(pread) X(pread64) \
    X(write) X(close) X(dup) X(dup2) X(dup3) X(fcntl) X(fcntl64) \
    /* these may be looked up */ \
    X(opendir) X(fopen) X(fopen64) X(realpath) X(__realpath_chk) X(mallopt) X(getifaddrs) X(freeifaddrs) \
    X(connect)
// clang-format on

struct vb_next {
#define VB_NEXT_FIELD(function) __typeof__(&function) _Atomic function;
    VB_NEXT_FUNCTIONS(VB_NEXT_FIELD)
#undef VB_NEXT_FIELD
};
extern struct vb_next vb_next;

/* Finds all functions. It may be called any number of times. */
void vb_next_find(void);

/* The next function of that name after the one of this library. */
#define VB_NEXT(function)                                                                                              \
    ({                                                                                                                 \
        __typeof__(&function) vb_next_ = atomic_load_explicit(&vb_next.function, memory_order_relaxed);                \
        if (!vb_next_) {                                                                                               \
            vb_next_find();                                                                                            \
            vb_next_ = atomic_load_explicit(&vb_next.function, memory_order_relaxed);                                  \
        }                                                                                                              \
        vb_next_;                                                                                                      \
    })

#endif
