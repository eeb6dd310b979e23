// SPDX-License-Identifier: BSD-2-Clause
/* Finding the other parts of Pumice, and what preloading can't reach. */
#ifndef PUMICE_SRC_CMD_COMMON_PATHS_H
#define PUMICE_SRC_CMD_COMMON_PATHS_H

#include <stdbool.h>
#include <stddef.h>

/* Paths of the daemon and of the directory that holds the client library, found from where this executable is: side
 * by side in bin/ or in ../libexec/pumice, ../lib/pumice; the daemon also by PATH. Write to out, of which there are
 * PATH_MAX bytes. False, after saying what was looked for, if there is none. */
bool paths_daemon(char *out);
bool paths_library(char *out);
/* The directory of this executable, for PATH; "" if it can't be known. */
void paths_self(char *out);

/* The file that `name` means as a command, by PATH if it has no slash. 0, or ENOENT or EACCES. What is in folders of PATH that may
 * not be searched is not there, as for a shell. */
int paths_command(const char *name, char *out);

/* Says so on stderr if the executable at path can't be given the library: setuid, with capabilities, statically
 * linked, of another architecture. Scripts are taken for fine. */
void paths_warn_no_preload(const char *path);

#endif
