// SPDX-License-Identifier: BSD-2-Clause
/* Layouts in the terms of mlx5dv, for programs that are to run on ConnectX adapters as well: what the hardware can take of what
 * pumice/layout.h can say, and back. These functions only translate; they work with objects of any vendor.
 *
 *     layout                                          mlx5dv
 *     composite                                       mlx5dv_wr_mr_list: an SGE for each entry
 *     interleaved, all entries in all rounds          mlx5dv_wr_mr_interleaved: repeat_count is the number of rounds,
 *         repeat_count 1, items at equal distances        {addr, length, stride - length}
 *         repeat_count R                                  R of them: for the first item of a round, for the second …
 *     several dimensions                              likewise, if a round ends where a line of the inner dimensions does
 *     all else                                        nothing: only by mkeys over mkeys, which the program has to make
 *
 * An mlx5dv_mr_interleaved tells of gaps (bytes_skip), a dimension of distances from start to start. */
#ifndef PUMICE_MLX5_H
#define PUMICE_MLX5_H

#include <infiniband/mlx5dv.h>
#include <pumice/layout.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The arguments of mlx5dv_wr_mr_list and mlx5dv_wr_mr_interleaved. */
struct pumice_mlx5_mkey {
    uint32_t repeat_count; /* rounds; 0: it is a list */
    uint16_t num; /* elements in use */
    uint16_t max; /* elements that there is room for: set by the caller of pumice_layout_to_mlx5 */
    struct ibv_sge *list; /* [max], the caller's; NULL: no room for a list */
    struct mlx5dv_mr_interleaved *interleaved; /* [max], the caller's; NULL: no room for these */
};
/* What the mkey and the queue pair were created for. Each element of a list takes one entry of both, and so does each interleaved one,
 * with one more for the pattern as a whole. */
struct pumice_mlx5_limits {
    uint32_t max_entries; /* of mlx5dv_create_mkey */
    uint32_t max_inline_data; /* of the queue pair, in bytes; an entry takes 16, and four fit into any request */
};

/* Fills *out, but for max, list and interleaved. limits may be NULL: they are not looked at. An inner window stands with its lkey.
 * EINVAL: it is no sound layout, whatever the objects are
 * EOPNOTSUPP: there is no such form: entries run out in different rounds, lines end within a round, or items overlap
 * ERANGE: it has the form, but a number is too large: an item and a distance have 16 bits, an entry of a list and the number
 *     of rounds 32
 * ENOMEM: more elements than there is room for, or than the limits allow */
int pumice_layout_to_mlx5(const struct pumice_mw_bind_layout *layout, const struct pumice_mlx5_limits *limits,
                          struct pumice_mlx5_mkey *out);
/* The same as a layout, in arrays of in->num (dimension: only for interleaved ones), to which it points. The regions are found among mr[num_mr] by
 * their lkeys. EINVAL: one isn't, there are no elements, or one has no bytes. */
int pumice_layout_from_mlx5(const struct pumice_mlx5_mkey *in, struct ibv_mr *const *mr, unsigned num_mr,
                            struct pumice_mw_bind_layout *layout, struct pumice_mw_bind_layout_entry *entry,
                            struct pumice_mw_dimension *dimension);

#ifdef __cplusplus
}
#endif

#endif
