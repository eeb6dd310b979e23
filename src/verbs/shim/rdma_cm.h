// SPDX-License-Identifier: BSD-2-Clause
/* Connection management (rdma_cm), which is not there: who is told so. */
#ifndef PUMICE_SRC_VERBS_SHIM_RDMA_CM_H
#define PUMICE_SRC_VERBS_SHIM_RDMA_CM_H

/* To be called when this process has looked for rdma_cm in vain. Writes one line to stderr, once in a process, if the process
 * can't well go on without it; errno stays as it is. */
void vb_rdma_cm_hint(void);

#endif
