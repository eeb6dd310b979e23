// SPDX-License-Identifier: BSD-2-Clause
#include "src/check/verbs/file_calls.h"

#include <stdarg.h>
#include <string.h>

#include "src/check/base/next.h"
#include "src/check/base/report.h"
#include "src/check/connect/asked.h"
#include "src/check/objects/records.h"
#include "src/check/verbs/export.h"

LIBC_FIND(open)
LIBC_FIND(open64)
LIBC_FIND(openat)
LIBC_FIND(fopen)
LIBC_FIND(fopen64)

/* The verbs library reads such files for itself. */
static void look_at(const char *path, const void *caller)
{
    if (!path || !strstr(path, "/gid_attrs/types") || report_is_of_library(caller, "libibverbs"))
        return;
    records_lock();
    asked_gid_types();
    records_unlock();
}

/* The mode is there only with these flags. */
static bool has_mode(int flags)
{
    return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
}

static mode_t mode_of(int flags, va_list ap)
{
    return has_mode(flags) ? va_arg(ap, mode_t) : 0;
}

EXPORT int open(const char *path, int flags, ...)
{
    va_list ap;

    va_start(ap, flags);
    mode_t mode = mode_of(flags, ap);
    va_end(ap);
    look_at(path, __builtin_return_address(0));
    return LIBC_NEXT(open, path, flags, mode);
}

EXPORT int open64(const char *path, int flags, ...)
{
    va_list ap;

    va_start(ap, flags);
    mode_t mode = mode_of(flags, ap);
    va_end(ap);
    look_at(path, __builtin_return_address(0));
    return LIBC_NEXT(open64, path, flags, mode);
}

EXPORT int openat(int dir, const char *path, int flags, ...)
{
    va_list ap;

    va_start(ap, flags);
    mode_t mode = mode_of(flags, ap);
    va_end(ap);
    look_at(path, __builtin_return_address(0));
    return LIBC_NEXT(openat, dir, path, flags, mode);
}

EXPORT FILE *fopen(const char *path, const char *mode)
{
    look_at(path, __builtin_return_address(0));
    return LIBC_NEXT(fopen, path, mode);
}

EXPORT FILE *fopen64(const char *path, const char *mode)
{
    look_at(path, __builtin_return_address(0));
    return LIBC_NEXT(fopen64, path, mode);
}
