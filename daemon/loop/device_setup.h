// SPDX-License-Identifier: BSD-2-Clause
/* Puts a device together and takes it apart: its engine with the client memory and the owners of its queues, its socket, its loop, and its
 * thread. */
#ifndef PUMICE_DAEMON_LOOP_DEVICE_SETUP_H
#define PUMICE_DAEMON_LOOP_DEVICE_SETUP_H

#include "daemon/device/device.h"

/* Sets up what needs no network. 0, or -errno with why; device_fini in either case. */
int device_init(struct device *d, const struct settings *s, unsigned index, char why[ERROR_TEXT_MAX]);
/* Then, for a device that is used: finds the interface, opens the socket, makes the engine. 0, or -errno with why. */
int device_open(struct device *d, char why[ERROR_TEXT_MAX]);
/* Or, for tests: makes the engine alone; control operations work, and packets to other devices vanish. 0, or -errno
 * with why. */
int device_make_engine(struct device *d, char why[ERROR_TEXT_MAX]);
/* Frees everything. The caller has ended all sessions (session_close_all) and the thread. */
void device_fini(struct device *d);

/* Starts the thread, which keeps to a processor (-1: any). 0 or -errno; -EINVAL: it may not use that one. */
int device_start(struct device *d, int cpu);
/* Ends and joins it. */
void device_stop(struct device *d);

#endif
