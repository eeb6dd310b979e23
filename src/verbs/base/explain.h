// SPDX-License-Identifier: BSD-2-Clause
/* Prints why the library itself refuses a call of the program. vb_session_call prints why the daemon refuses one. */
#ifndef PUMICE_SRC_VERBS_BASE_EXPLAIN_H
#define PUMICE_SRC_VERBS_BASE_EXPLAIN_H

#include <stdbool.h>

/* Does the user want reasons (PUMICE_VERBOSE)? */
bool vb_explains(void);

/* Prints a sentence on stderr, if the user wants reasons. Returns err, for: return vb_explain(-EINVAL, ...). errno stays. */
int vb_explain(int err, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
