// SPDX-License-Identifier: BSD-2-Clause
/* Error texts. A function that fails writes a sentence about the cause into its caller's `char why[ERROR_TEXT_MAX]`.
 * The caller logs the sentence or passes it on. */
#ifndef PUMICE_DAEMON_BASE_ERROR_TEXT_H
#define PUMICE_DAEMON_BASE_ERROR_TEXT_H

#define ERROR_TEXT_MAX 512

/* Writes `NAME: invalid value "VALUE": expected EXPECTED` (a long value is cut), and returns -EINVAL. */
int error_invalid_value(char why[ERROR_TEXT_MAX], const char *name, const char *value, const char *expected);

#endif
