// SPDX-License-Identifier: BSD-2-Clause
/* The verbs that the checker replaces in a program that it is preloaded into. It works with any verbs library and device.
 * <infiniband/verbs.h> declares and explains them. */
#ifndef PUMICE_SRC_CHECK_EXPORTS_H
#define PUMICE_SRC_CHECK_EXPORTS_H

#include <infiniband/verbs.h>

#endif
