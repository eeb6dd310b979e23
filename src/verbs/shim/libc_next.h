// SPDX-License-Identifier: BSD-2-Clause
/* The functions that would be called if this library did not stand in for them: libc's, or those of another library that stands in, too.
 *
 * dlsym finds them, which takes locks and may allocate; but some of these functions may be called in a signal handler, or between vfork
 * and exec. So a constructor finds all of them. Other libraries' constructors may come before it: until then those functions are system
 * calls of ours (libc's are cancellation points, too, but nobody cancels a thread that early), and the others are looked up when they are called. */
#ifndef PUMICE_SRC_VERBS_SHIM_LIBC_NEXT_H
#define PUMICE_SRC_VERBS_SHIM_LIBC_NEXT_H

#include <dirent.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

char *__realpath_chk(const char *path, char *resolved, size_t size); /* no header has it */

// clang-format off
#define VB_NEXT_FUNCTIONS(X) \
    X(openat) X(access) X(readlink) X(statx) X(read) X(pread) X(pread64) /* anywhere and at any time */ \
    X(opendir) X(fopen) X(fopen64) X(realpath) X(__realpath_chk) X(mallopt)
// clang-format on

struct vb_next {
#define VB_NEXT_FIELD(function) __typeof__(&function) _Atomic function;
    VB_NEXT_FUNCTIONS(VB_NEXT_FIELD)
#undef VB_NEXT_FIELD
};
extern struct vb_next vb_next;

/* Finds them all; any number of times. */
void vb_next_find(void);

/* What comes next after this library's function of that name. */
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
