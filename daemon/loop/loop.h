// SPDX-License-Identifier: BSD-2-Clause
/* The loop of a device's thread: hot while there is work, then asleep. */
#ifndef PUMICE_DAEMON_LOOP_LOOP_H
#define PUMICE_DAEMON_LOOP_LOOP_H

#include "daemon/device/device.h"

/* Sets the watchers up. 0 or -errno with why. */
int loop_init(struct device *d, char why[ERROR_TEXT_MAX]);
void loop_fini(struct device *d);

/* Runs until d->stop. */
void loop_run(struct device *d);

#endif
