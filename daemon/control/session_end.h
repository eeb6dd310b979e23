// SPDX-License-Identifier: BSD-2-Clause
/* Ends sessions, with all their objects. A session may have more than a hundred thousand objects, so the device's loop
 * frees them in slices (base/slice.h) and carries packets in between. */
#ifndef PUMICE_DAEMON_CONTROL_SESSION_END_H
#define PUMICE_DAEMON_CONTROL_SESSION_END_H

struct device;
struct session;

/* Begins the end of a session: the daemon takes no more requests of the client, and closes the connection. The loop
 * then frees the objects. The session stays in the device's list until its last object is free, so `pumice status` shows
 * what there still is. Does nothing if the session ends already. */
void session_end(struct session *s);

/* Ends a session at once, in one go. May only be called between passes. For the end of the daemon, and for tests. */
void session_close(struct session *s);
/* Ends all sessions of a device, before device_fini. */
void session_close_all(struct device *d);

#endif
