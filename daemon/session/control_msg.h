// SPDX-License-Identifier: BSD-2-Clause
/* Control messages (include/pumice/abi.h): receives a request, fills in a reply, and sends it. */
#ifndef PUMICE_DAEMON_SESSION_CONTROL_MSG_H
#define PUMICE_DAEMON_SESSION_CONTROL_MSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pumice/abi.h"

#define CONTROL_PAYLOAD_MAX (PM_MSG_MAX - sizeof(struct pm_request))

struct control_request {
    uint32_t op; /* enum pm_op, or anything else */
    uint32_t len; /* bytes of payload */
    _Alignas(8) uint8_t payload[CONTROL_PAYLOAD_MAX];
    int fd[PM_FDS_MAX]; /* what came along; owned by the receiver of the request, -1: taken */
    unsigned fds;
};
struct control_reply {
    int32_t status; /* 0 or -errno */
    uint32_t len; /* bytes of payload */
    _Alignas(8) uint8_t payload[CONTROL_PAYLOAD_MAX];
    int fd[PM_FDS_MAX]; /* to be sent, then closed */
    unsigned fds;
};

/* Receives one message from a non-blocking socket. 1: there is one; 0: nothing to read yet; -1: the client hung up or
 * does not keep to the form, end the session. Descriptors in *rq are to be closed by control_request_fini. */
int control_recv(int sock, struct control_request *rq);
void control_request_fini(struct control_request *rq);
/* The first descriptor that came along and was not taken yet, which is the caller's from then on; -1: none. */
int control_take_fd(struct control_request *rq);

/* Sends and closes the reply's descriptors. False: end the session. */
bool control_send(int sock, struct control_reply *rp);

/* Makes room for a payload of size bytes, all zero, and returns it. */
void *control_payload(struct control_reply *rp, size_t size);
/* Appends a descriptor, which is closed once it was sent. */
void control_attach(struct control_reply *rp, int fd);
/* Makes the reply a failure with a text for people; returns err (-errno). */
int control_fail(struct control_reply *rp, int err, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
