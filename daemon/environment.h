// SPDX-License-Identifier: BSD-2-Clause
/* Options of daemon/options.h from environment variables, for containers and services. The variable of an option has its
 * name in capital letters, with _ for -, and the prefix PUMICED_. So PUMICED_LOG_LEVEL=info is --log-level=info. A
 * variable overrides the configuration file, and the command line overrides both. */
#ifndef PUMICE_DAEMON_ENVIRONMENT_H
#define PUMICE_DAEMON_ENVIRONMENT_H

#include "daemon/device/settings.h"

/* The value of the variable of the option with this name; NULL: there is none. */
const char *environment_value(const char *option);

/* Sets the options that have variables. Those that add devices may have several values, with spaces between them. Each
 * variable with the prefix must belong to an option, or be PUMICED_OPTIONS, which the systemd units use. 0, or -EINVAL
 * with why. */
int environment_read(struct settings *s, char why[ERROR_TEXT_MAX]);

#endif
