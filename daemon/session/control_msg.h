// SPDX-License-Identifier: BSD-2-Clause
/* Control messages (include/pumice/abi.h): receives requests, builds replies, and sends them. */
#ifndef PUMICE_DAEMON_SESSION_CONTROL_MSG_H
#define PUMICE_DAEMON_SESSION_CONTROL_MSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "pumice/abi.h"

#define CONTROL_PAYLOAD_MAX (PM_MSG_MAX - sizeof(struct pm_request))

struct control_request {
    uint32_t op; /* enum pm_op, or any other number */
    uint32_t len; /* bytes of payload */
    _Alignas(8) uint8_t payload[CONTROL_PAYLOAD_MAX];
    /* The descriptors that came with the message. They belong to the receiver of the request. -1: taken. */
    int fd[PM_FDS_MAX];
    unsigned fds;
    uid_t owner; /* the user of the client */
};
struct control_reply {
    int32_t status; /* 0 or -errno */
    uint32_t len; /* bytes of payload */
    _Alignas(8) uint8_t payload[CONTROL_PAYLOAD_MAX];
    int fd[PM_FDS_MAX]; /* descriptors to send; closed after that */
    unsigned fds;
};

/* Receives one message from a non-blocking socket. owner: the user of the client. Returns 1 if there was one, 0 if there
 * is nothing to read yet. Returns -1 if the client has closed the connection, sent an invalid message, or sent
 * descriptors while many earlier ones of its user can't be closed: then end the session. (In the last case, the client
 * has got an error.) control_request_fini closes the descriptors in *rq; it does not wait for that. */
int control_recv(int sock, uid_t owner, struct control_request *rq);
void control_request_fini(struct control_request *rq);
/* Returns the first descriptor of the message that was not taken yet; -1: none. It then belongs to the caller. */
int control_take_fd(struct control_request *rq);

/* Sends the reply and closes its descriptors. False: end the session. */
bool control_send(int sock, struct control_reply *rp);

/* Reserves a payload of size bytes, sets it to zero, and returns it. */
void *control_payload(struct control_reply *rp, size_t size);
/* Appends a descriptor. It is closed after it was sent. */
void control_attach(struct control_reply *rp, int fd);
/* Makes the reply a failure with a text for users. Returns err (-errno). */
int control_fail(struct control_reply *rp, int err, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* The same, but a text that the reply already has stays, because it names the cause. */
int control_explain(struct control_reply *rp, int err, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
