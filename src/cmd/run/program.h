// SPDX-License-Identifier: BSD-2-Clause
/* Starts a program so that it uses Pumice: sets LD_PRELOAD, and replaces this process by the program. */
#ifndef PUMICE_SRC_CMD_RUN_PROGRAM_H
#define PUMICE_SRC_CMD_RUN_PROGRAM_H

#include <stddef.h>

/* Writes to out the value for LD_PRELOAD: the present value, and the client library in dir. Returns 0, or -1 after
 * printing why that is impossible. */
int program_preload(const char *dir, char *out, size_t size);

/* Replaces this process by the command. If that fails, prints why and exits with 126 or 127. */
void program_exec(char **command) __attribute__((noreturn));

#endif
