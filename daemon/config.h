// SPDX-License-Identifier: BSD-2-Clause
/* The configuration file: the options of daemon/options.h as `name = value`, and devices as sections. */
#ifndef PUMICE_DAEMON_CONFIG_H
#define PUMICE_DAEMON_CONFIG_H

#include "daemon/device/settings.h"

/* Reads a configuration file. 0, or -EINVAL with why = "FILE:LINE: …", or -errno if it can't be read. */
int config_load(struct settings *s, const char *path, char why[ERROR_TEXT_MAX]);
/* Reads text in memory, for tests. Errors call the file "config". */
int config_load_text(struct settings *s, const char *text, char why[ERROR_TEXT_MAX]);

#endif
