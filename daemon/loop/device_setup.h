// SPDX-License-Identifier: BSD-2-Clause
/* Sets a device up and takes it down: its engine with the client memory and the work queues, its socket, its loop and
 * its thread. */
#ifndef PUMICE_DAEMON_LOOP_DEVICE_SETUP_H
#define PUMICE_DAEMON_LOOP_DEVICE_SETUP_H

#include "daemon/device/device.h"

/* Sets up everything that needs no network. Returns 0, or -errno with why. Call device_fini in either case. */
int device_init(struct device *d, const struct settings *s, unsigned index, char why[ERROR_TEXT_MAX]);
/* Call it after device_init: finds the interface, opens the socket and makes the engine. Returns 0, or -errno with
 * why. */
int device_open(struct device *d, char why[ERROR_TEXT_MAX]);
/* Instead of device_open, for tests: makes only the engine. Control operations work, and packets to other devices are
 * lost. Returns 0, or -errno with why. */
int device_make_engine(struct device *d, char why[ERROR_TEXT_MAX]);
/* Frees everything. The caller has ended all sessions (session_close_all) and the thread. */
void device_fini(struct device *d);

/* Starts the thread on the given processor (-1: on any). Returns 0 or -errno. -EINVAL: the thread may not run on that
 * processor. */
int device_start(struct device *d, int cpu);
/* Ends the thread and waits for its end. */
void device_stop(struct device *d);

#endif
