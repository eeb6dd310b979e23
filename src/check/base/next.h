// SPDX-License-Identifier: BSD-2-Clause
/* The functions of the verbs library that the checker stands before. */
#ifndef PUMICE_SRC_CHECK_BASE_NEXT_H
#define PUMICE_SRC_CHECK_BASE_NEXT_H

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

#endif
