// SPDX-License-Identifier: BSD-2-Clause
/* The loop of a device's thread. It runs passes without sleeping while there is work, and sleeps otherwise. */
#ifndef PUMICE_DAEMON_LOOP_LOOP_H
#define PUMICE_DAEMON_LOOP_LOOP_H

#include "daemon/device/device.h"

/* Sets up the watchers. Returns 0, or -errno with why. */
int loop_init(struct device *d, char why[ERROR_TEXT_MAX]);
void loop_fini(struct device *d);

/* Runs until d->stop. */
void loop_run(struct device *d);

#endif
