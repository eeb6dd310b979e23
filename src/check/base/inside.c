// SPDX-License-Identifier: BSD-2-Clause
#include "src/check/base/inside.h"

static __thread unsigned depth __attribute__((tls_model("initial-exec")));
static __thread unsigned polls __attribute__((tls_model("initial-exec")));

void inside_enter(void)
{
    depth++;
}

void inside_leave(void)
{
    depth--;
}

bool inside_is(void)
{
    return depth > 0;
}

void inside_poll_enter(void)
{
    polls++;
}

void inside_poll_leave(void)
{
    polls--;
}

bool inside_poll(void)
{
    return polls > 0;
}
