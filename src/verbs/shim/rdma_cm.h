// SPDX-License-Identifier: BSD-2-Clause
/* A hint for users of connection management (rdma_cm), which Pumice does not have.
 *
 * librdmacm (perftest's -R, libfabric's message endpoints, Open MPI's btl openib) needs a device of the kernel. Without
 * such a device, librdmacm only reports a failure. But UCX and libfabric look for rdma_cm in every process, and most of
 * these processes work without it. So a process that looked for rdma_cm gets the hint when it ends: if it failed, and
 * connected no QP. (libfabric and UCX make QPs only to see what a device can.) A rank of an MPI job, and a process with UCX, gets the hint only if its environment selects a library that
 * needs rdma_cm, because it may fail for many other reasons.
 *
 * If the environment selects nothing but a library that needs rdma_cm, the hint comes at once: MPIs then take TCP, or
 * end without the functions of exit(3). */
#ifndef PUMICE_SRC_VERBS_SHIM_RDMA_CM_H
#define PUMICE_SRC_VERBS_SHIM_RDMA_CM_H

/* To be called when this process has looked for rdma_cm in vain. Writes one line to stderr, now or at the end of the
 * process, if the process can't work without rdma_cm. errno is kept. */
void vb_rdma_cm_absent(void);

/* To be called when a QP of this process has become ready to receive: the process connects without rdma_cm. */
void vb_rdma_cm_unneeded(void);

#endif
