// SPDX-License-Identifier: BSD-2-Clause
/* Functions of the C library that set the action of a signal. The checker keeps that of SIGSEGV for itself while it guards memory
 * (objects/guard.h), and calls the program's own for other accesses. */
#ifndef PUMICE_SRC_CHECK_VERBS_SIGNAL_CALLS_H
#define PUMICE_SRC_CHECK_VERBS_SIGNAL_CALLS_H

#include <signal.h>

#endif
