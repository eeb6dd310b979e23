// SPDX-License-Identifier: BSD-2-Clause
/* The calls of librdmacm that give addresses to the program. The kernel has chosen the GID of these, by the routes. */
#ifndef PUMICE_SRC_CHECK_VERBS_CM_CALLS_H
#define PUMICE_SRC_CHECK_VERBS_CM_CALLS_H

/* The functions are those of rdma/rdma_cma.h. */

#endif
