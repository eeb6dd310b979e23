// SPDX-License-Identifier: BSD-2-Clause
/* How a program is started so that it uses Pumice: its environment, and exec. */
#ifndef PUMICE_SRC_CMD_RUN_PROGRAM_H
#define PUMICE_SRC_CMD_RUN_PROGRAM_H

#include <stddef.h>

/* Writes the value of LD_PRELOAD that adds the client library in dir to what is there already. Returns 0, or -1 after
 * printing why that is impossible. */
int program_preload(const char *dir, char *out, size_t size);

/* Replaces this process by the command. If that fails, prints why and exits with 126 or 127. */
void program_exec(char **command) __attribute__((noreturn));

#endif
