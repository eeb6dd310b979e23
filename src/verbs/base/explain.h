// SPDX-License-Identifier: BSD-2-Clause
/* Tells users why the library itself refuses a call. What the daemon refuses, vb_session_call tells. */
#ifndef PUMICE_SRC_VERBS_BASE_EXPLAIN_H
#define PUMICE_SRC_VERBS_BASE_EXPLAIN_H

#include <stdbool.h>

/* Does the user want reasons (PUMICE_VERBOSE)? */
bool vb_explains(void);

/* Prints a sentence on stderr, if the user wants reasons. Returns err, for: return vb_explain(-EINVAL, ...). errno stays. */
int vb_explain(int err, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
