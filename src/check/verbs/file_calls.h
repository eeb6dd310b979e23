// SPDX-License-Identifier: BSD-2-Clause
/* Functions of the C library that open files. The checker replaces them to see that a program reads the types of GIDs from
 * /sys/class/infiniband (RULE_GID_INDEX). */
#ifndef PUMICE_SRC_CHECK_VERBS_FILE_CALLS_H
#define PUMICE_SRC_CHECK_VERBS_FILE_CALLS_H

#include <fcntl.h>
#include <stdio.h>

#endif
