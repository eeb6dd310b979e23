// SPDX-License-Identifier: BSD-2-Clause
/* Translates between layouts (pumice/layout.h) and the structures of mlx5dv, for programs that also run on ConnectX
 * adapters. The functions only translate. They work with memory regions of any vendor, and with windows of Pumice.
 *
 *     layout                                          mlx5dv
 *     composite                                       mlx5dv_wr_mr_list: an SGE for each entry
 *     interleaved, all entries in all rounds          mlx5dv_wr_mr_interleaved: repeat_count is the number of rounds
 *         repeat_count 1, items at equal distances        one element {addr, length, stride - length}
 *         repeat_count R                                  R such elements: for the first item of a round, the second …
 *     several dimensions                              as above, if each round ends at the end of a line of the inner
 *                                                     dimensions
 *     anything else                                   no such form: the program has to make mkeys over mkeys
 *
 * An mlx5dv_mr_interleaved has gaps (bytes_skip). A dimension has distances from start to start (stride). */
#ifndef PUMICE_MLX5_H
#define PUMICE_MLX5_H

#include <infiniband/mlx5dv.h>
#include <pumice/layout.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The arguments of mlx5dv_wr_mr_list and mlx5dv_wr_mr_interleaved. */
struct pumice_mlx5_mkey {
    uint32_t repeat_count; /* number of rounds; 0: a list */
    uint16_t num; /* number of elements used */
    /* The number of elements in the caller's arrays. The caller of pumice_layout_to_mlx5 sets it. */
    uint16_t max;
    struct ibv_sge *list; /* [max], owned by the caller; NULL: the caller takes no list */
    /* [max], owned by the caller; NULL: the caller takes no interleaved form */
    struct mlx5dv_mr_interleaved *interleaved;
};
/* The limits that the mkey and the QP were created with. Each element of a list or of an interleaved form takes one
 * entry of both limits. An interleaved form takes one more entry for the pattern as a whole. */
struct pumice_mlx5_limits {
    uint32_t max_entries; /* as given to mlx5dv_create_mkey */
    /* The max_inline_data of the QP, in bytes. An entry takes 16 bytes, and any request has room for four entries. */
    uint32_t max_inline_data;
};

/* Fills *out except for max, list and interleaved. limits may be NULL: then they are not checked. An inner window is
 * represented by its lkey.
 * EINVAL: the layout is malformed (this is checked first), an entry names no object, or a window is not from
 *     pumice_alloc_mw_ex
 * EOPNOTSUPP: mlx5dv has no such form: entries end in different rounds, lines end within a round, or items overlap;
 *     or a window is not Pumice's
 * ERANGE: mlx5dv has the form, but a number is too large: the size of an item and a distance have 16 bits, the size of
 *     a list entry and the number of rounds have 32
 * ENOMEM: the layout needs more elements than the arrays or the limits allow */
int pumice_layout_to_mlx5(const struct pumice_mw_bind_layout *layout, const struct pumice_mlx5_limits *limits,
                          struct pumice_mlx5_mkey *out);
/* Makes a layout of *in, the reverse of pumice_layout_to_mlx5. entry and dimension are arrays of in->num elements
 * (dimension only for interleaved forms); *layout points to them. Each lkey must belong to one of mr[num_mr]. EINVAL:
 * an lkey is not found, there are no elements, or an element has no bytes. */
int pumice_layout_from_mlx5(const struct pumice_mlx5_mkey *in, struct ibv_mr *const *mr, unsigned num_mr,
                            struct pumice_mw_bind_layout *layout, struct pumice_mw_bind_layout_entry *entry,
                            struct pumice_mw_dimension *dimension);

#ifdef __cplusplus
}
#endif

#endif
