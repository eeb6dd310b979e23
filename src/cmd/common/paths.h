// SPDX-License-Identifier: BSD-2-Clause
/* Finds the other parts of Pumice and commands in PATH. Warns of programs that can't preload the client library. */
#ifndef PUMICE_SRC_CMD_COMMON_PATHS_H
#define PUMICE_SRC_CMD_COMMON_PATHS_H

#include <stdbool.h>
#include <stddef.h>

/* Find the daemon, and the directory of the client library, relative to this executable: the daemon in the same
 * directory, in ../libexec/pumice, in ../sbin or by PATH; the library in ../lib/pumice. They write the path to out,
 * which has PATH_MAX bytes. They return false, after printing where they searched, if there is none. */
bool paths_daemon(char *out);
bool paths_library(char *out);

/* The directory of this executable; "" if it is not known. */
void paths_self(char *out);

/* Finds the file of a command, by PATH if the name has no slash. Returns 0, ENOENT or EACCES. Like a shell, it ignores
 * directories of PATH that this user may not search. */
int paths_command(const char *name, char *out);

/* Warns on stderr if the loader will not preload the client library into this executable: if it is setuid, has
 * capabilities, is statically linked, or is for another architecture. It does not check scripts. */
void paths_warn_no_preload(const char *path);

#endif
