// SPDX-License-Identifier: BSD-2-Clause
#include "src/check/verbs/signal_calls.h"

#include "src/check/base/handler.h"
#include "src/check/base/next.h"
#include "src/check/verbs/export.h"

LIBC_FIND(sigaction)
LIBC_FIND(signal)
LIBC_FIND(sigprocmask)
LIBC_FIND(pthread_sigmask)

EXPORT int sigaction(int number, const struct sigaction *new, struct sigaction *old)
{
    if (handler_keep(number, new, old))
        return 0;
    return LIBC_NEXT(sigaction, number, new, old);
}

EXPORT __sighandler_t signal(int number, __sighandler_t handler)
{
    const struct sigaction new = {.sa_handler = handler, .sa_flags = SA_RESTART};
    struct sigaction old;

    if (handler_keep(number, &new, &old))
        return old.sa_handler;
    return LIBC_NEXT(signal, number, handler);
}

EXPORT int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
    sigset_t without;

    return LIBC_NEXT(sigprocmask, how, handler_unblocked(how, set, &without), old);
}

EXPORT int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
    sigset_t without;

    return LIBC_NEXT(pthread_sigmask, how, handler_unblocked(how, set, &without), old);
}
