// SPDX-License-Identifier: BSD-2-Clause
#include "src/check/base/inside.h"

#include <errno.h>
#include <pthread.h>

static __thread unsigned depth __attribute__((tls_model("initial-exec")));
static __thread int error, cancel_state; /* before the thread entered */
static __thread unsigned library __attribute__((tls_model("initial-exec")));

void inside_enter(void)
{
    if (depth++ > 0)
        return;
    error = errno;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
}

void inside_leave(void)
{
    if (--depth > 0)
        return;
    pthread_setcancelstate(cancel_state, NULL);
    errno = error;
}

bool inside_is(void)
{
    return depth > 0;
}

void inside_library_enter(void)
{
    library++;
}

void inside_library_leave(void)
{
    library--;
}

bool inside_library(void)
{
    return library > 0;
}
