// SPDX-License-Identifier: BSD-2-Clause
/* Exported functions that only fail. Some programs and libraries can't be loaded without these symbols, but hardly ever
 * call them. compat.c uses these macros for the first ABI, private.c for the interface to rdma-core's provider
 * libraries, and unsupported.c for public functions that Pumice does not implement.
 *
 * Each macro defines one function. The function has no parameters, because it needs none. Callers may pass any
 * arguments. */
#ifndef PUMICE_SRC_VERBS_ABI_STUBS_H
#define PUMICE_SRC_VERBS_ABI_STUBS_H

#include "src/verbs/base/api.h"

/* Returns EOPNOTSUPP and sets errno. */
#define VB_STUB_INT(name)                                                                                              \
    VB_EXPORT int name(void);                                                                                          \
    VB_EXPORT int name(void)                                                                                           \
    {                                                                                                                  \
        return vb_err(-EOPNOTSUPP);                                                                                    \
    }
/* Returns -1 and sets errno to EOPNOTSUPP. */
#define VB_STUB_MINUS(name)                                                                                            \
    VB_EXPORT int name(void);                                                                                          \
    VB_EXPORT int name(void)                                                                                           \
    {                                                                                                                  \
        return vb_err(-EOPNOTSUPP), -1;                                                                                \
    }
/* Returns NULL and sets errno to EOPNOTSUPP. */
#define VB_STUB_PTR(name)                                                                                              \
    VB_EXPORT void *name(void);                                                                                        \
    VB_EXPORT void *name(void)                                                                                         \
    {                                                                                                                  \
        return vb_null(-EOPNOTSUPP);                                                                                   \
    }
/* Does nothing. */
#define VB_STUB_VOID(name)                                                                                             \
    VB_EXPORT void name(void);                                                                                         \
    VB_EXPORT void name(void)                                                                                          \
    {                                                                                                                  \
    }

#endif
