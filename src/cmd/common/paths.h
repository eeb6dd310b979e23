// SPDX-License-Identifier: BSD-2-Clause
/* Finds the other parts of Pumice and commands in PATH. Warns of programs that can't preload the client library. */
#ifndef PUMICE_SRC_CMD_COMMON_PATHS_H
#define PUMICE_SRC_CMD_COMMON_PATHS_H

#include <stdbool.h>
#include <stddef.h>

/* These functions find the daemon and the directory of the client library. The daemon is in the directory of this
 * executable, or from there in ../libexec/pumice or ../sbin, or in PATH. The library is in ../lib/pumice. The functions
 * write the path to out, which has PATH_MAX bytes. If they find nothing, they print where they searched, and return
 * false. */
bool paths_daemon(char *out);
bool paths_library(char *out);

/* The directory of this executable; "" if it is not known. */
void paths_self(char *out);

/* Finds the file of a command and writes its path to out. If the name has no slash, searches PATH. Like a shell, it
 * ignores directories of PATH that this user may not search. Returns 0, ENOENT or EACCES. */
int paths_command(const char *name, char *out);

/* Warns on stderr if the loader will not preload the client library into this executable: if it is setuid, has
 * capabilities, is statically linked, or is for another architecture. It does not check scripts. */
void paths_warn_no_preload(const char *path);

#endif
