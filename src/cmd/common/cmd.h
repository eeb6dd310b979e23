// SPDX-License-Identifier: BSD-2-Clause
/* Used by all subcommands: exit codes, messages on stderr, and numbers in arguments. */
#ifndef PUMICE_SRC_CMD_COMMON_CMD_H
#define PUMICE_SRC_CMD_COMMON_CMD_H

/* Exit codes of the subcommands that run another command (run, on), the same as those of env(1) and timeout(1). If the
 * command ran, the exit code is its own, or 128 plus the number of the signal that ended it. */
enum exit_code {
    EXIT_OWN = 125, /* pumice itself failed */
    EXIT_NOEXEC = 126, /* the command can't be executed */
    EXIT_NOTFOUND = 127, /* there is no such command */
};

/* Prints "pumice: ", the text and a newline on stderr. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Reads text as a decimal number from least to most. Returns -1 if it is anything else. */
long parse_number(const char *text, long least, long most);

#endif
