// SPDX-License-Identifier: BSD-2-Clause
/* Functions of the C library that set the action of a signal, or block it. The checker keeps SIGSEGV and SIGTRAP for itself while
 * it looks for accesses to memory (base/handler.h). The program's own action is called for others. */
#ifndef PUMICE_SRC_CHECK_VERBS_SIGNAL_CALLS_H
#define PUMICE_SRC_CHECK_VERBS_SIGNAL_CALLS_H

#include <signal.h>

#endif
