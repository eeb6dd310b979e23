// SPDX-License-Identifier: BSD-2-Clause
/* XRC target QPs: a session opens one that another made, and the last close of a domain ends its targets. */
#ifndef PUMICE_DAEMON_OBJECTS_QP_XRC_TARGET_H
#define PUMICE_DAEMON_OBJECTS_QP_XRC_TARGET_H

struct session;
struct control_reply;
struct xrcd_open;

/* Control operations: each takes the payload that pumice/abi.h has for it. 0, or -errno with the reason in *rp. */
int target_open_qp(struct session *s, const void *rq, struct control_reply *rp);
int xrcd_close(struct session *s, const void *rq, struct control_reply *rp);

/* Gives back a handle of a domain. The last one ends the domain and its targets. */
void xrcd_open_free(struct xrcd_open *o);

#endif
