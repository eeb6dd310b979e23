// SPDX-License-Identifier: BSD-2-Clause
/* Which library called a function of this one. */
#ifndef PUMICE_SRC_VERBS_BASE_CALLER_H
#define PUMICE_SRC_VERBS_BASE_CALLER_H

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

/* Whether a return address is in librdmacm. It takes a lock of the dynamic linker, so it is not for the datapath. */
static inline bool vb_called_by_librdmacm(const void *caller)
{
    Dl_info info;
    return dladdr(caller, &info) != 0 && info.dli_fname && strstr(info.dli_fname, "/librdmacm.so");
}

#endif
