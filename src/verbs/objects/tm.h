// SPDX-License-Identifier: BSD-2-Clause
/* The client's side of a matching list: handles, list operations and their end. All under the SRQ's lock.
 *
 * Handles are given out here, at once, as the verbs API wants them (include/pumice/abi.h says how they are made). An
 * entry's slot is free again when all completions that it can have were polled: the ADD's if it was signaled, and the last
 * receive completion or a successful DEL's. Of an unsignaled DEL, which has no completion, the daemon tells the outcome in
 * the ring. So max_num_tags bounds entries that are consumed and not yet polled, too.
 *
 * What a signaled operation's completion and an entry's last one would say is kept here as well, so that they can be
 * completed when the daemon has died.
 *
 * An operation is outstanding from its posting until its completion is polled or, if it is unsignaled, until the daemon
 * has carried it out. */
#ifndef PUMICE_SRC_VERBS_OBJECTS_TM_H
#define PUMICE_SRC_VERBS_OBJECTS_TM_H

#include "src/verbs/objects/srq.h"

#define VB_TM_NONE UINT32_MAX
struct vb_tm_entry {
    uint32_t handle; /* of the present or last use */
    uint32_t waits; /* completions still to be polled; 0: free */
    uint32_t next; /* while free: slot of the next free one; VB_TM_NONE: it is the last */
    uint64_t recv_wr_id;
};
struct vb_tm_signaled { /* a signaled operation */
    uint64_t wr_id;
    uint32_t handle;
    uint8_t opcode; /* enum ibv_wc_opcode */
};

struct vb_tm {
    uint8_t *ring;
    uint32_t mask, stride; /* slots - 1, bytes per slot */
    uint32_t tail; /* index of the next operation */
    uint32_t seen; /* operations before it are known to be carried out */
    uint32_t outstanding; /* operations; at most max_ops */
    uint32_t max_ops, max_num_tags, max_sge;
    uint32_t first, last; /* free slots, those longest free first, so that generations last; first may be VB_TM_NONE */
    /* Signaled operations whose completions were not polled, in order: a ring of max_ops. */
    struct vb_tm_signaled *signaled;
    uint32_t signaled_head, signaled_count; /* place of the oldest; how many */
    struct vb_tm_entry entry[]; /* max_num_tags; the memory of signaled follows */
};

/* ibv_post_srq_ops, a function that a context points to. 0 or an errno value, and then *bad_wr is the first operation that was not
 * posted. EINVAL: the SRQ has no list, or the operation is malformed. ENOMEM: no room for operations or entries. EIO: a forked child. */
int vb_post_srq_ops(struct ibv_srq *srq, struct ibv_ops_wr *wr, struct ibv_ops_wr **bad_wr);

/* Of the ring that the daemon made; NULL with errno on failure. The caller frees it. */
struct vb_tm *vb_tm_new(void *segment, const struct pm_create_srq_req *req, const struct pm_create_srq_rep *rep,
                        uint32_t max_sge);

/* A completion of kind PM_CQE_TM_ENTRY or PM_CQE_TM_OP was taken. */
void vb_tm_retire(struct vb_srq *srq, const struct pm_cqe *e);

/* A request that the library completes by itself after the death of the daemon. */
struct vb_flushed {
    uint64_t wr_id;
    uint8_t opcode; /* enum ibv_wc_opcode */
};
/* After the death of the daemon: ends the next outstanding operation on the list, or the next entry of the list. Returns false if there is
 * none. The caller holds the lock of the SRQ. */
bool vb_tm_flush_next(struct vb_srq *srq, struct vb_flushed *out);

#endif
