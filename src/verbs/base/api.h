// SPDX-License-Identifier: BSD-2-Clause
/* The conventions for all functions of the verbs API in this library. They concern the export of symbols, the way from
 * a public structure to the library's own structure, and the report of errors. */
#ifndef PUMICE_SRC_VERBS_BASE_API_H
#define PUMICE_SRC_VERBS_BASE_API_H

#include <errno.h>
#include <stddef.h>

/* Marks a symbol that the shared object exports. All other symbols are hidden (-fvisibility=hidden). The version script
 * only gives the exported symbols their versions. */
#define VB_EXPORT __attribute__((visibility("default")))
/* Binds the local function impl to the old version of a public symbol. */
#define VB_SYMVER(impl, name, version) __asm__(".symver " #impl ", " #name "@" version ", remove")

/* The object of the given type whose member is at ptr. */
#define VB_OF(type, member, ptr) ((type *)((char *)(ptr)-offsetof(type, member)))

/* Inside the library a function returns 0 or -errno. The verbs API wants NULL or a positive errno value, and errno
 * set. */

/* Sets errno to -rc and returns NULL. */
static inline void *vb_null(int rc)
{
    errno = -rc;
    return NULL;
}
/* Sets errno to -rc if that is an error. Returns -rc. */
static inline int vb_err(int rc)
{
    if (rc)
        errno = -rc;
    return -rc;
}

#endif
