// SPDX-License-Identifier: BSD-2-Clause
/* The client's side of a tag matching list: handles, list operations and their completions. The lock of the SRQ
 * protects all of it.
 *
 * The library chooses the handle of an entry at once, as the verbs API wants it (pumice/abi.h describes handles). The
 * slot of an entry is free again when all completions that the entry can have were polled. These are the completion of
 * a signaled ADD, and either the last receive completion or the completion of a successful DEL. Therefore max_num_tags
 * also bounds the entries that are consumed and not yet polled. An unsignaled DEL has no completion, so the daemon
 * writes its result into the ring.
 *
 * The library also keeps the contents of two completions: that of a signaled operation, and the last one of an entry.
 * So it can complete both itself when the daemon has died.
 *
 * An operation is outstanding from its posting until its completion is polled. An unsignaled operation is outstanding
 * until the daemon has carried it out. */
#ifndef PUMICE_SRC_VERBS_DATAPATH_TM_H
#define PUMICE_SRC_VERBS_DATAPATH_TM_H

#include "src/verbs/objects/srq.h"

#define VB_TM_NONE UINT32_MAX
struct vb_tm_entry {
    uint32_t handle; /* of the current use, or the last one */
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
    uint32_t seen; /* the library knows that the daemon has carried out the operations before this index */
    uint32_t outstanding; /* operations that are outstanding; at most max_ops */
    uint32_t max_ops, max_num_tags, max_sge;
    /* The list of free slots; first is VB_TM_NONE if it is empty. The slot that was free longest comes first, so that a
     * handle is used again as late as possible. */
    uint32_t first, last;
    /* Signaled operations whose completions were not polled, in order: a ring of max_ops. */
    struct vb_tm_signaled *signaled;
    uint32_t signaled_head, signaled_count; /* place of the oldest; how many */
    struct vb_tm_entry entry[]; /* max_num_tags; the memory of signaled follows */
};

/* ibv_post_srq_ops, a function that a context points to. 0 or an errno value, and then *bad_wr is the first operation
 * that was not posted. EINVAL: the SRQ has no list, or the operation is malformed. ENOMEM: no room for operations or
 * entries. EIO: a forked child. */
int vb_post_srq_ops(struct ibv_srq *srq, struct ibv_ops_wr *wr, struct ibv_ops_wr **bad_wr);

/* Makes the list for the ring that the daemon made in segment. Returns NULL with errno on failure. The caller frees
 * it. */
struct vb_tm *vb_tm_new(void *segment, const struct pm_create_srq_req *req, const struct pm_create_srq_rep *rep,
                        uint32_t max_sge);

/* Notes that a completion of kind PM_CQE_TM_ENTRY or PM_CQE_TM_OP was polled. The caller holds the lock of the SRQ. */
void vb_tm_retire(struct vb_srq *srq, const struct pm_cqe *e);

/* A request that the library completes by itself after the death of the daemon. */
struct vb_flushed {
    uint64_t wr_id;
    uint8_t opcode; /* enum ibv_wc_opcode */
};
/* After the death of the daemon: ends the next outstanding operation on the list, or the next entry of the list.
 * Returns false if there is none. The caller holds the lock of the SRQ. */
bool vb_tm_flush_next(struct vb_srq *srq, struct vb_flushed *out);

#endif
