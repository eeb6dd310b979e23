// SPDX-License-Identifier: BSD-2-Clause
/* Finds the function that executes a control operation of a session.
 *
 * A handler gets a private copy of the payload, whose length is exactly that of its operation. It checks every field.
 * It returns 0 and a complete reply, or -errno and the reason (control_fail). It never uses the connection, so that
 * tests can call handlers without one. It never runs the data path either. The table in dispatch.c marks the two
 * operations before which control_dispatch runs the data path. */
#ifndef PUMICE_DAEMON_CONTROL_DISPATCH_H
#define PUMICE_DAEMON_CONTROL_DISPATCH_H

#include <stdint.h>

struct control_reply;
struct control_request;
struct session;

/* The name of an operation (enum pm_op), with or without a session: "REG_MR". */
const char *control_op_name(uint32_t op);
/* Executes one operation of a session, and fills in *rp with its status. */
void control_dispatch(struct session *s, struct control_request *rq, struct control_reply *rp);

#endif
