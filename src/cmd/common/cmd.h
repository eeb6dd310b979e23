// SPDX-License-Identifier: BSD-2-Clause
/* The subcommands of `pumice`, and what they have in common. */
#ifndef PUMICE_CMD_H
#define PUMICE_CMD_H

#include <stddef.h>

/* Exit codes of the commands that run another one (run, on), as env and timeout have them; else the command's own,
 * or 128 plus the number of the signal that ended it. */
enum exit_code {
    EXIT_OWN = 125, /* pumice itself failed */
    EXIT_NOEXEC = 126, /* the command can't be executed */
    EXIT_NOTFOUND = 127, /* there is no such command */
};

/* Each gets argv[0] = "pumice NAME" and returns the exit code. They may also exit (usage errors, --help). */
int cmd_run(int argc, char **argv);
int cmd_on(int argc, char **argv);
int cmd_env(int argc, char **argv);
int cmd_status(int argc, char **argv);
int cmd_why(int argc, char **argv);
int cmd_ping(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_fault(int argc, char **argv);
int cmd_capture(int argc, char **argv);
int cmd_extcap(int argc, char **argv);
int cmd_lint(int argc, char **argv);
int cmd_tm(int argc, char **argv);
int cmd_layout(int argc, char **argv);

/* "pumice: " and the text on stderr, with a newline. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* For sizes, counts and numbers of hosts: text as a decimal from least to most; -1 if it is anything else. */
long parse_number(const char *text, long least, long most);

#endif
