// SPDX-License-Identifier: BSD-2-Clause
/* A hint for users of connection management (rdma_cm), which Pumice does not have.
 *
 * librdmacm (perftest's -R, libfabric's message endpoints, Open MPI's btl openib) needs a device of the kernel. Without
 * such a device, librdmacm only reports a failure. But UCX and libfabric look for rdma_cm in every process, and work
 * without it. Many MPIs load both in each rank. So a rank, and a process with UCX, gets the hint only if its
 * environment shows that it has no alternative. */
#ifndef PUMICE_SRC_VERBS_SHIM_RDMA_CM_H
#define PUMICE_SRC_VERBS_SHIM_RDMA_CM_H

/* To be called when this process has looked for rdma_cm in vain. Writes one line to stderr, once per process, if the
 * process probably can't work without rdma_cm. errno is kept. */
void vb_rdma_cm_hint(void);

#endif
