// SPDX-License-Identifier: BSD-2-Clause
/* XRC domains. A domain belongs to the device and is shared by the sessions that have it open, each by a handle of its own. Its target
 * QPs belong to the domain, not to a session: a target ends when the last of its openers destroys it, or with the domain,
 * but not with the process that created it (IBTA A14.2). */
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
    uint32_t number; /* the engine's; unique on the device */
    int fd; /* O_PATH, of the file that names it: while it is open, the inode's number is not given to another file; */
    /* -1: anonymous */
    dev_t dev;
    ino_t ino;
    unsigned opens; /* struct xrcd_open */
    unsigned srqs;
    TAILQ_HEAD(, client_qp) targets;
};

struct xrcd_open {
    struct session *session;
    uint32_t handle;
    struct xrcd *xrcd;
    unsigned users; /* SRQs and target queue pairs of the session that came by this handle */
};

/* Control operation OPEN_XRCD. 0, or -errno with the reason in *rp. (CLOSE_XRCD: daemon/objects/qp/xrc_target.h.) */
int xrcd_open(struct session *s, const void *rq, struct control_reply *rp);

/* Frees a domain that no session has open and that has no targets. */
void xrcd_free(struct xrcd *x);

#endif
