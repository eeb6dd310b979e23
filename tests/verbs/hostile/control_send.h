// SPDX-License-Identifier: BSD-2-Clause
/* Control requests as a hostile program sends them: with any payload and any descriptors. */
#ifndef PUMICE_TESTS_VERBS_HOSTILE_CONTROL_SEND_H
#define PUMICE_TESTS_VERBS_HOSTILE_CONTROL_SEND_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "pumice/abi.h"

#define FDS_SENT_MAX 253 /* SCM_MAX_FD of the kernel */

/* Sends a request with n descriptors, and does not wait for the reply. flags: of sendmsg. False: it was not sent. */
static inline bool control_send(int sock, uint32_t op, const void *rq, uint32_t len, const int *fd, unsigned n,
                                int flags)
{
    struct pm_request head = {op, len};
    struct iovec iov[2] = {{&head, sizeof(head)}, {(void *)(uintptr_t)rq, len}};
    _Alignas(struct cmsghdr) char ctl[CMSG_SPACE(FDS_SENT_MAX * sizeof(int))] = {0};
    struct msghdr m = {.msg_iov = iov, .msg_iovlen = len ? 2 : 1};

    if (n) {
        struct cmsghdr *c = (struct cmsghdr *)(void *)ctl;

        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(n * sizeof(int));
        memcpy(CMSG_DATA(c), fd, n * sizeof(int));
        m.msg_control = ctl;
        m.msg_controllen = CMSG_SPACE(n * sizeof(int));
    }
    return sendmsg(sock, &m, MSG_NOSIGNAL | flags) >= 0;
}

#endif
