// SPDX-License-Identifier: BSD-2-Clause
/* Memory windows over memory that is not contiguous: the extension API of libpumice.so.
 *
 * A layout says which pieces of memory, in which order, a window shows as one range of bytes that begins at address 0:
 * a column of a matrix, a face of a cube, a list of buffers, streams that take turns. Who has the key of the window sends, receives,
 * reads and writes all of them with a single SGE or a single RDMA request. Pumice's docs/layouts.md has a tutorial,
 * pictures, and the exact meaning; `pumice layout explain` shows where each byte of a layout is.
 *
 *     struct pumice_mw_dimension rows = {.stride = row_bytes, .count = num_rows};
 *     struct pumice_mw_bind_layout_entry column = {
 *         .mem_obj_type = PUMICE_MW_ENTRY_USE_MR, .mr = matrix, .addr = (uintptr_t)&cell[0][1], .length = sizeof(cell[0][0]),
 *         .interleaved = {.repeat_count = 1, .dimension_count = 1, .dimension = &rows}};
 *     struct pumice_mw_bind_layout layout = {
 *         .type = PUMICE_MW_BIND_LAYOUT_TYPE_INTERLEAVED, .entry_count = 1, .entries = &column};
 *
 *     struct pumice_mw_alloc_attr_ex attr = {.pd = pd, .type = IBV_MW_TYPE_2, .max_descriptors = 1};
 *     struct ibv_mw *mw = pumice_alloc_mw_ex(&attr);
 *     struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED};
 *     wr.bind_mw.mw = mw;
 *     wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
 *     wr.bind_mw.bind_info = pumice_mw_bind_info(&layout, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
 *     ibv_post_send(qp, &wr, &bad);
 *
 * The structures are those of the proposal of 2016 to extend the verbs API ("Registering non-contiguous memory"), under names of
 * our own, because the verbs API's own structures can't be extended any more.
 *
 * Functions return 0 or an errno value, and EOPNOTSUPP for contexts and windows that are not of Pumice. */
#ifndef PUMICE_LAYOUT_H
#define PUMICE_LAYOUT_H

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- what the device can do ----------------------------------------------------------------------------------------- */

enum pumice_ncm_general_caps {
    PUMICE_NCM_SUPPORT_COMPOSITE = 1 << 0, /* contiguous entries, one after the other */
    PUMICE_NCM_SUPPORT_INTERLEAVED = 1 << 1, /* strided entries that take turns */
    PUMICE_NCM_SUPPORT_INTERLEAVED_REPETITION = 1 << 2, /* repeat_count above 1, the same in all entries */
    PUMICE_NCM_SUPPORT_INTERLEAVED_NONUNIFORM_REPETITION = 1 << 3, /* different repeat_counts in one layout */
    PUMICE_NCM_SUPPORT_INTERLEAVED_NONUNIFORM_TOTAL_ITEMS = 1 << 4, /* entries that run out before others */
};
struct pumice_ncm_caps {
    uint64_t general_caps; /* enum pumice_ncm_general_caps; Pumice has them all */
    uint32_t max_mkey_ims_list_size; /* entries of a layout, the most that max_descriptors may be */
    uint32_t max_send_wqe_inline_cms; /* contiguous entries that a bind request can carry */
    uint32_t max_send_wqe_inline_ims; /* strided entries that a bind request can carry */
    uint32_t max_mw_recursion_depth; /* levels of windows over windows with layouts, the outermost included */
    uint32_t max_mw_stride_dimension; /* dimensions of an entry */
};
/* size is sizeof(*caps): programs and libraries of different versions understand each other, what is unknown to the
 * library is set to 0. EOPNOTSUPP: not a device of Pumice. */
int pumice_query_ncm_caps(struct ibv_context *context, struct pumice_ncm_caps *caps, size_t size);

/* --- windows -------------------------------------------------------------------------------------------------------- */

struct pumice_mw_alloc_attr_ex {
    uint32_t comp_mask; /* 0 */
    struct ibv_pd *pd;
    enum ibv_mw_type type; /* IBV_MW_TYPE_1 or IBV_MW_TYPE_2 */
    int max_descriptors; /* entries that layouts bound to it may have, at least 1; what they name does not count again */
};
/* A window that may be bound to layouts, and to ordinary ranges as any other. It is freed by ibv_dealloc_mw. NULL with
 * errno: EINVAL, ENOMEM, EOPNOTSUPP. */
struct ibv_mw *pumice_alloc_mw_ex(const struct pumice_mw_alloc_attr_ex *attr);
/* What the window was allocated for; 0 if by ibv_alloc_mw. */
int pumice_mw_get_descriptor_num(const struct ibv_mw *mw, uint32_t *descriptor_num);
/* The key for SGEs. It is valid from the completion of the newest bind posted until the window is invalidated or bound
 * again, if that bind asked for IBV_ACCESS_LOCAL_WRITE; other uses of it fail as with any wrong lkey. Once the completion of a
 * bind that was refused or flushed has been polled, it is again the key before that bind. */
int pumice_mw_get_lkey(const struct ibv_mw *mw, uint32_t *lkey);

/* --- layouts -------------------------------------------------------------------------------------------------------- */

enum pumice_mw_entry_type {
    PUMICE_MW_ENTRY_USE_MR = 0,
    PUMICE_MW_ENTRY_USE_MW,
};
struct pumice_mw_dimension {
    uint64_t
        stride; /* bytes from the start of an item to the start of the next one; may be less than its length, or 0 */
    uint64_t count; /* items along this dimension, at least 1 */
};
struct pumice_mw_bind_layout_entry {
    uint32_t comp_mask; /* 0 */
    enum pumice_mw_entry_type mem_obj_type; /* which of the next two it is about */
    union {
        struct ibv_mr
            *mr; /* registered with IBV_ACCESS_MW_BIND, and IBV_ACCESS_LOCAL_WRITE if the window allows changes */
        struct ibv_mw *mw; /* bound when the request is carried out, with at least the rights of the outer one */
    };
    uint64_t
        addr; /* of the first item: as SGEs for the MR have it; in a window with a layout, or a zero-based one, an offset */
    uint64_t length; /* bytes of an item; composite: of the whole entry. At least 1 */
    struct { /* composite: all zero */
        uint64_t repeat_count; /* items that come one after the other before the next entry has its turn; at least 1 */
        uint32_t dimension_count; /* at least 1 */
        struct pumice_mw_dimension *dimension; /* the first one changes fastest */
    } interleaved;
};
enum pumice_mw_bind_layout_type {
    PUMICE_MW_BIND_LAYOUT_TYPE_COMPOSITE = 0,
    PUMICE_MW_BIND_LAYOUT_TYPE_INTERLEAVED,
};
struct pumice_mw_bind_layout {
    uint32_t comp_mask; /* 0 */
    enum pumice_mw_bind_layout_type type;
    uint32_t entry_count; /* at least 1 */
    struct pumice_mw_bind_layout_entry *entries;
};

/* --- binding -------------------------------------------------------------------------------------------------------- */

/* In mw_access_flags: the bind is to a layout. (A bit that enum ibv_access_flags does not use.) */
#define PUMICE_ACCESS_BIND_MW_NONCONTIG (1u << 30)

/* The same as struct ibv_mw_bind_info, in size and places, with the layout where that has the MR. */
struct pumice_mw_bind_info {
    union {
        struct {
            struct ibv_mr *mr;
            uint64_t addr;
            uint64_t length;
        };
        const struct pumice_mw_bind_layout *layout; /* if PUMICE_ACCESS_BIND_MW_NONCONTIG */
    };
    unsigned int mw_access_flags; /* enum ibv_access_flags: LOCAL_WRITE (for the lkey), REMOTE_* */
};

/* The bind_info for a request to bind a window of type 2 to a layout, by ibv_post_send or ibv_wr_bind_mw. The layout
 * and all it points to is copied when the request is posted; it need not stay after that. The window's addresses are [0, sum of
 * all bytes).
 *
 * Posting fails with EINVAL if the layout can't be a layout at all (no entries, more than the window has descriptors, more
 * dimensions than the device, comp_mask, NULL pointers, a window that is not from pumice_alloc_mw_ex). All other
 * rules are checked when the request is carried out, in its turn: the completion has IBV_WC_MW_BIND_ERR, its vendor_err
 * says which rule was broken (pumice_layout_strerror), the QP goes to the error state, and the window stays as it was. */
static inline struct ibv_mw_bind_info pumice_mw_bind_info(const struct pumice_mw_bind_layout *layout,
                                                          unsigned int access)
{
    struct ibv_mw_bind_info info;
    info.mr = (struct ibv_mr *)(uintptr_t)layout;
    info.addr = info.length = 0;
    info.mw_access_flags = access | PUMICE_ACCESS_BIND_MW_NONCONTIG;
    return info;
}

struct pumice_mw_bind {
    uint64_t wr_id;
    unsigned int send_flags; /* enum ibv_send_flags */
    struct pumice_mw_bind_info bind_info;
};
/* Binds a window of type 1, which has its new rkey when this returns; to a layout, or to a range as ibv_bind_mw does.
 * If the bind is refused, mw->rkey is the old one again when its completion has been polled. EINVAL, ENOMEM (the send queue is full), EOPNOTSUPP. */
int pumice_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, const struct pumice_mw_bind *bind);

/* The rule that a bind broke, by the vendor_err of its completion with IBV_WC_MW_BIND_ERR: a static text. */
const char *pumice_layout_strerror(uint32_t vendor_err);

#ifdef __cplusplus
}
#endif

#endif
