// SPDX-License-Identifier: BSD-2-Clause
#include "next.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Its callers always give the mode. */
static int early_openat(int dir, const char *path, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    mode_t mode = va_arg(ap, mode_t);
    va_end(ap);
    return (int)syscall(SYS_openat, dir, path, flags, mode);
}

struct vb_next vb_next = {.openat = early_openat};

/* What is there already stays if there is no such function. */
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
