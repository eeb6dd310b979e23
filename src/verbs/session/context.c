// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/session/context.h"

#include <poll.h>

void vb_context_check(struct vb_context *c)
{
    int fd = atomic_load(&c->session.fd);
    struct pollfd p = {.fd = fd, .events = POLLRDHUP};
    struct timespec at_once = {0};
    /* syscall() and not poll(), which is a cancellation point: see cancel.h. */
    if (fd < 0 ||
        (syscall(SYS_ppoll, &p, 1, &at_once, NULL, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL))))
        atomic_store(&c->gone, true);
}
