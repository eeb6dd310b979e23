// SPDX-License-Identifier: BSD-2-Clause
/* Finds the function that carries out a control operation of a session.
 *
 * A handler gets a private copy of the payload, of exactly the length that its operation has, checks every field, and returns 0
 * after filling in the reply, or -errno after saying why (control_fail). It never touches the connection, so that tests can
 * call handlers without one. A handler never runs the data path either. The table says for which operations the loop does that before. */
#ifndef PUMICE_DAEMON_CONTROL_DISPATCH_H
#define PUMICE_DAEMON_CONTROL_DISPATCH_H

struct control_reply;
struct control_request;
struct session;

/* Carries out one operation of a session, and fills in *rp, status included. */
void control_dispatch(struct session *s, struct control_request *rq, struct control_reply *rp);

#endif
