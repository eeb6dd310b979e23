// SPDX-License-Identifier: BSD-2-Clause
/* Signals that an access of the program to memory causes, because the checker asked for that. The checker's handler comes
 * first. It calls the handler of the program, which is kept here, for signals that the checker did not cause. */
#ifndef PUMICE_SRC_CHECK_BASE_HANDLER_H
#define PUMICE_SRC_CHECK_BASE_HANDLER_H

#include <signal.h>
#include <stdbool.h>

/* Handles SIGSEGV or SIGTRAP from now on. fn returns whether the checker caused the signal; it has the arguments of
 * sigaction(2)'s handler. */
void handler_take(int signal, bool (*fn)(siginfo_t *info, void *context));

/* The address of the interrupted instruction. NULL: not known on this processor. */
const char *handler_instruction(const void *context);

/* The program sets its own action: it is kept for other signals of this number. False: the checker doesn't handle it. */
bool handler_keep(int signal, const struct sigaction *new, struct sigaction *old);

/* The program blocks these signals. Those that the checker handles must reach it: the kernel ends a process whose thread has
 * blocked SIGSEGV. Returns set, or *without, which is set without these. set may be NULL. */
const sigset_t *handler_unblocked(int how, const sigset_t *set, sigset_t *without);

#endif
