// SPDX-License-Identifier: BSD-2-Clause
/* XRC domains: opens them and frees them. A domain belongs to the device. The sessions that have it open share it, each
 * with a handle of its own. Its target QPs belong to the domain, not to a session. A target ends when the last session
 * that has it open destroys it, or with the domain. It does not end with the process that created it (IBTA A14.2). */
#ifndef PUMICE_DAEMON_OBJECTS_XRCD_H
#define PUMICE_DAEMON_OBJECTS_XRCD_H

#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

struct client_qp;
struct control_reply;
struct device;
struct session;

struct xrcd {
    struct device *device;
    uint32_t number; /* the domain's number in the engine; unique on the device */
    /* O_PATH descriptor of the file that identifies the domain; -1: a domain without a file. While it is open, the file
     * system gives the inode's number to no other file. */
    int fd;
    uid_t owner; /* the user whose client sent it */
    uint64_t dev; /* device and number of the inode */
    uint64_t ino;
    unsigned opens; /* number of struct xrcd_open */
    unsigned srqs;
    TAILQ_HEAD(, client_qp) targets;
};

struct xrcd_open {
    struct session *session;
    uint32_t handle;
    struct xrcd *xrcd;
    /* SRQs and target QPs that the session created or opened through this handle. */
    unsigned users;
};

/* Control operation OPEN_XRCD. Returns 0, or -errno with the reason in *rp. daemon/objects/qp/xrc_target.h has
 * CLOSE_XRCD. */
int xrcd_open(struct session *s, const void *rq, struct control_reply *rp);

/* Frees a domain without targets that no session has open. */
void xrcd_free(struct xrcd *x);

#endif
