// SPDX-License-Identifier: BSD-2-Clause
/* The check of `pumice doctor` that concerns the symbols of the client library: whether it has all that installed
 * provider libraries, UCX and a given program import. */
#ifndef PUMICE_SRC_CMD_NET_CHECK_SYMBOLS_H
#define PUMICE_SRC_CMD_NET_CHECK_SYMBOLS_H

#include "src/cmd/net/doctor_report.h"

/* Checks the installed libraries and, if program is not NULL, this program or library with all libraries that it loads.
 * Missing symbols of the program are failures, others are warnings. */
void check_symbols(struct doctor_report *report, const char *program);

#endif
