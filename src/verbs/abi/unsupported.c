// SPDX-License-Identifier: BSD-2-Clause
/* Public functions of newer releases of rdma-core that Pumice does not implement. They fail with EOPNOTSUPP, so that a
 * program that is linked with them can be loaded and can choose another way. The version nodes are those of
 * rdma-core-symbols.tsv. */
#include "src/verbs/abi/stubs.h"

/* IBVERBS_1.15 (release 59). A DMA handle has hints for transactions on PCI Express. Pumice makes no such
 * transactions. */
VB_STUB_PTR(ibv_alloc_dmah)
VB_STUB_INT(ibv_dealloc_dmah)

/* IBVERBS_1.16 (release 62). Device memory is private memory of the process, which no other device can use. */
VB_STUB_MINUS(ibv_dm_export_dmabuf_fd)
