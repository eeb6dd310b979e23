// SPDX-License-Identifier: BSD-2-Clause
/* Files with the findings of a run, for other programs. The name of the file says in which form: .json, .sarif (2.1.0, for
 * code hosts and editors), or .xml (JUnit, for CI systems). */
#ifndef PUMICE_SRC_CMD_CHECK_CHECK_REPORT_H
#define PUMICE_SRC_CMD_CHECK_CHECK_REPORT_H

#include <stdbool.h>

#include "src/cmd/check/findings.h"

/* Is there a form for this name? */
bool check_report_known(const char *path);

/* Makes the file, empty, before the run. So a run is not in vain because the file can't be written. Returns 0 or -errno. */
int check_report_create(const char *path);
/* Writes the file. Returns 0 or a negative errno. */
int check_report_write(const char *path, const struct findings *f);

#endif
