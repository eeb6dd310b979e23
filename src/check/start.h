// SPDX-License-Identifier: BSD-2-Clause
/* The begin and the end of the checker in a process. */
#ifndef PUMICE_SRC_CHECK_START_H
#define PUMICE_SRC_CHECK_START_H

/* When the library is loaded: reads the rules from $PUMICE_CHECK. Without it, all rules hold. */
void start_check(void) __attribute__((constructor));
/* At the end of the process: reports what is left. */
void end_check(void) __attribute__((destructor));

#endif
