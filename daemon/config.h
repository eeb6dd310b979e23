// SPDX-License-Identifier: BSD-2-Clause
/* The configuration file, read by libconfuse: the options of daemon/options.h as `name = value`, and devices as
 * sections:
 *
 *     gso = auto
 *     log-level = info
 *     device pumice0 { address = 127.0.0.1 }
 */
#ifndef PUMICE_DAEMON_CONFIG_H
#define PUMICE_DAEMON_CONFIG_H

#include "daemon/device/settings.h"

/* Reads a configuration file. Returns 0, or -EINVAL with why = "FILE:LINE: …" if it is wrong, or another -errno with
 * why if it can't be opened. */
int config_load(struct settings *s, const char *path, char why[ERROR_TEXT_MAX]);
/* Reads text in memory, for tests. Errors call the file "config". */
int config_load_text(struct settings *s, const char *text, char why[ERROR_TEXT_MAX]);

#endif
