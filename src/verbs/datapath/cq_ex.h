// SPDX-License-Identifier: BSD-2-Clause
/* Extended polling (ibv_start_poll, ibv_next_poll, ibv_end_poll). Between a successful start_poll and end_poll the lock
 * of the CQ is held, and the read functions return fields of the completion in vb_cq.now. */
#ifndef PUMICE_SRC_VERBS_DATAPATH_CQ_EX_H
#define PUMICE_SRC_VERBS_DATAPATH_CQ_EX_H

#include <infiniband/verbs.h>
#include <stdint.h>

/* Sets the functions of a CQ that was created with wc_flags. */
void vb_cq_ex_ops(struct ibv_cq_ex *cq, uint64_t wc_flags);

#endif
