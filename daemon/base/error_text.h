// SPDX-License-Identifier: BSD-2-Clause
/* The size of the buffers that receive a sentence about what went wrong. A function that fails writes the sentence into
 * `char why[ERROR_TEXT_MAX]` of its caller, which logs it or passes it on. */
#ifndef PUMICE_DAEMON_BASE_ERROR_TEXT_H
#define PUMICE_DAEMON_BASE_ERROR_TEXT_H

#define ERROR_TEXT_MAX 512

#endif
