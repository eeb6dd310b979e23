// SPDX-License-Identifier: BSD-2-Clause
/* XRC target QPs: opens a target that another session created, and ends a domain's targets with its last close. */
#ifndef PUMICE_DAEMON_OBJECTS_QP_XRC_TARGET_H
#define PUMICE_DAEMON_OBJECTS_QP_XRC_TARGET_H

struct session;
struct control_reply;
struct xrcd_open;

/* Control operations. rq: the payload that pumice/abi.h defines for the operation. Return 0, or -errno with the
 * reason in *rp. */
int target_open_qp(struct session *s, const void *rq, struct control_reply *rp);
int xrcd_close(struct session *s, const void *rq, struct control_reply *rp);

/* Closes a handle of a domain. The last one ends the domain and its targets. */
void xrcd_open_free(struct xrcd_open *o);
/* Does a part of that: frees one target if the handle is the last one and the domain has targets, otherwise the handle.
 * After the first call nobody can open the domain. */
void xrcd_open_free_step(struct xrcd_open *o);

#endif
