// SPDX-License-Identifier: BSD-2-Clause
/* The functions of the verbs library that the checker stands before. */
#ifndef PUMICE_SRC_CHECK_BASE_NEXT_H
#define PUMICE_SRC_CHECK_BASE_NEXT_H

#include <stdbool.h>

/* Is there a function of this name behind the checker? */
bool next_has(const char *name);
/* The function of this name behind the checker. Without one, the process ends with a message: the program is not linked with a
 * verbs library. */
void *next_find(const char *name);

/* Calls the next function of the same name as the present one. */
#define NEXT(function, ...)                                                                                            \
    __extension__({                                                                                                    \
        static __typeof__(&function) next_##function;                                                                  \
        if (!next_##function)                                                                                          \
            next_##function = (__typeof__(&function))next_find(#function);                                             \
        next_##function(__VA_ARGS__);                                                                                  \
    })

/* For functions of the C library: the program may call them anywhere, also while another thread holds the lock of the loader. So the
 * next one is looked for when the checker is loaded. LIBC_FIND belongs into the file that uses LIBC_NEXT. */
#define LIBC_FIND(function)                                                                                            \
    static __typeof__(&function) libc_##function;                                                                      \
    __attribute__((constructor)) static void find_##function(void)                                                     \
    {                                                                                                                  \
        if (!libc_##function)                                                                                          \
            libc_##function = (__typeof__(&function))next_find(#function);                                             \
    }
#define LIBC_NEXT(function, ...) (find_##function(), libc_##function(__VA_ARGS__))

#endif
