// SPDX-License-Identifier: BSD-2-Clause
/* The command line of pumiced, read by argp, with the options of daemon/options.h. */
#ifndef PUMICE_DAEMON_COMMAND_LINE_H
#define PUMICE_DAEMON_COMMAND_LINE_H

#include "daemon/device/settings.h"

/* Reads the command line into *s. If it is wrong, or asks for help, this ends the process (with EXIT_BAD_CONFIG or 0).
 * s NULL: checks nothing but the names of the options.
 * Returns the configuration file that it names, a pointer into argv; NULL: none. */
const char *command_line_read(int argc, char **argv, struct settings *s);

#endif
