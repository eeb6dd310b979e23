// SPDX-License-Identifier: BSD-2-Clause
/* The verbs of GIDs and address handles that the checker replaces in a program. <infiniband/verbs.h> declares and explains
 * them. */
#ifndef PUMICE_SRC_CHECK_VERBS_ADDRESS_VERBS_H
#define PUMICE_SRC_CHECK_VERBS_ADDRESS_VERBS_H

#include <infiniband/verbs.h>

#endif
