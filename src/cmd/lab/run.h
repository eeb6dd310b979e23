// SPDX-License-Identifier: BSD-2-Clause
/* What run, on and env have in common: the environment of a program that shall use Pumice. */
#ifndef PUMICE_CMD_RUN_H
#define PUMICE_CMD_RUN_H

#include <stddef.h>

/* The value of LD_PRELOAD that adds the client library in dir to what is there already. -1 after saying why it can't
 * be. */
int preload_env(const char *dir, char *out, size_t size);

/* Becomes the command; if that fails, says so and exits with 126 or 127. */
void exec_command(char **command) __attribute__((noreturn));

#endif
