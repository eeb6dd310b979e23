// SPDX-License-Identifier: BSD-2-Clause
/* Functions of the C library that give memory back. The checker replaces them, to see whether outstanding requests need that
 * memory (RULE_FREED). */
#ifndef PUMICE_SRC_CHECK_VERBS_FREE_CALLS_H
#define PUMICE_SRC_CHECK_VERBS_FREE_CALLS_H

#include <stdlib.h>
#include <sys/mman.h>

#endif
