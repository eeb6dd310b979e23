// SPDX-License-Identifier: BSD-2-Clause
#include "src/check/verbs/signal_calls.h"

#include "src/check/base/next.h"
#include "src/check/objects/guard.h"
#include "src/check/verbs/export.h"

LIBC_FIND(sigaction)
LIBC_FIND(signal)

EXPORT int sigaction(int number, const struct sigaction *new, struct sigaction *old)
{
    if (guard_keep_handler(number, new, old))
        return 0;
    return LIBC_NEXT(sigaction, number, new, old);
}

EXPORT __sighandler_t signal(int number, __sighandler_t handler)
{
    const struct sigaction new = {.sa_handler = handler, .sa_flags = SA_RESTART};
    struct sigaction old;

    if (guard_keep_handler(number, &new, &old))
        return old.sa_handler;
    return LIBC_NEXT(signal, number, handler);
}
