// SPDX-License-Identifier: BSD-2-Clause
/* The options of the daemon. Each has one name, the same in the configuration file and, with two dashes, on the command
 * line, and one parser, so that both take the same values and complain with the same words. */
#ifndef PUMICE_DAEMON_OPTIONS_H
#define PUMICE_DAEMON_OPTIONS_H

#include "daemon/device/settings.h"

/* Sets one by name. 0, or -EINVAL: then why says what was wrong and what would be right. */
int options_set(struct settings *s, const char *name, const char *value, char why[ERROR_TEXT_MAX]);

#endif
