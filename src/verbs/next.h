// SPDX-License-Identifier: BSD-2-Clause
/* The function that would be called if this library did not stand in for it: libc's, or that of another library that stands in, too.
 * Each place remembers what it has found. */
#ifndef VERBS_NEXT_H
#define VERBS_NEXT_H

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

static inline void *vb_next(void *_Atomic *found, const char *name)
{
    void *symbol = atomic_load_explicit(found, memory_order_relaxed);
    if (!symbol) {
        symbol = dlsym(RTLD_NEXT, name);
        atomic_store_explicit(found, symbol, memory_order_relaxed);
    }
    return symbol;
}

#define VB_NEXT(function)                                                                                              \
    ({                                                                                                                 \
        static void *_Atomic vb_found_;                                                                                \
        void *vb_symbol_ = vb_next(&vb_found_, #function);                                                             \
        __typeof__(&function) vb_function_;                                                                            \
        memcpy(&vb_function_, &vb_symbol_, sizeof(vb_function_));                                                      \
        vb_function_;                                                                                                  \
    })

#endif
