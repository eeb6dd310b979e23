// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/base/explain.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pumice/abi.h"

bool vb_explains(void)
{
    const char *verbose = getenv(PM_ENV_VERBOSE);
    return verbose && *verbose;
}

int vb_explain(int err, const char *format, ...)
{
    char text[256];
    va_list list;
    int before = errno;
    if (!vb_explains())
        return err;
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    fprintf(stderr, "pumice: %s: %s\n", strerror(-err), text);
    errno = before;
    return err;
}
