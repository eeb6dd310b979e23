// SPDX-License-Identifier: BSD-2-Clause
/* Memory windows over memory that is not contiguous: the extension API of libpumice.so.
 *
 * A layout lists pieces of memory in an order. A window that is bound to a layout shows these pieces as one range of
 * bytes that begins at address 0. Examples: a column of a matrix, a face of a cube, a list of buffers, several
 * streams interleaved. With the key of the window, a program sends, receives, reads or writes all pieces with a
 * single SGE or a single RDMA request. docs/layouts.md has a tutorial, pictures, and the exact meaning. `pumice
 * layout explain` shows where each byte of a layout is.
 *
 *     struct pumice_mw_dimension rows = {.stride = row_bytes, .count = num_rows};
 *     struct pumice_mw_bind_layout_entry column = {
 *         .mem_obj_type = PUMICE_MW_ENTRY_USE_MR, .mr = matrix,
 *         .addr = (uintptr_t)&cell[0][1], .length = sizeof(cell[0][0]),
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
 * The structures are those of the 2016 proposal to extend the verbs API ("Registering non-contiguous memory"). They
 * have our own names, because the verbs API's own structures can't be extended any more.
 *
 * Functions return 0 or an errno value. They return EOPNOTSUPP for contexts and windows that are not Pumice's. */
#ifndef PUMICE_LAYOUT_H
#define PUMICE_LAYOUT_H

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- what the device can do -------------------------------------------------------------------- */

enum pumice_ncm_general_caps {
    PUMICE_NCM_SUPPORT_COMPOSITE = 1 << 0, /* contiguous entries, one after the other */
    PUMICE_NCM_SUPPORT_INTERLEAVED = 1 << 1, /* strided entries, interleaved */
    PUMICE_NCM_SUPPORT_INTERLEAVED_REPETITION = 1 << 2, /* repeat_count above 1, the same in all entries */
    PUMICE_NCM_SUPPORT_INTERLEAVED_NONUNIFORM_REPETITION = 1 << 3, /* different repeat_counts in one layout */
    PUMICE_NCM_SUPPORT_INTERLEAVED_NONUNIFORM_TOTAL_ITEMS = 1 << 4, /* entries that run out before others */
};
struct pumice_ncm_caps {
    uint64_t general_caps; /* enum pumice_ncm_general_caps; Pumice has all of them */
    uint32_t max_mkey_ims_list_size; /* entries of a layout; the upper limit of max_descriptors */
    uint32_t max_send_wqe_inline_cms; /* contiguous entries that a bind request can carry */
    uint32_t max_send_wqe_inline_ims; /* strided entries that a bind request can carry */
    uint32_t max_mw_recursion_depth; /* nested levels of windows with layouts, the outermost included */
    uint32_t max_mw_stride_dimension; /* dimensions of one entry */
};
/* Fills *caps. size is sizeof(*caps). So programs and libraries of different versions work together: the library sets
 * fields that it does not know to 0. EOPNOTSUPP: the context is not Pumice's. */
int pumice_query_ncm_caps(struct ibv_context *context, struct pumice_ncm_caps *caps, size_t size);

/* --- windows ----------------------------------------------------------------------------------- */

struct pumice_mw_alloc_attr_ex {
    uint32_t comp_mask; /* 0 */
    struct ibv_pd *pd;
    enum ibv_mw_type type; /* IBV_MW_TYPE_1 or IBV_MW_TYPE_2 */
    /* The most entries that a layout of this window may have, at least 1. Entries of inner windows do not count
     * again. */
    int max_descriptors;
};
/* Allocates a window that may be bound to layouts, and, like any other window, to ordinary ranges. ibv_dealloc_mw
 * frees it. NULL with errno: EINVAL, ENOMEM, EOPNOTSUPP. */
struct ibv_mw *pumice_alloc_mw_ex(const struct pumice_mw_alloc_attr_ex *attr);
/* The max_descriptors that the window was allocated with; 0 for a window of ibv_alloc_mw. */
int pumice_mw_get_descriptor_num(const struct ibv_mw *mw, uint32_t *descriptor_num);
/* Returns the window's key for SGEs. The key works only if the newest posted bind asked for IBV_ACCESS_LOCAL_WRITE. It
 * is valid from the completion of that bind until the window is invalidated or bound again. At other times its use
 * fails like that of any wrong lkey. When the program has polled the completion of a refused or flushed bind, the key
 * has its old value again. */
int pumice_mw_get_lkey(const struct ibv_mw *mw, uint32_t *lkey);

/* --- layouts ----------------------------------------------------------------------------------- */

enum pumice_mw_entry_type {
    PUMICE_MW_ENTRY_USE_MR = 0,
    PUMICE_MW_ENTRY_USE_MW,
};
struct pumice_mw_dimension {
    /* Bytes from the start of an item to the start of the next one. It may be less than the item's length, or 0. */
    uint64_t stride;
    uint64_t count; /* items along this dimension, at least 1 */
};
struct pumice_mw_bind_layout_entry {
    uint32_t comp_mask; /* 0 */
    enum pumice_mw_entry_type mem_obj_type; /* which member of the union is valid */
    union {
        /* Registered with IBV_ACCESS_MW_BIND, and with IBV_ACCESS_LOCAL_WRITE if the window allows changes. */
        struct ibv_mr *mr;
        /* It must be bound when the request is executed, with at least the rights of the outer window. */
        struct ibv_mw *mw;
    };
    /* Address of the first item, as in an SGE for the MR. For a zero-based MR, or a window that is zero-based or
     * bound to a layout: an offset. */
    uint64_t addr;
    /* Bytes of an item; in a composite layout, bytes of the whole entry. At least 1. */
    uint64_t length;
    /* In a composite layout: all zero. */
    struct {
        /* The number of items of this entry that follow each other before the items of the next entry. At least 1. */
        uint64_t repeat_count;
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

/* --- binding ----------------------------------------------------------------------------------- */

/* Flag in mw_access_flags: the bind is to a layout. enum ibv_access_flags does not use this bit. */
#define PUMICE_ACCESS_BIND_MW_NONCONTIG (1u << 30)

/* Same size and member offsets as struct ibv_mw_bind_info. The layout is in the place of the MR. */
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

/* Makes the bind_info of a request that binds a window of type 2 to a layout, for ibv_post_send or ibv_wr_bind_mw.
 * Posting copies the layout and everything it points to, so the caller may free them after that. The addresses of the
 * window are [0, sum of all bytes).
 *
 * Posting fails with EINVAL if the layout is malformed: no entries, more entries than the window has descriptors, more
 * dimensions than the device supports, a comp_mask, NULL pointers, or a window that is not from pumice_alloc_mw_ex. The
 * daemon checks all other rules when it executes the request. If the layout breaks one of them, the completion has
 * IBV_WC_MW_BIND_ERR, and its vendor_err names the rule (see pumice_layout_strerror). The QP goes to the error state,
 * and the window does not change. */
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
/* Binds a window of type 1 to a layout, or to a range as ibv_bind_mw does. The window has its new rkey when the
 * function returns. If the bind is refused, mw->rkey is the old one again once the completion was polled. Errors:
 * EINVAL, ENOMEM (the send queue is full), EOPNOTSUPP. */
int pumice_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, const struct pumice_mw_bind *bind);

/* Names the rule that a bind broke. vendor_err comes from its completion with IBV_WC_MW_BIND_ERR. The text is
 * static. */
const char *pumice_layout_strerror(uint32_t vendor_err);

#ifdef __cplusplus
}
#endif

#endif
